#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run test files with pytest and report as TAP.  run.py FILE ..."""
import sys


def main():
    try:
        import pytest
    except ImportError:
        print("1..0 # SKIP this Python has no pytest")
        return 0

    class Tap:
        number = 0

        def say(self, ok, name, rest=""):
            self.number += 1
            print("%s %d - %s%s" % ("ok" if ok else "not ok", self.number, name.replace("#", " "), rest), flush=True)

        def pytest_configure(self, config):
            # Explaining a comparison that failed asks for it; it is an option of the terminal.
            if not hasattr(config.option, "verbose"):
                config.option.verbose = 0

        def pytest_runtest_logreport(self, report):
            name = report.nodeid.encode("ascii", "backslashreplace").decode()
            if report.skipped:
                reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
                self.say(True, name, " # SKIP " + reason)
            elif report.failed or report.when == "call":
                self.say(not report.failed, name, "" if report.when == "call" else " (%s)" % report.when)
            if report.failed:
                print("\n".join("# " + line for line in str(report.longrepr).splitlines()[-60:]))

        def pytest_collectreport(self, report):
            if report.failed:
                self.say(False, report.nodeid + " (collect)")
                print("\n".join("# " + line for line in str(report.longrepr).splitlines()[-60:]))
            elif report.skipped:
                self.say(True, report.nodeid, " # SKIP " + str(report.longrepr[2]))

    tap = Tap()
    code = pytest.main(["-p", "no:terminal", "-p", "no:cacheprovider"] + sys.argv[1:], plugins=[tap])
    print("1..%d" % tap.number)
    # 5: all that was asked for was skipped, and said so.
    return 0 if code in (0, 1, 5) and tap.number else int(code) or 1


if __name__ == "__main__":
    sys.exit(main())
