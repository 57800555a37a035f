"""One thread for torch: the problems here are too small to share between cores."""

import os
import signal

import pytest
import torch
from hypothesis import settings

from tests import interpreter  # noqa: F401 - says how Triton's kernels are run, before one is imported

torch.set_num_threads(1)
# A shell starts what runs in its background deaf to Ctrl-C, and all that this starts would be as deaf.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# `nohup` has it ignore the end of a terminal.
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
# Checks that test files share; their asserts show what they compared, like those in the files.
pytest.register_assert_rewrite("tests.data.hostile", "tests.gradients.exactly")


def pytest_configure(config):
    """No example has a deadline: on a busy machine that tests the machine. The short forms draw fewer
    examples, where a test does not say how many."""
    now = settings.get_profile("ci" if "CI" in os.environ else "default")
    short = {"max_examples": 40} if config.option.markexpr == "not slow" else {}
    settings.register_profile("askance", now, deadline=None, **short)
    settings.load_profile("askance")


def pytest_collection_modifyitems(items):
    """An hour for the long forms."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(3600))
