"""Where tests find models, and on which device they run."""
import contextlib
import json
import os
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]
MODELS = SOURCE / "models"
GOLDEN = SOURCE / "tests" / "golden"
TASKS = SOURCE / "tests" / "tasks" / "golden"
if "VKFORMER_TEST_INSTALLED" not in os.environ:  # else what pip installed
    sys.path.insert(0, str(SOURCE / "bindings" / "python"))


def device_options():
    """The device that VKFORMER_TEST_DEVICE, _TIER and _LIMITS name, as in the C++ tests."""
    found = {name: os.environ.get(f"VKFORMER_TEST_{name.upper()}") for name in ("device", "tier", "limits")}
    return {name: value for name, value in found.items() if value}


def expected(name):
    """The right results of a task's golden case."""
    return json.loads((TASKS / name / "expected.json").read_text(encoding="utf-8"))


@contextlib.contextmanager
def unrecorded():
    """Calls inside do not count as tests of the functions (run.py)."""
    from vkformer import _c
    kept, _c.called = _c.called, None
    try:
        yield
    finally:
        _c.called = kept
