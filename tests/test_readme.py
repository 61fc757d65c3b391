"""Every Python example of the README runs as it stands there."""

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import triolet.actors as face

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
(
    ORDERS,
    PAGES,
    SQUARES,
    BESIDE,
    NESTED,
    EMBEDDING,
    ENQUEUING,
    ASSEMBLY,
    TESTING,
) = EXAMPLES


def python(folder: Path, *words: str) -> str:
    """Run Python in *folder*, which must end well, and give what it printed."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def count(folder: Path, table: str) -> int:
    with closing(sqlite3.connect(folder / "triolet.db")) as database:
        (found,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert isinstance(found, int)
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TRIOLET_STORE", raising=False)
    (tmp_path / "orders.py").write_text(ORDERS, encoding="utf-8")
    return tmp_path


def test_the_first_job_is_run_by_the_command_line_and_embedded(folder: Path) -> None:
    command = ("-m", "triolet.actors.cli")
    python(folder, *command, "run", "orders.py:job", "day=2026-11-30")
    assert "execution 1" in python(folder, *command, "show", "1")
    assert python(folder, "-c", EMBEDDING) == "COMPLETED 200000\n"
    assert count(folder, "orders") == 400_000


def test_a_request_is_enqueued_with_a_row_and_served(folder: Path) -> None:
    command = ("-m", "triolet.actors.cli")
    python(folder, *command, "migrate")
    python(folder, "-c", ENQUEUING)
    assert count(folder, "incoming") == 1
    python(folder, *command, "serve", "orders.py:job", "--once")
    assert count(folder, "orders") == 200_000


def test_code_is_bound_to_a_plan_and_launched(folder: Path) -> None:
    launch = EMBEDDING.replace("from orders import job", ASSEMBLY)
    launch = launch.replace('launch(job, day="2026-12-01")', "launch(nightly)")
    launch = launch.replace("load", "fetch")
    assert python(folder, "-c", launch) == "reported\nCOMPLETED 0\n"


def test_branches_and_partitions_run_from_the_command_line(folder: Path) -> None:
    (folder / "settle.py").write_text(BESIDE, encoding="utf-8")
    said = python(folder, "-m", "triolet.actors.cli", "run", "settle.py:job")
    assert "partitions: 10 COMPLETED" in said


def test_a_loop_goes_round(folder: Path) -> None:
    (folder / "pages.py").write_text(PAGES, encoding="utf-8")
    said = python(folder, "-m", "triolet.actors.cli", "run", "pages.py:pages")
    assert "fetch (visit 3)" in said


def test_a_job_runs_another_one_twice(folder: Path) -> None:
    (folder / "closing.py").write_text(NESTED, encoding="utf-8")
    command = ("-m", "triolet.actors.cli")
    python(folder, *command, "run", "closing.py:job", "day=2026-12-03")
    assert "job booking: execution 2" in python(folder, *command, "show", "1")
    said = python(folder, *command, "show", "3")
    assert "run by step lending of execution 1" in said
    assert "books = lending" in said


def test_the_reader_and_the_writer_load_every_row_once(folder: Path) -> None:
    (folder / "squares.py").write_text(SQUARES, encoding="utf-8")
    python(folder, "-m", "triolet.actors.cli", "run", "squares.py:job")
    assert count(folder, "squares") == count(folder, "(SELECT DISTINCT n FROM squares)")
    assert count(folder, "squares") == 10_000


def test_the_test_passes_in_each_of_its_sweeps(folder: Path) -> None:
    (folder / "test_jobs.py").write_text(TESTING, encoding="utf-8")
    said = python(folder, "-m", "pytest", "-v", "test_jobs.py")
    names = re.findall(r"test_the_job_survives\[(\w+)\] PASSED", said)
    table = README.split("| test | what happens")[1].split("\n\n")[0]
    assert names == re.findall(r"`(\w+)`", table)


def test_the_guide_to_testing_runs(folder: Path) -> None:
    guide = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```python\n(.*?)```", guide, re.DOTALL))
    (folder / "test_guide.py").write_text(examples, encoding="utf-8")
    said = python(folder, "-m", "pytest", "-v", "test_guide.py")
    assert "8 passed" in said


def test_every_error_that_is_named_is_public() -> None:
    (section,) = re.findall(r"\*\*Errors\.\*\*.*?\n## ", README, re.DOTALL)
    names = set(re.findall(r"`([A-Z][A-Za-z]+)`", section))
    assert len(names) > 10
    assert names <= set(face.__all__)
