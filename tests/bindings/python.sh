#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Says why the tests of the Python package do not run.
echo "1..0 # SKIP the Python package is not built: no Python here has cffi and its headers, or -Dpython=disabled"
