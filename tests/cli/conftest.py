"""A folder to work in, and the command within this process."""

import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import frozen

from triolet.actors.cli import main


@frozen
class Said:
    """What one command came to."""

    code: int
    out: str
    err: str


Cli = Callable[..., Said]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRIOLET_STORE", raising=False)
    return tmp_path


@pytest.fixture
def cli(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Cli]:
    """Run a command line here; what it does to the process is undone."""
    root, job = logging.getLogger(), logging.getLogger("triolet.job")
    handlers, levels = [*root.handlers], (root.level, job.level)
    modules = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def run(*words: str) -> Said:
        code = main([*words])
        said = capsys.readouterr()
        root.handlers[:] = handlers
        return Said(code, said.out, said.err)

    yield run
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    job.setLevel(levels[1])
    for name in set(sys.modules) - modules:
        if name.endswith("_jobs") and "." not in name:
            del sys.modules[name]


def is_one_sentence(said: Said) -> bool:
    """Tell whether the last line explains it, and no traceback is shown."""
    lines = said.err.splitlines()
    return (
        bool(lines)
        and lines[-1].startswith("triolet: ")
        and ("Traceback" not in said.err + said.out)
    )
