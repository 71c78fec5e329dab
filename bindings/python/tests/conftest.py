# SPDX-License-Identifier: Apache-2.0
import json

import pytest

import admit

RULES = [
    {"id": "busy", "type": "concurrency", "match": {"pool": "*"}, "partition_by": ["pool"], "limit": 2,
     "lease_ttl": "10s"},
    {"id": "rate", "type": "token_bucket", "match": {"consumer": "*"}, "partition_by": ["consumer"], "capacity": 3,
     "refill": 1, "per": "1s"},
    {"id": "cap", "type": "request_cap", "limit": 1000},
]


def policy(version="v1", rules=None):
    return admit.Policy.loads(json.dumps({"version": version, "rules": rules or RULES}))


@pytest.fixture
def gate():
    with admit.Gate(policy()) as made:
        yield made


@pytest.fixture(params=["plain", "deferring"])
def any_gate(request):
    from admit.testing import Deferring

    deferring = Deferring(polls_min=1, polls_max=4, seed=7) if request.param == "deferring" else None
    with admit.Gate(policy(), deferring=deferring, backend_timeout=10) as made:
        yield made
