"""Is the other process alive? Known, known not to be, or honestly unknown."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve

from triolet.actors.kernel import liveness
from triolet.actors.kernel.liveness import is_alive, this_process
from triolet.storage.commands import OwnerFacts

PID = 4711
STAT = f"{PID} (a (strange) name) S " + " ".join(str(n) for n in range(4, 53))
START = "22"
OTHER = OwnerFacts(
    host="mill", pid=PID, boot_id="boot", pid_namespace="pid:[1]", process_start=START
)


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /proc in which process PID runs, and so does this one."""
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("boot\n")
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to("pid:[1]")
    for pid in (PID, os.getpid()):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(STAT)
    monkeypatch.setattr(liveness, "_PROC", tmp_path)
    return tmp_path


def test_this_process_is_alive() -> None:
    here = this_process()
    assert here.pid == os.getpid()
    assert here.host
    assert is_alive(here) is (None if here.process_start is None else True)


def test_the_facts_of_a_process_are_read_from_proc(proc: Path) -> None:
    facts = this_process()
    assert (facts.boot_id, facts.pid_namespace) == ("boot", "pid:[1]")
    assert facts.process_start == START


def test_a_process_with_the_same_pid_and_start_time_is_alive(proc: Path) -> None:
    assert is_alive(OTHER) is True


def test_a_process_that_is_not_there_is_dead(proc: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert is_alive(evolve(OTHER, pid=ended.pid)) is False


def test_a_process_that_is_hidden_is_not_taken_for_dead(proc: Path) -> None:
    assert is_alive(evolve(OTHER, pid=os.getppid())) is None


def test_a_process_that_took_over_the_pid_is_another_one(proc: Path) -> None:
    assert is_alive(evolve(OTHER, process_start="7")) is False


@pytest.mark.parametrize("state", ["Z", "X"])
def test_a_process_that_only_waits_to_be_reaped_is_dead(proc: Path, state: str) -> None:
    (proc / str(PID) / "stat").write_text(STAT.replace(" S ", f" {state} "))
    assert is_alive(OTHER) is False


@pytest.mark.parametrize(
    "other",
    [
        evolve(OTHER, boot_id="another"),
        evolve(OTHER, boot_id=None),
        evolve(OTHER, pid_namespace="pid:[2]"),
        evolve(OTHER, pid_namespace=None),
        evolve(OTHER, process_start=None),
    ],
)
def test_a_process_that_cannot_be_compared_is_unknown(
    proc: Path, other: OwnerFacts
) -> None:
    assert is_alive(other) is None


def test_without_proc_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "_PROC", tmp_path / "none")
    here = this_process()
    assert (here.boot_id, here.pid_namespace, here.process_start) == (None,) * 3
    assert is_alive(here) is None
    assert is_alive(OTHER) is None


def test_a_process_of_which_nothing_can_be_read_is_not_declared_dead(
    proc: Path,
) -> None:
    stat = proc / str(PID) / "stat"
    stat.unlink()
    stat.mkdir()
    assert is_alive(OTHER) is None
