#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Read an exposition with the strict OpenMetrics parser of prometheus_client, and compare what it found.

usage: openmetrics_check.py VENV PROGRAM   run PROGRAM and check what it prints
       openmetrics_check.py VENV           check standard input

The parser is looked for in this Python, then in the virtual environment VENV, which is made if it can be (set
ADMIT_TEST_OFFLINE to leave the network alone). Without a parser the test is skipped: exit 77.
"""
import importlib.util
import os
import subprocess
import sys
import venv

PACKAGE = "prometheus_client"
PRINTED = 16  # label values that openmetrics_dump.c counts


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def run_in_venv(where):
    """Start this script again with the virtual environment's Python."""
    python = os.path.join(where, "bin", "python")
    if not os.path.exists(os.path.join(where, "installed")):
        if os.environ.get("ADMIT_TEST_OFFLINE"):
            skip(PACKAGE + " is not installed, and ADMIT_TEST_OFFLINE is set")
        try:
            venv.create(where, with_pip=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE],
                           check=True, timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except (OSError, subprocess.SubprocessError, SystemExit) as error:
            skip("%s cannot be installed: %s" % (PACKAGE, error))
        open(os.path.join(where, "installed"), "w").close()
    os.execv(python, [python] + sys.argv + ["--in-venv"])


def samples_of(text):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
    families = {}
    samples = {}
    for family in text_string_to_metric_families(text):
        assert family.name not in families, "family twice: " + family.name
        assert family.documentation, "no help: " + family.name
        families[family.name] = family
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in samples, "sample twice: %r" % (key,)
            samples[key] = sample.value
    return families, samples


def check_families(families):
    expected = {
        "admit": "info", "admit_decisions": "counter", "admit_decision_cost": "counter",
        "admit_rule_requests": "counter", "admit_rule_units": "counter", "admit_rule_shadow": "counter",
        "admit_rules_unmetered": "gauge", "admit_lease_operations": "counter", "admit_results": "counter",
        "admit_expired_leases": "counter", "admit_retry_delay_seconds": "histogram",
        "admit_admission_seconds": "histogram", "admit_backend_seconds": "histogram", "admit_unmatched": "counter",
        "admit_repeated_attempts": "counter", "admit_invalid_calls": "counter", "admit_backend_errors": "counter",
        "admit_rebuilt_takes": "counter", "admit_queued_operations": "counter", "admit_policy_changes": "counter",
        "admit_signals": "counter", "admit_pending_operations": "gauge", "admit_signal_values": "gauge",
        "admit_backend_records": "gauge", "admit_backend_records_max": "gauge",
    }
    found = {name: family.type for name, family in families.items()}
    assert found == expected, "families differ: %r" % (set(found.items()) ^ set(expected.items()),)
    for name, family in families.items():
        assert family.unit == ("seconds" if name.endswith("_seconds") else ""), "unit of " + name


def check_values(samples):
    def value(name, **labels):
        return samples[(name, tuple(sorted(labels.items())))]

    models = ["plain", 'quote"d', "back\\slash", "new\nline", "\\n", 'a,b="c"}', "caf\u00e9", "\U0001f600",
              "bad\ufffd\ufffd", "nul\ufffdbyte", "cr\rreturn", "\ufffd\ufffd\ufffd", "# EOF", "trailing\\", " ", "\u2028"]
    assert len(models) == PRINTED
    for i, model in enumerate(models):
        assert value("admit_decision_cost_total", verdict="deny", reason="rate_exceeded", service="chat",
                     x_model=model) == i + 1, repr(model)
    assert value("admit_decisions_total", verdict="allow", reason="emergency_allowed") == 1
    assert value("admit_decisions_total", verdict="deny", reason="state_unavailable") == 1
    assert value("admit_info", policy_version="2026-12-01.1", table_version='odd "version"\\', backend="plain") == 1
    assert value("admit_rule_requests_total", rule="rule.a-1", verdict="allow") == 1
    assert value("admit_rule_units_total", rule="rule.a-1", unit="cost", verdict="deny") == 4
    assert value("admit_rule_units_total", rule="rule.b", unit="input_tokens", verdict="deny") == 0
    assert value("admit_rule_shadow_total", rule="rule.a-1", verdict="unknown") == 6
    assert value("admit_lease_operations_total", operation="divert", outcome="diverted") == 1
    assert value("admit_backend_records_max", kind="classes") == float("inf")
    assert value("admit_backend_records_max", kind="leases") == 65536
    assert value("admit_expired_leases_total") == 12
    # Powers of three below 2^64 / 3: 40 of them; 21 are at most 2^32 (milliseconds), 22 at most 2^34 (nanoseconds).
    assert value("admit_retry_delay_seconds_bucket", le="+Inf") == 40
    assert value("admit_retry_delay_seconds_bucket", le="4294967.296") == 21
    assert value("admit_admission_seconds_bucket", le="17.179869184") == 22
    assert value("admit_admission_seconds_bucket", le="0.000000128") == 5
    total = sum(3 ** i for i in range(40)) / 10 ** 9
    assert abs(value("admit_admission_seconds_sum") - total) < total * 1e-12


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--in-venv"]
    if importlib.util.find_spec(PACKAGE) is None:
        if "--in-venv" in sys.argv:
            skip(PACKAGE + " is not in the virtual environment")
        run_in_venv(arguments[0])
    if len(arguments) > 1:
        raw = subprocess.run(arguments[1:], check=True, stdout=subprocess.PIPE).stdout
    else:
        raw = sys.stdin.buffer.read()
    families, samples = samples_of(raw.decode("utf-8"))
    check_families(families)
    check_values(samples)
    print("%d families, %d samples" % (len(families), len(samples)))


if __name__ == "__main__":
    main()
