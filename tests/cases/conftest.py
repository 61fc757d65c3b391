"""Fixtures of the cases."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases.world import World
from tests.job.harness import Trace
from triolet.actors.cli import main


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def trace() -> Trace:
    return Trace()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give a store that several runtimes can share."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def command(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Give the command line, run in the world's folder, without its log handlers."""
    monkeypatch.chdir(world.folder)
    root, job = logging.getLogger(), logging.getLogger("triolet.job")
    handlers, levels = [*root.handlers], (root.level, job.level)

    def run(*words: str) -> int:
        try:
            return main([*words, "--store", world.url])
        finally:
            root.handlers[:] = handlers
            root.setLevel(levels[0])
            job.setLevel(levels[1])

    return run
