# SPDX-License-Identifier: Apache-2.0
"""What test programs in Python print: the Test Anything Protocol."""
import sys


class Report:
    """TAP on standard output."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def ok(self, passed, what, detail=""):
        self.count += 1
        self.failed += 0 if passed else 1
        print("%s %d - %s" % ("ok" if passed else "not ok", self.count, what))
        if not passed:
            print("\n".join("# " + line for line in detail.splitlines()))

    def skip(self, what, why):
        self.count += 1
        print("ok %d - %s # SKIP %s" % (self.count, what, why))

    def end(self):
        print("1..%d" % self.count)
        sys.exit(1 if self.failed else 0)
