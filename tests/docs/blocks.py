# SPDX-License-Identifier: Apache-2.0
"""How a fenced block of a document is tried out, by its language. docs/CONTRIBUTING.md has the table for authors.

Each function returns (passed, detail) or raises Skip with the reason why this machine cannot tell.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import markdown

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror",
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
# They build everything anew and run for minutes; the tests run them by other ways.
BIG_COMMANDS = ("sh examples/quickstart.sh", "sh tests/run.sh", "sh tests/bench/run.sh")


class Skip(Exception):
    pass


class Tree:
    """The sources, the build, and the folder in which the blocks of one page are run, one after another."""

    def __init__(self, root, build):
        self.root = os.path.abspath(root)
        self.build = os.path.abspath(build)
        self.folder = None
        self.admit = os.path.join(self.build, "bindings", "cli", "admit")

    def enter(self, folder):
        """A folder that looks like the root of a checkout, where what a block writes harms nothing."""
        self.folder = folder
        for name in ("examples", "docs"):
            shutil.copytree(os.path.join(self.root, name), os.path.join(folder, name))
        for name in ("include", "bindings", "tests"):
            os.symlink(os.path.join(self.root, name), os.path.join(folder, name))

    def environment(self):
        variables = dict(os.environ, NO_COLOR="1", LC_ALL="C", TERM="dumb", COLUMNS="100", TZ="UTC")
        variables["PATH"] = os.path.dirname(self.admit) + ":" + variables.get("PATH", "/usr/bin:/bin")
        variables["LD_LIBRARY_PATH"] = os.path.join(self.build, "lib")
        variables["PKG_CONFIG_PATH"] = os.path.join(self.build, "meson-uninstalled")
        return variables

    def run(self, command, text=None, timeout=120, **more):
        """(exit status, both outputs together)"""
        done = subprocess.run(command, input=None if text is None else text.encode(), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL if text is None else None,
                              cwd=more.get("cwd", self.folder), env=more.get("env", self.environment()),
                              timeout=timeout)
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def needs_command(self):
        if not os.path.exists(self.admit):
            raise Skip("the command admit is not built")

    def needs_yaml(self):
        self.needs_command()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "policy.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write('version: "1"\nrules: [{id: a, type: request_cap, limit: 1}]\n')
            if "ADM-D-129" in self.run([self.admit, "validate", path])[1]:
                raise Skip("the command is built without YAML")

    def keep(self, block):
        if block.file:
            with open(os.path.join(self.folder, block.file), "w", encoding="utf-8") as file:
                file.write(block.content)


def compile_source(tree, compiler, options, suffix, content, program):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "block" + suffix)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        command = compiler + options + WARNINGS + ["-I" + os.path.join(tree.root, "include"), path]
        library = os.path.join(tree.build, "lib")
        if not program:
            code, output = tree.run(command + ["-c", "-o", os.devnull])
            return code == 0, output
        out = os.path.join(folder, "block")
        code, output = tree.run(command + ["-o", out, "-L" + library, "-ladmit-testing", "-l:libadmit.so",
                                           "-Wl,-rpath," + library, "-pthread"])
        if code == 0:
            code, output = tree.run([out], timeout=60)
        return code == 0, output


def c(tree, block):
    program = re.search(r"^int main\(", block.content, re.MULTILINE) is not None
    if block.marks == ["body"]:
        source = PRELUDE + BODY % block.content
    elif program:
        source = block.content
    else:
        source = PRELUDE + "#line 1\n" + block.content
    return compile_source(tree, shlex.split(os.environ.get("CC", "cc")), ["-std=c11"], ".c", source, program)


def cpp(tree, block):
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    if shutil.which(compiler[0]) is None:
        raise Skip("there is no C++ compiler")
    program = re.search(r"^int main\(", block.content, re.MULTILINE) is not None
    source = block.content
    if block.marks == ["body"]:
        source = "#include <admit/queue.hpp>\n#include <iostream>\nint body();\nint body()\n{\n#line 1\n%s\nreturn 0;\n}\n" % source
    elif not program:
        source = "#include <admit/queue.hpp>\n#include <iostream>\n#line 1\n" + source
    header = os.path.join(tree.root, "bindings", "cpp")
    if not os.path.exists(os.path.join(header, "admit", "admit.hpp")):
        raise Skip("bindings/cpp is not here")
    # GCC 12 sees a string that could overlap with itself inside of its own library.
    return compile_source(tree, compiler, ["-std=c++17", "-I" + header, "-Wno-restrict"], ".cpp", source, program)


def python(tree, block):
    variables = tree.environment()
    places = [os.path.join(tree.build, "bindings", "python"), os.path.join(tree.root, "bindings", "python"),
              os.path.join(tree.root, "bindings", "python", "src")]
    variables["PYTHONPATH"] = os.pathsep.join(places + [variables.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    variables["PYTHONDONTWRITEBYTECODE"] = "1"
    for interpreter in [sys.executable, "/usr/bin/python3"]:
        code, output = tree.run([interpreter, "-c", "import admit; admit.Gate"], env=variables)
        if code == 0:
            break
    else:
        raise Skip("the Python binding cannot be imported here: " + output.strip().splitlines()[-1])
    for module in re.findall(r"^(?:import|from) ([A-Za-z_]\w*)", block.content, re.MULTILINE):
        if tree.run([interpreter, "-c", "import " + module], env=variables)[0] != 0:
            raise Skip("Python has no module " + module)
    tree.keep(block)
    code, output = tree.run([interpreter, "-W", "error::SyntaxWarning", "-c", block.content], env=variables)
    return code == 0, output


def go(tree, block):
    command = shutil.which("go") or next((path for path in ("/usr/local/go/bin/go", "/usr/lib/go/bin/go")
                                          if os.path.exists(path)), None)
    if command is None:
        raise Skip("there is no go")
    binding = os.path.join(tree.root, "bindings", "go")
    if not os.path.exists(os.path.join(binding, "go.mod")):
        raise Skip("bindings/go is not here")
    with open(os.path.join(binding, "go.mod"), encoding="utf-8") as file:
        module = re.search(r"^module\s+(\S+)", file.read(), re.MULTILINE).group(1)
    content = block.content
    if not re.search(r"^package ", content, re.MULTILINE):
        if block.marks == ["body"]:
            content = "func body(gate *admit.Gate) {\n" + content + "}\n"
        imports = "" if "import" in content else 'import "%s"\n' % module
        content = "package page\n" + imports + content
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "go.mod"), "w", encoding="utf-8") as file:
            file.write("module example.org/page\n\ngo 1.19\n\nrequire %s v0.0.0\nreplace %s => %s\n" % (module, module, binding))
        name = "page_test.go" if re.search(r"^func (Test|Example)", content, re.MULTILINE) else "page.go"
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(content)
        variables = dict(tree.environment(), GOFLAGS="-mod=mod", GOPROXY="off", GOSUMDB="off", GOTOOLCHAIN="local",
                         GOCACHE=os.path.join(tree.build, "go-cache"))
        code, output = tree.run([command, "vet", "./..."], cwd=folder, env=variables, timeout=300)
        if code != 0 and ("module lookup disabled" in output or "cannot find module providing" in output):
            raise Skip("the block uses a module that is not here")
        if code == 0 and re.search(r"^func main\(\)", content, re.MULTILINE):
            program = os.path.join(folder, "page")
            code, output = tree.run([command, "build", "-o", program, "."], cwd=folder, env=variables, timeout=300)
            if code == 0 and block.marks != ["compiled"]:  # a server would run for ever
                code, output = tree.run([program], timeout=60)
    return code == 0, output


def policy_form(document):
    """Which kind of document this is, by its members."""
    if isinstance(document, dict):
        if "rules" in document:
            return "policy"
        if "entries" in document:
            return "table"
        if "scenarios" in document:
            return "scenarios"
    return None


RULE = '{"version": "1", "rules": [%s]}'


NUMBERS = {
    "token_bucket": '"capacity": 1, "refill": 1, "per": "1s"',
    "concurrency": '"limit": 1, "lease_ttl": "30s"',
    "quota": '"limit": 1, "window": "day"',
    "request_cap": '"limit": 1',
    "pressure": '"signal": "s", "gt": 1',
}


def table(tree, folder, path, content):
    """A limit table is read with a policy: there is a type of rule that it is for."""
    rule, by = (re.search(r"^[\s{,]*[\"']?%s[\"']?\s*:\s*[\"']?([A-Za-z0-9._-]+)" % key, content, re.MULTILINE) or
                re.search(r"[\"']%s[\"']\s*:\s*[\"']([A-Za-z0-9._-]+)" % key, content) for key in ("rule", "by"))
    if rule is None or by is None:
        return False, "a limit table without rule or by"
    output = ""
    for kind, numbers in NUMBERS.items():
        policy = os.path.join(folder, "policy.json")
        with open(policy, "w", encoding="utf-8") as file:
            file.write(RULE % ('{"id": "%s", "type": "%s", "partition_by": ["%s"], %s}' % (rule.group(1), kind, by.group(1), numbers)))
        code, said = tree.run([tree.admit, "explain", policy, "--tables", path, "-d", by.group(1) + "=x"])
        if code == 0:
            return True, ""
        output += "as a table for %s:\n%s\n" % (kind, said)
    return False, output


def document(tree, block, suffix, form):
    """A policy is validated, or must be refused when the block says so; a scenario file is run."""
    tree.needs_command()
    tree.keep(block)
    content = block.content
    refused = "rejected" in block.marks
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "block" + suffix)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        if form == "table":
            return table(tree, folder, path, content)
        code, output = tree.run([tree.admit, "test" if form == "scenarios" else "validate", path])
    if refused:
        return code == 3, "expected a policy that is refused, found exit status %d\n%s" % (code, output)
    return code == 0, output


def json_block(tree, block):
    content = block.content
    if "rejected" in block.marks:
        return document(tree, block, ".json", "policy")
    if "fragment" in block.marks:
        # Members, items, or a value: one of them it must be.
        for around in ("%s", "{%s}", "[%s]"):
            try:
                json.loads(around % content.strip().rstrip(","))
                return True, ""
            except ValueError as problem:
                detail = str(problem)
        return False, detail
    if "rule" in block.marks:
        rules = markdown.Block(block.line, "json", RULE % content.strip().rstrip(","))
        return document(tree, rules, ".json", "policy")
    try:
        parsed = json.loads(content)
    except ValueError as problem:
        return False, str(problem)
    form = policy_form(parsed)
    if form is None:
        return False, "neither a policy, a limit table nor scenarios; say \"json fragment\" or \"json rule\""
    return document(tree, block, ".json", form)


def yaml_block(tree, block):
    if "fragment" in block.marks:
        try:
            import yaml
        except ImportError:
            raise Skip("Python has no module yaml") from None
        try:
            yaml.safe_load(block.content)
            return True, ""
        except yaml.YAMLError as problem:
            return False, str(problem)
    form = "table" if re.search(r"^entries:", block.content, re.MULTILINE) else "policy"
    tree.needs_command()
    tree.needs_yaml()
    return document(tree, block, ".yaml", form)


def shell(tree, block):
    lines = [line.strip() for line in block.content.splitlines() if line.strip() and not line.startswith("#")]
    if all(line.split(" #")[0].startswith(BIG_COMMANDS) for line in lines):
        missing = [line for line in lines if not os.path.exists(os.path.join(tree.root, line.split()[1]))]
        return not missing, "\n".join(missing)
    if "shown" in block.marks:
        code, output = tree.run(["sh", "-n"], text=block.content)
        return code == 0, output
    tree.needs_command()
    tree.keep(block)
    code, output = tree.run(["sh", "-eu", "-c", block.content])
    return code == 0, "exit status %d\n%s" % (code, output)


def console(tree, block):
    try:
        steps = markdown.transcript(block.content)
    except ValueError as problem:
        return False, str(problem)
    tree.needs_command()
    status = 0
    for command, expected in steps:
        # Only so can "echo $?" speak of the command before.
        status, output = tree.run(["sh", "-c", "(exit %d)\n%s" % (status, command)])
        found = [line.rstrip() for line in output.splitlines()]
        if not markdown.same_output([line.rstrip() for line in expected], found):
            return False, "$ %s\nexpected:\n%s\nfound (exit status %d):\n%s" % (
                command, "\n".join(expected), status, "\n".join(found))
    return True, ""


def text(tree, block):
    commands = [line for line in block.content.splitlines() if line.startswith("$ ")]
    return not commands, "a command is for \"console\": " + "\n".join(commands)


def toml(tree, block):
    try:
        import tomllib
    except ImportError:
        raise Skip("Python has no module tomllib") from None
    try:
        tomllib.loads(block.content)
        return True, ""
    except tomllib.TOMLDecodeError as problem:
        return False, str(problem)


def lua(tree, block):
    command = shutil.which("luac") or shutil.which("luac5.4") or shutil.which("luajit")
    if command is None:
        raise Skip("there is no lua")
    check = ["-bl", "-"] if command.endswith("luajit") else ["-p", "-"]
    code, output = tree.run([command] + check, text=block.content)
    return code == 0, output


# language -> (function, marks that it understands)
LANGUAGES = {
    "c": (c, {"body"}),
    "cpp": (cpp, {"body"}),
    "python": (python, set()),
    "go": (go, {"body", "compiled"}),
    "json": (json_block, {"fragment", "rule", "rejected"}),
    "yaml": (yaml_block, {"fragment", "rejected"}),
    "sh": (shell, {"shown"}),
    "console": (console, set()),
    "text": (text, set()),
    "toml": (toml, set()),
    "lua": (lua, set()),
}


# What may read a file of the page at run time.
RUN = ("c", "console", "cpp", "go", "python", "sh")


def try_out(tree, block):
    """(passed, detail), or Skip."""
    if block.language not in LANGUAGES:
        return False, "a block needs a language that is tried out: %s, found \"%s\"" % (
            ", ".join(sorted(LANGUAGES)), block.language)
    function, marks = LANGUAGES[block.language]
    unknown = [mark for mark in block.marks if mark not in marks]
    if unknown:
        return False, "%s blocks know the marks: %s; found %s" % (block.language, ", ".join(sorted(marks)), unknown[0])
    if block.language in RUN and re.search(r"\.ya?ml\b", block.content) and "shown" not in block.marks:
        tree.needs_yaml()
    try:
        return function(tree, block)
    except subprocess.TimeoutExpired as problem:
        return False, str(problem)
