#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README and docs: every C block compiles, the first one is examples/minimal.c, every path and link exists.

    documents.py SOURCE-ROOT BUILD-ROOT         TAP on standard output

A fence "```c" holds declarations and functions, "```c body" statements for the inside of a function, where
these names exist: gate, policy, request, decision, options, lease, status.
"""
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT, BUILD = sys.argv[1:]
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror",
            "-Wno-unused-function", "-Wno-unused-variable", "-Wno-unused-parameter"]
PRELUDE = "".join("#include <admit/%s.h>\n" % name
                  for name in ("admit", "backends", "metrics", "policy", "testing")) + "#include <stdio.h>\n"
BODY = """static int body(struct adm_gate *gate, struct adm_policy *policy, struct adm_id lease);
static int body(struct adm_gate *gate, struct adm_policy *policy, struct adm_id lease)
{
    struct adm_gate_options options = { .size = sizeof options };
    struct adm_request request = { .size = sizeof request };
    struct adm_decision decision = { .size = sizeof decision };
    adm_status status = ADM_OK;

    (void)gate, (void)policy, (void)lease, (void)options, (void)request, (void)decision, (void)status;
#line 1
%s
    return 0;
}
"""

count = 0
failed = 0


def ok(passed, what, detail=""):
    global count, failed
    count += 1
    failed += 0 if passed else 1
    print("%s %d - %s" % ("ok" if passed else "not ok", count, what))
    if not passed:
        print("\n".join("# " + line for line in detail.splitlines()))


def documents():
    yield "README.md"
    for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
        for name in sorted(names):
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def blocks(text):
    """(line, info string, content) of each fenced block."""
    for found in re.finditer(r"^```([^\n`]*)\n(.*?)^```[ \t]*$", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, found.start()) + 1, found.group(1).strip(), found.group(2)


def compile_c(folder, content, program):
    path = os.path.join(folder, "block.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)
    command = shlex.split(os.environ.get("CC", "cc")) + WARNINGS + ["-I" + os.path.join(ROOT, "include"), path]
    library = os.path.join(BUILD, "lib")
    if program:
        out = os.path.join(folder, "block")
        command += ["-o", out, "-L" + library, "-ladmit-testing", "-l:libadmit.so", "-Wl,-rpath," + library, "-pthread"]
    else:
        command += ["-c", "-o", os.devnull]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0 or not program:
        return done.returncode, done.stdout.decode("utf-8", "replace")
    done = subprocess.run([out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def check_blocks(folder, name, text):
    for line, info, content in blocks(text):
        words = info.split()
        if not words or words[0] != "c":
            continue
        program = re.search(r"^int main\(", content, re.MULTILINE) is not None
        if words[1:] == ["body"]:
            source = PRELUDE + BODY % content
        elif program:
            source = content
        else:
            source = PRELUDE + "#line 1\n" + content
        code, output = compile_c(folder, source, program)
        ok(code == 0, "%s:%d: the C block %s" % (name, line, "builds and runs" if program else "compiles"), output)


def check_paths(name, text):
    """Links, and words in backquotes that look like a path of this tree."""
    here = os.path.dirname(name)
    links = [os.path.normpath(os.path.join(here, target)) for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)]
    prose = re.sub(r"^```.*?^```[ \t]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    tops = "include|lib|examples|tests|bindings|docs|pkgconfig"
    named = re.findall(r"`((?:%s)/[A-Za-z0-9_./-]*)`" % tops, prose)
    commands = re.findall(r"\bsh ((?:%s)/[A-Za-z0-9_./-]+)" % tops, text)
    # "lib/base/abi" may stand for abi.c and abi.h.
    missing = sorted({path for path in links + named + commands
                      if not os.path.exists(os.path.join(ROOT, path)) and not glob.glob(os.path.join(ROOT, path + ".*"))})
    ok(not missing, "%s: every file that it names exists (%d)" % (name, len(links + named + commands)), "\n".join(missing))


def main():
    readme = read("README.md")
    first = next((content for _, info, content in blocks(readme) if info == "c"), "")
    minimal = read("examples/minimal.c")
    ok(first == minimal[minimal.index("#include"):], "README.md's first C block is examples/minimal.c")
    for command in ("sh examples/quickstart.sh", "sh tests/run.sh"):
        ok(re.search("^%s$" % re.escape(command), readme, re.MULTILINE) is not None, "README.md shows the command: " + command)
    with tempfile.TemporaryDirectory() as folder:
        code, _ = compile_c(folder, PRELUDE + BODY % "    return adm_no_such_function();\n", False)
        ok(code != 0, "a block that does not compile is found")
        for name in documents():
            text = read(name)
            check_blocks(folder, name, text)
            check_paths(name, text)
    print("1..%d" % count)
    return 1 if failed else 0


sys.exit(main())
