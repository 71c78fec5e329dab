# SPDX-License-Identifier: Apache-2.0
"""The names that the binding uses of the C library are there, and the types are strict."""
import ast
import os
import re
import shutil
import subprocess
import sys

import pytest

import admit
from admit._native import ffi, lib

PACKAGE = os.path.dirname(admit.__file__)
SOURCES = [name for name in sorted(os.listdir(PACKAGE)) if name.endswith(".py")]


@pytest.mark.parametrize("name", SOURCES)
def test_names_of_the_library(name):
    with open(os.path.join(PACKAGE, name), encoding="utf-8") as file:
        text = file.read()
    used = set(re.findall(r"\blib\.((?:adm|ADM|shim|SHIM)_\w+)", text))
    assert not [word for word in used if not hasattr(lib, word)]
    for struct in set(re.findall(r"struct (?:adm|shim)_\w+", text)):
        assert ffi.typeof(struct).kind == "struct"


def test_all_functions_of_the_headers_are_declared():
    missing = []
    include = os.environ.get("ADMIT_INCLUDE")
    if not include:
        pytest.skip("ADMIT_INCLUDE does not name the folder of the headers")
    for header in ("status.h", "types.h", "policy.h", "metrics.h", "backends.h", "admit.h"):
        with open(os.path.join(include, "admit", header), encoding="utf-8") as file:
            names = re.findall(r"^ADM_API [^;{]*?\b(adm_\w+)\(", file.read(), re.MULTILINE)
        assert names
        missing += [name for name in names if not hasattr(lib, name)]
    assert not missing


def test_mypy_strict(tmp_path):
    command = shutil.which("mypy")
    if command is None:
        pytest.skip("mypy is not installed")
    done = subprocess.run([command, "--strict", "--cache-dir", str(tmp_path), PACKAGE], capture_output=True, text=True,
                          cwd=tmp_path, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr


def stub():
    """The class of the stub that says what lib has."""
    with open(os.path.join(PACKAGE, "_native.pyi"), encoding="utf-8") as file:
        return next(n for n in ast.parse(file.read()).body if isinstance(n, ast.ClassDef) and n.name == "_Lib").body


def stub_type(of):
    """What the stub has to say of an argument."""
    if of.kind == "primitive":
        return "float" if of.cname in ("double", "float") else "int"
    if of.kind == "struct":
        return "_Struct"
    return "_Bytes" if of.kind == "pointer" and of.item.cname == "char" else "_CData"


@pytest.mark.parametrize("node", [n for n in stub() if isinstance(n, ast.FunctionDef)], ids=lambda n: n.name)
def test_the_stub_of_a_function_is_its_prototype(node):
    prototype = ffi.typeof(getattr(lib, node.name))
    assert [a.annotation.id for a in node.args.posonlyargs[1:]] == [stub_type(a) for a in prototype.args]
    assert not node.args.args and not node.args.vararg and not node.args.kwonlyargs
    given = node.returns.value if isinstance(node.returns, ast.Constant) else node.returns.id
    result = prototype.result
    assert given == {"void": None, "primitive": "int"}.get(result.kind, "_CData")


def test_the_stub_has_every_name_that_is_used_and_no_other():
    used = set()
    for name in SOURCES:
        with open(os.path.join(PACKAGE, name), encoding="utf-8") as file:
            used |= set(re.findall(r"\blib\.(\w+)", file.read()))
    names = {n.name if isinstance(n, ast.FunctionDef) else n.target.id for n in stub()}
    assert names - used <= {"shim_measure_decisions", "shim_measure_pairs"} and not used - names
    for node in stub():
        if isinstance(node, ast.AnnAssign) and node.annotation.id == "int":
            assert type(getattr(lib, node.target.id)) is int


def test_stubtest(tmp_path):
    """Of the other modules the types are in the source itself."""
    if subprocess.run([sys.executable, "-c", "import mypy.stubtest"], capture_output=True).returncode:
        pytest.skip("this Python has no mypy")
    done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "admit._native"], capture_output=True, text=True,
                          cwd=tmp_path, env=dict(os.environ, MYPYPATH=os.path.dirname(PACKAGE), PYTHONPATH=os.path.dirname(PACKAGE)))
    assert done.returncode == 0, done.stdout + done.stderr


def test_public_names():
    assert all(hasattr(admit, name) for name in admit.__all__)
    assert os.path.exists(os.path.join(PACKAGE, "py.typed"))
