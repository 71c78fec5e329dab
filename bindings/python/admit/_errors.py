# SPDX-License-Identifier: Apache-2.0
"""What a call could not do. A denial is not among it: that is a value."""
from __future__ import annotations

from typing import NoReturn

from ._native import ffi, lib


class AdmitError(Exception):
    """A call that could not be carried out; nothing was changed. ``status`` is the number of the C library, ``name`` its
    stable name, for instance "ADM_E_UNKNOWN_RULE"."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.name = status_name(status)


class InvalidArgument(AdmitError, ValueError):
    """An argument that can never be right."""


class InvalidCost(InvalidArgument):
    """A cost or amount out of range, or a unit twice."""


class InvalidDescriptors(InvalidArgument):
    """Too many descriptors, or a key or value of illegal length."""


class InvalidAttempt(InvalidArgument):
    """An attempt id of illegal length, or one that is known with other contents."""


class UnknownRule(AdmitError, LookupError):
    """The policy in force has no rule of that id."""


class UnknownVersion(AdmitError, LookupError):
    """No kept policy has this version."""


class VersionConflict(AdmitError):
    """A kept policy has this version and other content."""


class BackendError(AdmitError):
    """The state could not be reached, has no room, or it is not known what happened."""


class Closed(AdmitError):
    """The gate was closed."""


class OutOfMemory(AdmitError, MemoryError):
    """No memory; nothing was taken."""


_CLASSES = {
    lib.ADM_E_INVALID_COST: InvalidCost,
    lib.ADM_E_INVALID_DESCRIPTORS: InvalidDescriptors,
    lib.ADM_E_INVALID_ATTEMPT: InvalidAttempt,
    lib.ADM_E_UNKNOWN_RULE: UnknownRule,
    lib.ADM_E_UNKNOWN_VERSION: UnknownVersion,
    lib.ADM_E_VERSION_CONFLICT: VersionConflict,
    lib.ADM_E_NOMEM: OutOfMemory,
}


def status_name(status: int) -> str:
    text: bytes = ffi.string(lib.adm_status_name(status))
    return text.decode()


def fail(status: int, doing: str = "") -> NoReturn:
    """Raise what belongs to a failing status."""
    cls: type[AdmitError] | None = _CLASSES.get(status)
    if cls is None:
        kind = lib.adm_status_class(status)
        cls = (InvalidArgument if kind == lib.ADM_STATUS_CLASS_CALLER else
               BackendError if kind == lib.ADM_STATUS_CLASS_BACKEND else AdmitError)
    text: str = ffi.string(lib.adm_status_text(status)).decode()
    raise cls("%s: %s" % (doing, text) if doing else text, status)


def shown(value: object) -> str:
    """repr() for a message: the start of what is long."""
    try:
        text = repr(value[:80] if isinstance(value, (str, bytes)) else value)
    except Exception:  # of a whole number with thousands of digits, for one
        text = "something of type " + type(value).__name__
    return text if len(text) <= 100 else text[:97] + "..."
