"""``run``, ``list``, ``show``, ``migrate`` and ``version``, as a user meets them."""

import os
import subprocess
from pathlib import Path

import pytest

from .conftest import Cli
from .programs import (
    STORE,
    command,
    environment,
    put,
    put_people,
    rows,
    statuses,
    triolet,
)


def test_a_job_runs_and_its_report_is_printed(folder: Path, cli: Cli) -> None:
    target = put(folder, "csv")
    put_people(folder, 5)
    said = cli("run", f"{target}:job")
    assert said.code == 0
    assert said.out.startswith("job csv: COMPLETED in ")
    assert "5 read, 5 written, 3 chunks" in said.out
    assert rows(folder, "SELECT count(*), sum(id) FROM people") == [(5, 10)]


def test_progress_goes_to_standard_error_only(folder: Path, cli: Cli) -> None:
    target = put(folder, "csv")
    put_people(folder, 5)
    said = cli("run", target)
    assert "load: COMPLETED, 5 items" in said.err
    assert "items" not in said.out


def test_a_failed_job_goes_on_where_it_failed(folder: Path, cli: Cli) -> None:
    target = put(folder, "routes")
    failed = cli("run", target)
    assert failed.code == 11
    assert "give the same command again" in failed.out
    (folder / "mended").touch()
    mended = cli("run", target)
    assert mended.code == 0
    assert "continued execution 1" in mended.out
    assert "first: reused, it had completed" in mended.err
    assert statuses(folder) == ["FAILED", "COMPLETED"]


def test_show_names_what_a_restarted_execution_reused(folder: Path, cli: Cli) -> None:
    target = put(folder, "routes")
    cli("run", target)
    (folder / "mended").touch()
    cli("run", target)
    first, second = cli("show", "1"), cli("show", "2")
    assert (first.code, second.code) == (0, 0)
    assert "execution 1 of job routes: FAILED, exit FAILED" in first.out
    assert "failure: last: RuntimeError: not mended [USER_COMPONENT]" in first.out
    assert "attempt 2, continues 1" in second.out
    lines = [line.split() for line in second.out.splitlines()]
    assert ["first", "from", "execution", "1"] in lines
    assert f"owner: process {os.getpid()} on host " in second.out
    decided = [line for line in lines if "->" in line]
    assert [line[1:3] for line in decided] == [
        ["first", "COMPLETED"],
        ["choose", "GO"],
        ["last", "COMPLETED"],
    ]
    assert "as in execution 1" in second.out


def test_new_twice_gives_runs_one_and_two(folder: Path, cli: Cli) -> None:
    target = put(folder, "plain")
    outs = [
        cli("run", target),
        cli("run", target, "--new"),
        cli("run", target, "--new"),
    ]
    assert [said.code for said in outs] == [0, 0, 0]
    heads = [said.out.splitlines()[0] for said in outs]
    assert "run" not in heads[0]
    assert heads[1].endswith("(execution 2, attempt 1, run 1)")
    assert heads[2].endswith("(execution 3, attempt 1, run 2)")
    assert (folder / "runs").read_text() == "xxx"
    listed = cli("list").out.splitlines()
    assert [line.split()[-1] for line in listed] == ["parameters", "2", "1", "s"]


def test_other_parameters_are_another_instance(folder: Path, cli: Cli) -> None:
    target = put(folder, "plain")
    codes = [
        cli("run", target, *given).code
        for given in (["n:int=5"], ["n=5"], ["n:bool=yes"], ["n:int=5"])
    ]
    assert codes == [0, 0, 0, 3]


