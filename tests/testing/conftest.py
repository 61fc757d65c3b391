"""Quiet logs."""

import logging

import pytest


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Keep thousands of intended failures from being formatted."""
    caplog.set_level(logging.CRITICAL + 1, "triolet")
