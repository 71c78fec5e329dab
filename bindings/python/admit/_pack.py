# SPDX-License-Identifier: Apache-2.0
"""Python values to what the C library reads, with errors that name the argument."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Union

from ._errors import InvalidArgument, InvalidAttempt, InvalidCost, InvalidDescriptors, shown
from ._native import lib

if TYPE_CHECKING:
    from collections.abc import Sequence

Text = Union[str, bytes]

MAX_AMOUNT: int = lib.ADM_MAX_AMOUNT
_MAX_DESCRIPTORS: int = lib.ADM_MAX_DESCRIPTORS
_MAX_KEY: int = lib.ADM_MAX_KEY_BYTES
_MAX_VALUE: int = lib.ADM_MAX_VALUE_BYTES
_MAX_ATTEMPT: int = lib.ADM_MAX_ATTEMPT_BYTES
_MAX_AMOUNTS: int = lib.ADM_MAX_AMOUNTS

# Keys repeat; what is packed of one is kept. Bounded, because keys may come from anywhere. Nothing but str: bytes have the
# hash of their str, and comparing the two is an error under -bb; a class of one's own may equal whatever it likes.
_KEYS_KEPT = 4096
_heads: dict[tuple[str, int], bytes] = {}


def to_bytes(text: Text, what: str, error: type[InvalidArgument] = InvalidArgument) -> bytes:
    """UTF-8 of a str, or the bytes as they are. NUL is a byte like any other."""
    if isinstance(text, bytes):
        return b"".join((text,))  # of a subclass the bytes alone, whatever it says of its length
    if not isinstance(text, str):
        raise error("%s: expected str or bytes, found %s" % (what, type(text).__name__))
    try:
        return str.encode(text)
    except UnicodeEncodeError:
        raise error("%s: %s has no UTF-8 form (a lone surrogate)" % (what, shown(text))) from None


def _pack_slowly(key: Text, value: Text) -> bytes:
    """One descriptor, with every check."""
    k = to_bytes(key, "descriptor key", InvalidDescriptors)
    if not 1 <= len(k) <= _MAX_KEY:
        raise InvalidDescriptors("descriptor key %s: expected 1 to %d bytes, found %d" % (shown(key), _MAX_KEY, len(k)),
                                 lib.ADM_E_INVALID_DESCRIPTORS)
    v = to_bytes(value, "descriptor %s" % shown(key), InvalidDescriptors)
    if not 1 <= len(v) <= _MAX_VALUE:
        raise InvalidDescriptors("descriptor %s: expected a value of 1 to %d bytes, found %d"
                                 % (shown(key), _MAX_VALUE, len(v)), lib.ADM_E_INVALID_DESCRIPTORS)
    head = bytes((len(k), len(v) & 255, len(v) >> 8)) + k
    if type(key) is str and len(_heads) < _KEYS_KEPT:
        _heads[key, len(v)] = head
    return head + v


def descriptors(given: Mapping[Text, Text]) -> bytes:
    """The packed form that native/shim.h describes."""
    # Asking an abstract class costs more than packing a descriptor.
    if type(given) is not dict and not isinstance(given, Mapping):
        raise InvalidDescriptors("descriptors: expected a mapping, found %s" % type(given).__name__,
                                 lib.ADM_E_INVALID_DESCRIPTORS)
    if len(given) > _MAX_DESCRIPTORS:
        raise InvalidDescriptors("descriptors: expected at most %d, found %d" % (_MAX_DESCRIPTORS, len(given)),
                                 lib.ADM_E_INVALID_DESCRIPTORS)
    packed = b""
    for key, value in given.items():
        # Nothing but str itself: of other things with a length, the length need not be that of their bytes.
        if type(key) is str and type(value) is str:
            try:
                v = value.encode()
                packed += _heads[key, len(v)] + v
                continue
            except (KeyError, UnicodeEncodeError):
                pass
        packed += _pack_slowly(key, value)
    return packed


def whole(number: int, what: str, least: int, most: int = MAX_AMOUNT,
          error: type[InvalidArgument] = InvalidCost) -> int:
    """An int in a range; bool and float are neither."""
    if type(number) is not int and (isinstance(number, bool) or not isinstance(number, int)):
        raise error("%s: expected an int, found %s" % (what, type(number).__name__), lib.ADM_E_INVALID_COST)
    if not least <= number <= most:
        shown = repr(number) if abs(number) < 10 ** 24 else "a number of %d bits" % number.bit_length()
        raise error("%s: expected a whole number from %d to %d, found %s" % (what, least, most, shown),
                    lib.ADM_E_INVALID_COST)
    return number


def attempt(text: Text | None) -> bytes:
    if text is None:
        return b""
    raw = to_bytes(text, "attempt", InvalidAttempt)
    if not 1 <= len(raw) <= _MAX_ATTEMPT:
        raise InvalidAttempt("attempt: expected 1 to %d bytes, found %d" % (_MAX_ATTEMPT, len(raw)),
                             lib.ADM_E_INVALID_ATTEMPT)
    return raw


def check_amounts(given: Mapping[str, int], what: str) -> Sequence[tuple[str, int]]:
    if not isinstance(given, Mapping):
        raise InvalidCost("%ss: expected a mapping, found %s" % (what, type(given).__name__), lib.ADM_E_INVALID_COST)
    if len(given) > _MAX_AMOUNTS:
        raise InvalidCost("%ss: expected at most %d, found %d" % (what, _MAX_AMOUNTS, len(given)),
                          lib.ADM_E_INVALID_COST)
    pairs = []
    for unit, value in given.items():
        if not isinstance(unit, str):
            raise InvalidCost("%s: expected the name of a unit, found %s" % (what, shown(unit)), lib.ADM_E_INVALID_COST)
        pairs.append((unit, whole(value, "%s %s" % (what, shown(unit)), 0)))
    return pairs