def test_the_store_of_the_environment_is_honoured(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIOLET_STORE", "sqlite:///elsewhere.db")
    assert cli("run", put(folder, "plain")).code == 0
    assert (folder / "elsewhere.db").exists()
    assert not (folder / STORE).exists()
    assert "plain" in cli("list").out


def test_a_given_store_wins_over_the_environment(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIOLET_STORE", "sqlite:///elsewhere.db")
    absolute = f"sqlite:///{folder / 'given.db'}"
    assert cli("run", put(folder, "plain"), "--store", absolute).code == 0
    assert (folder / "given.db").exists()
    assert not (folder / "elsewhere.db").exists()


def test_a_job_in_memory_leaves_no_file(folder: Path, cli: Cli) -> None:
    assert cli("run", put(folder, "plain"), "--store", "memory:").code == 0
    assert not list(folder.glob("*.db*"))


def test_a_secret_is_neither_printed_nor_stored(folder: Path, cli: Cli) -> None:
    target = put(folder, "typed")
    secret = "hunter2-4711"
    failed = cli("run", target, "day=monday", "count=3", f"key={secret}", "--debug")
    quiet = cli("run", target, "day=monday", "count=3", f"key={secret}")
    shown = [cli("show", number).out for number in ("1", "2")] + [cli("list").out]
    assert (failed.code, quiet.code) == (11, 11)
    assert "cannot log in with ***" in quiet.err
    texts = [failed.out, quiet.out, quiet.err, *shown]
    assert not [text for text in texts if secret in text]
    assert "parameter key = ***" in shown[0]
    assert "parameter day = monday" in shown[0]
    files = [path.read_bytes() for path in folder.glob(f"{STORE}*")]
    assert files
    assert not [raw for raw in files if secret.encode() in raw]


def test_another_secret_is_another_instance(folder: Path, cli: Cli) -> None:
    target = put(folder, "typed")
    cli("run", target, "day=monday", "key=one")
    other = cli("run", target, "day=monday", "key=two")
    again = cli("run", target, "day=monday", "key=one")
    assert "attempt 1" in other.out
    assert "attempt 2" in again.out


def test_list_filters_and_pages(folder: Path, cli: Cli) -> None:
    plain, routes = put(folder, "plain"), put(folder, "routes")
    for day in ("a", "b", "c"):
        cli("run", plain, f"day={day}")
    cli("run", routes)

    def found(*words: str) -> list[tuple[str, str]]:
        lines = cli("list", *words).out.splitlines()[1:]
        return [(line.split()[0], line.split()[1]) for line in lines]

    everything = [("4", "routes"), ("3", "plain"), ("2", "plain"), ("1", "plain")]
    assert found() == everything
    assert found("--job", "plain") == everything[1:]
    assert found("--status", "failed") == everything[:1]
    assert found("--job", "nobody") == []
    assert found("--before", "3") == everything[2:]
    page = cli("list", "--limit", "2").out
    assert page.splitlines()[-1] == "there are more: add --before 3"
    assert found("--limit", "2")[:2] == everything[:2]
    assert "there are more" not in cli("list", "--limit", "4").out


def test_asking_an_empty_store_writes_nothing_about_executions(
    folder: Path, cli: Cli
) -> None:
    assert cli("migrate").code == 0
    assert cli("list").out == "no executions\n"


def test_migrate_makes_a_store_and_may_be_repeated(folder: Path, cli: Cli) -> None:
    first, second = cli("migrate"), cli("migrate")
    assert (first.code, second.code) == (0, 0)
    assert "was raised from schema version 0 to " in first.out
    assert "already" in second.out
    assert (folder / STORE).exists()


def test_the_version_is_printed_in_both_ways(cli: Cli) -> None:
    said = cli("version")
    assert said.code == 0
    assert cli("--version").out == said.out


def test_help_lists_the_commands(cli: Cli) -> None:
    said = cli("--help")
    assert said.code == 0
    assert all(word in said.out for word in ("run", "list", "show", "migrate"))
    assert "key=value" in cli("run", "--help").out


def test_an_ended_reader_of_the_output_is_its_own_exit_code(tmp_path: Path) -> None:
    triolet("run", put(tmp_path, "plain"), cwd=tmp_path)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            command("list"),
            cwd=tmp_path,
            env=environment(),
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.returncode == 10
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_behind_the_output_is_its_own_exit_code(tmp_path: Path) -> None:
    triolet("run", put(tmp_path, "plain"), cwd=tmp_path)
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            command("list"),
            cwd=tmp_path,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 10
    assert done.stderr.startswith("triolet: ")
    assert "Traceback" not in done.stderr


def test_a_job_ends_well_although_nobody_reads_its_progress(tmp_path: Path) -> None:
    put_people(tmp_path, 5)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            command("run", put(tmp_path, "csv")),
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=writing,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert statuses(tmp_path) == ["COMPLETED"]
    assert rows(tmp_path, "SELECT count(*) FROM people") == [(5,)]
    assert done.returncode in (0, 10)
