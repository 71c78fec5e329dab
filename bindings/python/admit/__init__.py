# SPDX-License-Identifier: Apache-2.0
"""May this work start? A gate answers that on the request path, all rules of a policy or nothing.

    gate = admit.Gate.from_file("policy.json")
    decision = gate.admit({"consumer": "alice"})
    if decision.allowed: ... ; decision.lease.release()
"""
from ._decision import Decision, Denied, Lease
from ._errors import (AdmitError, BackendError, Closed, InvalidArgument, InvalidAttempt, InvalidCost, InvalidDescriptors,
                      OutOfMemory, UnknownRule, UnknownVersion, VersionConflict)
from ._gate import BackendInfo, Event, Explanation, Gate, Hold, Request, RuleReport
from ._policy import Finding, Policy, PolicyError

__all__ = [
    "AdmitError", "BackendError", "BackendInfo", "Closed", "Decision", "Denied", "Event", "Explanation", "Finding", "Gate",
    "Hold", "InvalidArgument", "InvalidAttempt", "InvalidCost", "InvalidDescriptors", "Lease", "OutOfMemory", "Policy",
    "PolicyError", "Request", "RuleReport", "UnknownRule", "UnknownVersion", "VersionConflict",
]
