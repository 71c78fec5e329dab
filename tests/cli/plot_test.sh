#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# admit replay --plot: the picture, its data, and names that must not become commands.
# usage: plot_test.sh ADMIT SOURCE_ROOT      prints TAP
set -u
case $1 in
/*) admit=$1 ;;
*) admit=$PWD/$1 ;;
esac
root=$(cd "$2" && pwd)
. "$(dirname "$0")/tap.sh"
policy=$root/examples/policies/gateway.json
trace=$root/examples/traces/sample-azure-style.csv
replay() { # CODE NAME ARGUMENT...
    replay_code=$1
    replay_name=$2
    shift 2
    run "$replay_code" "$replay_name" replay "$policy" "$@" -d service=chat -d capacity_pool=p \
        --tenants 24 --format json --quiet
}

# ---- the commands, read by a program that is not gnuplot ----------------------------------------

mkdir fake none
cat >fake/gnuplot <<'END'
#!/bin/sh
[ ! -e fail ] || exit 3
cat >script.gp
echo '<svg/>'
END
chmod +x fake/gnuplot
path=$PATH
PATH=$work/fake:$path
replay 0 'a plot' "$trace" --plot picture.svg
cp out report.json
holds 'is what the program wrote' [ "$(cat picture.svg)" = '<svg/>' ]
holds 'and nothing else is left' [ "$(ls | grep -c '^picture')" -eq 1 ]
if command -v python3 >/dev/null 2>&1; then
    cat >check.py <<'END'
import json, re, sys
report = json.load(open("report.json"))
script = open("script.gp").read()
blocks = {name: [list(map(float, line.split())) for line in body.splitlines()]
          for name, body in re.findall(r"^\$(\w+) << END\n(.*?)^END$", script, re.M | re.S)}
def totals(name):
    return (sum(row[1] for row in blocks[name]), sum(row[2] for row in blocks[name]))
assert totals("total") == (report["totals"]["admitted"], report["totals"]["denied"])
assert report["totals"]["denied"] > 0
drawn = 0
for index, rule in enumerate(report["rules"]):
    name = rule.get("rule", rule.get("id"))
    assert name in script, name
    if "rule%d" % index not in blocks:
        continue
    drawn += 1
    got = totals("rule%d" % index)
    allowed = [(0, rule["shadow_denied"])] if "shadow_denied" in rule else [
        (rule["admitted"], rule["denied"]), (rule["admitted_units"], rule["denied_units"])]
    assert got in allowed, (name, got, allowed)
    if "peak_held" in rule:
        assert max(row[3] for row in blocks["rule%d" % index]) == rule["peak_held"], name
assert drawn == len(report["rules"]), drawn
END
    holds 'the data add up to the report' python3 check.py
else
    skip 'the data add up to the report' 'python3 is not here'
fi
echo old >picture.svg
touch fail
replay 6 'a program that fails' "$trace" --plot picture.svg
holds 'says so' grep -q 'gnuplot failed' err
holds 'the old picture stays' [ "$(cat picture.svg)" = old ]
holds 'and nothing else is left' [ "$(ls | grep -c '^picture')" -eq 1 ]
rm fail
replay 6 'a folder that is not there' "$trace" --plot nowhere/picture.svg
holds 'is named' grep -q 'cannot write nowhere/picture.svg' err
replay 2 'standard output is taken' "$trace" --plot -
mkfifo pipe.svg
replay 6 'a picture into a pipe' "$trace" --plot pipe.svg
holds 'is refused' grep -q 'cannot write pipe.svg: it is not a regular file' err
holds 'it is a pipe still' [ -p pipe.svg ]
ln -s picture.svg link.svg
chmod 640 picture.svg
replay 0 'a picture through a link' "$trace" --plot link.svg
holds 'the link stays' [ -L link.svg ]
holds 'and the mode of what it names' [ "$(stat -c %a picture.svg)" = 640 ]
PATH=$work/none
"$admit" replay "$policy" "$trace" -q --plot missing.svg >out 2>err
code=$?
PATH=$path
holds 'without gnuplot exit code 6' [ $code -eq 6 ]
holds 'it says what to install' grep -q 'install gnuplot-nox' err
holds 'the report is printed nevertheless' grep -q '^reason ' out
holds 'no picture' [ ! -e missing.svg ]

# ---- names ---------------------------------------------------------------------------------------

evil="t'; system \"touch hacked\" #\`touch hacked\`\$(touch hacked)_{x}^2\\.csv"
head -n 200 "$trace" >"$evil"
PATH=$work/fake:$path
replay 0 'a trace with a dangerous name' "$evil" --plot "p'\`touch hacked\`.svg"
PATH=$path
holds 'cannot end its string' sh -c "! grep -q \"t'; system\" script.gp"
holds 'and brings no backquote' sh -c '! grep -q "\`" script.gp'
if command -v gnuplot >/dev/null 2>&1; then
    # What is preloaded to force a locale on our code is not for gnuplot.
    mkdir -p real
    printf '#!/bin/sh\nunset LD_PRELOAD\nexec %s "$@"\n' "$(command -v gnuplot)" >real/gnuplot
    chmod +x real/gnuplot
    PATH=$work/real:$path
    replay 0 'the real gnuplot' "$evil" --plot "p'\`touch hacked\`.svg"
    holds 'draws it' [ -s "p'\`touch hacked\`.svg" ]
    holds 'and runs nothing' [ ! -e hacked ]
    replay 0 'the whole trace' "$trace" --plot real.svg
    if command -v python3 >/dev/null 2>&1; then
        cat >check.py <<'END'
import json, xml.etree.ElementTree as tree
root = tree.parse("real.svg").getroot()
assert root.tag.endswith("svg"), root.tag
text = "".join(root.itertext())
for rule in json.load(open("report.json"))["rules"]:
    assert rule.get("rule", rule.get("id")) in text, rule
assert "gateway-1" in text and "sample-azure-style.csv" in text
END
        holds 'is XML with every rule in it' python3 check.py
    else
        skip 'is XML with every rule in it' 'python3 is not here'
    fi
    printf 't_ms,consumer\n0,a\n' >one.csv
    replay 0 'a trace of one row' one.csv --plot one.svg
    holds 'is drawn' [ -s one.svg ]
else
    skip 'the real gnuplot' 'gnuplot is not here'
fi

echo "1..$count"
