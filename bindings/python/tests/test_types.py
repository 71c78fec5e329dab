# SPDX-License-Identifier: Apache-2.0
"""The names that the binding uses of the C library are there, and the types are strict."""
import os
import re
import shutil
import subprocess

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


def test_public_names():
    assert all(hasattr(admit, name) for name in admit.__all__)
    assert os.path.exists(os.path.join(PACKAGE, "py.typed"))
