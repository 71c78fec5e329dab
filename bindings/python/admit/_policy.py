# SPDX-License-Identifier: Apache-2.0
"""Policies: text in, an immutable rule set or located findings out."""
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from ._errors import AdmitError, InvalidArgument, fail, shown
from ._native import ffi, lib

if TYPE_CHECKING:
    from typing import Literal

    Format = Literal["json", "yaml"]

_SEVERITIES = {lib.ADM_SEVERITY_ERROR: "error", lib.ADM_SEVERITY_WARNING: "warning", lib.ADM_SEVERITY_NOTE: "note"}


@dataclass(frozen=True)
class Finding:
    """One finding about a document. A note says more about the finding before it, at another place."""

    severity: str
    code: str
    name: str
    line: int
    column: int
    length: int
    pointer: str
    message: str
    nearest: str | None
    file: str

    def __str__(self) -> str:
        place = "%s:" % self.file if self.file else ""
        if self.line:
            place += "%d:%d:" % (self.line, self.column)
        text = "%s %s[%s]: " % (place, self.severity, self.code)
        if self.pointer and self.severity != "note":
            text += self.pointer + ": "
        text += self.message
        if self.nearest is not None:
            text += "; did you mean %s?" % self.nearest
        return text.lstrip()


class PolicyError(AdmitError, ValueError):
    """A document that is not valid; ``findings`` says where and why."""

    def __init__(self, findings: tuple[Finding, ...], status: int = lib.ADM_E_POLICY_INVALID) -> None:
        super().__init__("\n".join(map(str, findings)) or "the document is not valid", status)
        self.findings = findings


def text_of(pointer: Any) -> str:
    text: bytes = b"" if pointer == ffi.NULL else ffi.string(pointer)
    return text.decode("utf-8", "replace")


def take_findings(diags: Any) -> tuple[Finding, ...]:
    """The findings of a load, which are freed."""
    try:
        found = []
        for i in range(lib.adm_diags_count(diags)):
            diag = ffi.new("struct adm_diag *")
            diag.size = ffi.sizeof("struct adm_diag")
            if lib.adm_diags_get(diags, i, diag) != lib.ADM_OK:
                continue
            found.append(Finding(
                severity=_SEVERITIES.get(diag.severity, "error"), code=text_of(diag.code), name=text_of(diag.name),
                line=diag.line, column=diag.column, length=diag.length, pointer=text_of(diag.pointer),
                message=text_of(diag.message), nearest=None if diag.nearest == ffi.NULL else text_of(diag.nearest),
                file=text_of(diag.file)))
        return tuple(found)
    finally:
        lib.adm_diags_free(diags)


def format_of(path: str) -> Format:
    return "yaml" if path.endswith((".yaml", ".yml")) else "json"


def document_bytes(text: Union[str, bytes]) -> bytes:
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        # A lone surrogate becomes bytes that the reader refuses, with its place.
        return text.encode("utf-8", "surrogatepass")
    raise InvalidArgument("text: expected str or bytes, found %s" % type(text).__name__)


def is_yaml(format: str) -> bool:
    if format not in ("json", "yaml"):
        raise InvalidArgument("format: expected 'json' or 'yaml', found %s" % shown(format))
    return format == "yaml"


class Policy:
    """A policy that was read and compiled: immutable, and may be shared by gates and threads."""

    __slots__ = ("_pointer", "warnings", "__weakref__")

    _pointer: Any
    warnings: tuple[Finding, ...]

    def __init__(self) -> None:
        raise TypeError("use Policy.from_file() or Policy.loads()")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a file: YAML when its name ends in .yaml or .yml, else JSON."""
        name = os.fspath(path)
        with open(name, "rb") as file:
            return cls.loads(file.read(), format=format_of(name), file=name)

    @classmethod
    def loads(cls, text: str | bytes, *, format: Format = "json", file: str = "") -> Policy:
        """Read a text; ``file`` is the name that findings give. Raises PolicyError."""
        raw = document_bytes(text)
        options = ffi.new("struct adm_policy_options *")
        options.size = ffi.sizeof("struct adm_policy_options")
        options.flags = lib.ADM_POLICY_YAML if is_yaml(format) else 0
        name = ffi.new("char[]", file.encode("utf-8", "replace"))
        options.file = name
        out = ffi.new("struct adm_policy **")
        diags = ffi.new("struct adm_diags **")
        view = ffi.from_buffer(raw)
        status = lib.adm_policy_load({"data": view, "length": len(raw)}, options, out, diags)
        findings = take_findings(diags[0])
        if status == lib.ADM_E_POLICY_INVALID:
            raise PolicyError(findings)
        if status != lib.ADM_OK:
            fail(status, "cannot read the policy")
        policy = object.__new__(cls)
        policy._pointer = ffi.gc(out[0], lib.adm_policy_unref)
        policy.warnings = findings
        return policy

    @property
    def version(self) -> str:
        return text_of(lib.adm_policy_version(self._pointer))

    def __len__(self) -> int:
        """The number of rules."""
        count: int = lib.adm_policy_rule_count(self._pointer)
        return count

    def __repr__(self) -> str:
        return "<admit.Policy %s, %d rules>" % (self.version, len(self))
