#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A wheel from an installed library, in an environment of its own, answers.  wheel.sh SOURCE-ROOT BUILD-ROOT PYTHON
set -u
source=$1
build=$2
python=$3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

skip() {
    echo "1..0 # SKIP $1"
    exit 0
}

number=0
step() { # step WHAT COMMAND ...
    number=$((number + 1))
    what=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        echo "ok $number - $what"
        return
    fi
    echo "not ok $number - $what"
    tail -n 40 "$work/log" | sed 's/^/# /'
    echo "1..$number"
    exit 1
}

"$python" -c 'import mesonpy' 2>/dev/null || skip "this Python has no meson-python"
"$python" -m pip --version >/dev/null 2>&1 || skip "this Python has no pip"
"$python" -m venv --help >/dev/null 2>&1 || skip "this Python has no venv"

step "the library is installed" env DESTDIR= meson install -C "$build" --no-rebuild --destdir "$work/root" --tags devel,runtime
libraries=$(dirname "$(find "$work/root" -name admit.pc)")
# Found where it lies now; a system root would be asked for the headers of Python as well.
for description in "$libraries"/admit*.pc; do
    sed "s|^prefix=|prefix=$work/root|" "$description" >"$work/description" && cp "$work/description" "$description"
done
export PKG_CONFIG_PATH="$libraries"
cp -R "$source/bindings/python" "$work/python"
step "a wheel is made" "$python" -m pip wheel --no-build-isolation --no-deps --no-index --wheel-dir "$work/wheels" "$work/python"
step "one wheel holds the package and nothing else" "$python" - "$work/wheels" <<'CHECK'
import glob, sys, zipfile
wheel, = glob.glob(sys.argv[1] + "/*.whl")
names = zipfile.ZipFile(wheel).namelist()
assert all(name.startswith(("admit/", "admit-")) for name in names), names
assert any(name.startswith("admit/_native.") and name.endswith(".so") for name in names), names
assert "admit/py.typed" in names, names
CHECK
step "an environment is made" "$python" -m venv --system-site-packages "$work/venv"
step "the wheel is installed" sh -c "'$work/venv/bin/python' -m pip install --no-index --no-deps '$work'/wheels/*.whl"
cd / || exit 1
step "the installed package decides" env -u PYTHONPATH "$work/venv/bin/python" -c '
import admit
gate = admit.Gate(admit.Policy.loads("{\"version\": \"1\", \"rules\": [{\"id\": \"r\", \"type\": \"request_cap\", \"limit\": 2}]}"))
assert gate.admit({}, cost=2).allowed
assert gate.admit({}, cost=3).rules == ("r",)
print(admit.__file__)'
echo "1..$number"
