"""Quiet logs, and how much was tried: each sweep adds its points to the summary."""

import logging

import pytest


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Keep thousands of intended failures from being formatted."""
    caplog.set_level(logging.CRITICAL + 1, "triolet")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    points = 0
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            points += dict(report.user_properties).get("points", 0)
    if points:
        terminalreporter.write_line(f"{points} points of disturbance tried")
