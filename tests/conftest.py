"""One thread for torch: the problems here are too small to share between cores."""

import pytest
import torch

torch.set_num_threads(1)
# Checks that test files share; their asserts show what they compared, like those in the files.
pytest.register_assert_rewrite("tests.data.hostile", "tests.gradients.exactly")


def pytest_collection_modifyitems(items):
    """An hour for the long forms."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(3600))
