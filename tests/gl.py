"""What a test does where nothing renders: it is skipped on a person's machine, and fails in CI, which installs GL."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def no_gl(reason: str) -> NoReturn:
    """Skip, or fail in CI."""
    if os.environ.get("CI"):
        pytest.fail(f"CI must render, but: {reason}")
    pytest.skip(reason)
