# SPDX-License-Identifier: Apache-2.0
"""The extension module that cffi makes: names of the C library as they are in include/admit."""
from typing import Any

ffi: Any
lib: Any
