# SPDX-License-Identifier: Apache-2.0
# Find out what a build of this tree is missing, and install exactly that on Debian and Ubuntu.
#
# Sourced by examples/quickstart.sh and tests/run.sh:
#       . examples/install_packages.sh
#       install_missing LOG compiler meson libcjson ...     returns 1 and says why when it could not
#
# Without apt-get, or without the right to use it, it says what to install by hand. Plain POSIX sh.

# One line per thing that a build may need: whether it is here, and which Debian packages bring it.
is_here() {
    case $1 in
    compiler) can_link "${CC:-cc}" c ;;
    compiler-c++) can_link "${CXX:-c++}" cc ;;
    meson) command -v meson >/dev/null 2>&1 ;;
    ninja) command -v ninja >/dev/null 2>&1 ;;
    pkg-config) command -v pkg-config >/dev/null 2>&1 ;;
    python3) command -v python3 >/dev/null 2>&1 ;;
    libcjson) has_library libcjson cjson/cJSON.h ;;
    libxxhash) has_library libxxhash xxhash.h ;;
    check) has_library check check.h ;;
    comma-locale) [ -d /usr/share/i18n/locales ] && command -v localedef >/dev/null 2>&1 ;;
    libyaml) has_library yaml-0.1 yaml.h ;;
    scdoc) command -v scdoc >/dev/null 2>&1 ;;
    mandoc) command -v mandoc >/dev/null 2>&1 ;;
    gnuplot) command -v gnuplot >/dev/null 2>&1 ;;
    go) command -v go >/dev/null 2>&1 ;;
    python-binding) some_python_has cffi pytest mypy ;;
    python-asgi) some_python_has uvicorn fastapi ;;
    python-wheel) some_python_has mesonpy pip venv ;;
    jsonschema) some_python_has jsonschema ;;
    nlohmann-json) has_library nlohmann_json nlohmann/json.hpp ;;
    spin) command -v spin >/dev/null 2>&1 ;;
    *) return 1 ;;
    esac
}

packages_of() {
    case $1 in
    compiler) echo "gcc libc6-dev" ;;
    compiler-c++) echo "g++" ;;
    meson) echo "meson" ;;
    ninja) echo "ninja-build" ;;
    pkg-config) echo "pkg-config" ;;
    python3) echo "python3-minimal" ;;
    libcjson) echo "libcjson-dev" ;;
    libxxhash) echo "libxxhash-dev" ;;
    check) echo "check" ;;
    comma-locale) echo "locales" ;;
    libyaml) echo "libyaml-dev" ;;
    scdoc) echo "scdoc" ;;
    mandoc) echo "mandoc" ;;
    gnuplot) echo "gnuplot-nox" ;;
    go) echo "golang-go" ;;
    python-binding) echo "python3-dev python3-cffi python3-pytest mypy" ;;
    python-asgi) echo "python3-uvicorn python3-fastapi" ;;
    python-wheel) echo "python3-mesonpy python3-pip python3-venv" ;;
    jsonschema) echo "python3-jsonschema" ;;
    nlohmann-json) echo "nlohmann-json3-dev" ;;
    spin) echo "spin" ;;
    *) echo "$1" ;;
    esac
}

# A compiler without a C library's headers is no compiler. $1: the command, $2: suffix of the source.
can_link() {
    command -v "${1%% *}" >/dev/null 2>&1 || return 1
    linked=$(mktemp -d) || return 1
    printf '#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n' >"$linked/a.$2"
    link_result=0
    # The command may carry arguments (CC="ccache gcc").
    $1 -o "$linked/a" "$linked/a.$2" >/dev/null 2>&1 || link_result=1
    rm -rf "$linked"
    return $link_result
}

# $1: name in pkg-config, $2: header, the only thing to look for while pkg-config is missing.
has_library() {
    if command -v pkg-config >/dev/null 2>&1; then
        pkg-config --exists "$1" 2>/dev/null
    else
        [ -e "/usr/include/$2" ] || [ -e "/usr/local/include/$2" ]
    fi
}

# The python3 of the path, or the distribution's own where another one comes first: does it have all of these modules?
some_python_has() {
    imports=$(echo "$*" | sed 's/ /, /g')
    python3 -c "import $imports" >/dev/null 2>&1 || /usr/bin/python3 -c "import $imports" >/dev/null 2>&1
}

missing_of() {
    for wanted in "$@"; do
        is_here "$wanted" || printf '%s ' "$wanted"
    done
}

# $1: file that receives the output of apt-get; then the things that are needed.
install_missing() {
    install_log=$1
    shift
    missing=$(missing_of "$@")
    [ -n "$missing" ] || return 0
    packages=
    for thing in $missing; do
        packages="$packages$(packages_of "$thing") "
    done
    packages=${packages% }

    if ! command -v apt-get >/dev/null 2>&1; then
        echo "Missing: ${missing% }. There is no apt-get here; please install what corresponds to these" >&2
        echo "Debian packages: $packages" >&2
        return 1
    fi
    root_prefix=
    if [ "$(id -u)" -ne 0 ]; then
        # -n: never ask for a password, because nobody may be there to give one.
        if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
            root_prefix="sudo -n"
        else
            echo "Missing: ${missing% }. Not root, and no sudo without a password; please run" >&2
            echo "    apt-get install --no-install-recommends $packages" >&2
            return 1
        fi
    fi

    echo "Installing with apt-get: $packages" >&2
    # The lists of packages are fetched once in a run.
    if { [ -z "${lists_are_new:-}" ] && ! $root_prefix env DEBIAN_FRONTEND=noninteractive apt-get -q update >"$install_log" 2>&1; } ||
        ! $root_prefix env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 \
            install --no-install-recommends $packages >>"$install_log" 2>&1; then
        cat "$install_log" >&2
        echo "apt-get could not install: $packages" >&2
        return 1
    fi
    lists_are_new=yes
    missing=$(missing_of "$@")
    if [ -n "$missing" ]; then
        echo "Installed, but still not usable: ${missing% }" >&2
        return 1
    fi
    return 0
}
