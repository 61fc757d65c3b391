"""The pytest plugin: one test function becomes a test of each sweep.

Nothing else of Triolet is imported before a test asks for the fixture.
"""

import argparse
import logging
import shlex
from contextlib import contextmanager
from importlib import import_module

import pytest

# As in typing, whose import costs more than all the rest.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .equivalence import EquivalenceError
    from .scenario import Scenario
    from .sweep import Sweep, Sweeper

SWEEPS = {
    "crash": ("crash_at_every_commit", "points"),
    "cancel": ("cancel_at_every_checkpoint", "points"),
    "stop": ("stop_at_every_checkpoint", "points"),
    "shutdown": ("shutdown_at_every_checkpoint", "points"),
    "mixture": ("disturb", "rounds"),
}
"""The id of each test to its function, and to the argument that limits it."""
PROPERTY = "triolet_points"
"""Of a test's report: how many points were tried."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("triolet", "sweeps over jobs")
    group.addoption(
        "--triolet-seed",
        type=int,
        metavar="N",
        help="the seed of all scenarios, instead of their own: ids, the order of "
        "tasks, the points that are drawn, and the mixtures",
    )
    group.addoption(
        "--triolet-points",
        type=_points,
        metavar="N",
        help="try at most N points in each sweep, drawn by the seed",
    )
    group.addoption(
        "--triolet-only",
        metavar="LINE",
        help="replay one schedule, such as cancel@17,crash-after@3",
    )


def _points(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"must be a number from 1, not {text!r}")
    return int(text)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what the options limit."""
    names = ("seed", "points", "only")
    given = {name: config.getoption(f"triolet_{name}") for name in names}
    words = [f"{name} {value}" for name, value in given.items() if value is not None]
    return f"triolet: {', '.join(words)}" if words else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was tried."""
    points = 0
    for report in terminalreporter.stats.get("passed", ()):
        points += dict(report.user_properties).get(PROPERTY, 0)
    if points:
        terminalreporter.write_line(f"triolet: {points} points of disturbance tried")


@pytest.fixture(params=SWEEPS)
def triolet_sweep(request: pytest.FixtureRequest) -> "Sweeper":
    """Give a function that puts a scenario through a sweep; a test of each sweep."""

    def sweep(scenario: "Scenario") -> "Sweep":
        return _swept(request, scenario)

    return sweep


def _swept(request: pytest.FixtureRequest, scenario: "Scenario") -> "Sweep":
    from attrs import evolve

    from .equivalence import EquivalenceError
    from .schedules import ScheduleError

    seed: int | None = request.config.getoption("triolet_seed")
    if seed is not None:
        scenario = evolve(scenario, seed=seed)
    try:
        with _quietly():
            sweep = _sweep(request, scenario)
    except EquivalenceError as exc:
        failure = f"{exc}\n{_again(request, exc)}"
    except ScheduleError as exc:
        failure = f"--triolet-only: {exc}"
    else:
        print(sweep)  # noqa: T201  # pytest shows it to those who ask for it
        request.node.user_properties.append((PROPERTY, sweep.points))
        return sweep
    pytest.fail(failure, pytrace=False)


@contextmanager
def _quietly() -> "Iterator[None]":
    """Keep what thousands of disturbed runs log out of pytest's report."""
    ours = logging.getLogger("triolet")
    before = ours.level
    ours.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        ours.setLevel(before)


def _sweep(request: pytest.FixtureRequest, scenario: "Scenario") -> "Sweep":
    points: int | None = request.config.getoption("triolet_points")
    only: str | None = request.config.getoption("triolet_only")
    name, limit = SWEEPS[request.param]
    function: Callable[..., Sweep] = getattr(import_module(__package__), name)
    limits = {} if points is None else {limit: points}
    return function(scenario, only=only, **limits)


def _again(request: pytest.FixtureRequest, exc: "EquivalenceError") -> str:
    words = ["pytest", request.node.nodeid, "--triolet-seed", str(exc.seed)]
    if exc.schedule:
        words += ["--triolet-only", exc.schedule]
    return f"Or: {shlex.join(words)}"
