#!/usr/bin/env python3
"""All tests of the package, with numpy; then that they called every C function.

    run.py [NAME...]    the tests of those files only, without the last check

Calls that only ask what happens with nothing or with wrong types do not count."""
import sys
import unittest
from pathlib import Path

import numpy  # noqa: F401, before small_test hides it

import places  # noqa: F401, says where the package is
from vkformer import _c

NAMES = ("small_test", "tasks_test", "objects_test", "guest_test", "abuse_test", "notebook_test")


def main():
    sys.path.insert(0, str(Path(__file__).parent))
    chosen = sys.argv[1:] or NAMES
    _c.called = set()
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromNames(chosen))
    for test, reason in result.skipped:
        print(f"Skipped: {test}: {reason}")
    if not result.wasSuccessful():
        return 1
    if chosen == NAMES:
        import gc
        gc.collect()
        missing = sorted(set(_c.functions) - _c.called)
        print(f"python: {len(_c.functions) - len(missing)} of {len(_c.functions)} C functions called"
              + (f"; not called: {missing}" if missing else ""))
        return 1 if missing else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
