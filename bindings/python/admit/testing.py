# SPDX-License-Identifier: Apache-2.0
"""For tests of what uses a gate: a clock that stands still, and a backend that answers late."""
from __future__ import annotations

from dataclasses import dataclass

from ._errors import InvalidArgument, shown
from ._native import ffi

__all__ = ["Deferring", "ManualClock"]


class ManualClock:
    """Both clocks of a gate (``Gate(policy, clock=clock)``), in nanoseconds; they move only when told to."""

    __slots__ = ("_fake",)

    def __init__(self, ns: int = 0) -> None:
        self._fake = ffi.new("struct adm_fake_clock *")
        self.set_ns(ns)

    @property
    def ns(self) -> int:
        now: int = self._fake.time.mono_ns
        return now

    def set_ns(self, ns: int) -> None:
        """Both clocks to exactly this moment, also backwards."""
        if isinstance(ns, bool) or not isinstance(ns, int) or not 0 <= ns < 1 << 64:
            raise InvalidArgument("ns: expected a whole number from 0 to 2^64 - 1, found %s" % shown(ns))
        self._fake.time.mono_ns = ns
        self._fake.time.wall_ns = ns

    def advance(self, seconds: float) -> None:
        self.set_ns(self.ns + round(seconds * 1e9))


@dataclass(frozen=True)
class Deferring:
    """A backend in which an operation waits for some polls, drawn from ``seed``, before it is carried out; so many of
    1000 never are (``Gate(policy, deferring=Deferring())``)."""

    polls_min: int = 0
    polls_max: int = 3
    seed: int = 1
    never_permille: int = 0
