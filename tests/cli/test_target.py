"""A TARGET names a job in a file or a package; whatever else is said precisely."""

import re
import sys
from pathlib import Path

import pytest

from triolet.actors.cli.target import TargetInvalid, load_job

from .programs import put

pytestmark = pytest.mark.usefixtures("cli")


@pytest.mark.parametrize("name", ["raising", "make"])
def test_a_file_gives_a_job_or_a_function_that_returns_one(
    folder: Path, name: str
) -> None:
    target = put(folder, "ends")
    assert load_job(f"{target}:{name}").plan.job == "raising"


def test_the_only_job_of_a_file_needs_no_name(folder: Path) -> None:
    target = put(folder, "plain")
    assert load_job(target).plan.job == "plain"


def test_a_file_may_import_its_neighbours(folder: Path) -> None:
    put(folder, "plain")
    path = folder / "outer_jobs.py"
    path.write_text("from plain_jobs import job\n", encoding="utf-8")
    assert load_job("outer_jobs.py:job").plan.job == "plain"


def test_a_package_is_found_from_the_present_folder(folder: Path) -> None:
    put(folder, "plain")
    assert load_job("plain_jobs:job").plan.job == "plain"
    package = folder / "nested_jobs"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "inner.py").write_text("from plain_jobs import job\n", encoding="utf-8")
    assert load_job("nested_jobs.inner:job").plan.job == "plain"
    del sys.modules["nested_jobs.inner"]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("missing.py:job", "there is no file 'missing.py'"),
        ("ends_jobs.py", "it has several jobs, name one: :raising, :returning"),
        ("ends_jobs.py:raisin", "it has no 'raisin'; did you mean 'raising'?"),
        ("ends_jobs.py:number", "it is an int, not a Job"),
        ("ends_jobs.py:makes_number", "the function returned an int, not a Job"),
        ("ends_jobs.py:breaks", "ends_jobs.py, line "),
        ("ends_jobs.py:waits", "the function is async"),
        ("ends_jobs.py:raises", "the function needs arguments"),
        ("no_such_module_jobs:job", "there is no module 'no_such_module_jobs'"),
        ("no.such.module:job", "there is no module 'no.such.module'"),
        ("what is this", "write path.py:job or package.module:job"),
        ("", "write path.py:job or package.module:job"),
        (":job", "write path.py:job or package.module:job"),
    ],
)
def test_what_is_wrong_with_a_target_is_said(
    folder: Path, target: str, reason: str
) -> None:
    put(folder, "ends")
    with pytest.raises(TargetInvalid, match=re.escape(reason)) as caught:
        load_job(target)
    assert str(caught.value).startswith(f"cannot use {target!r}: ")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("OnStob", ""), ("mak", "; did you mean 'make'?"), ("jub", "")],
)
def test_what_a_module_imports_is_not_proposed(
    folder: Path, name: str, hint: str
) -> None:
    source = "from triolet.actors import *\ndef make(): return Job('x', [])\n"
    (folder / "maker_jobs.py").write_text(source, encoding="utf-8")
    with pytest.raises(TargetInvalid) as caught:
        load_job(f"maker_jobs.py:{name}")
    assert str(caught.value).endswith(f"it has no {name!r}{hint}")


def test_a_job_with_two_names_is_one_job(folder: Path) -> None:
    path = folder / put(folder, "plain")
    path.write_text(path.read_text() + "again = job\n")
    assert load_job("plain_jobs.py").plan.job == "plain"


def test_a_mistake_inside_our_constructors_is_shown_where_the_user_made_it(
    folder: Path,
) -> None:
    source = "from triolet.actors import CsvReader\n\nCsvReader('x', limit=0)\n"
    (folder / "broken_jobs.py").write_text(source, encoding="utf-8")
    with pytest.raises(TargetInvalid, match=r"broken_jobs\.py, line 3: InvalidValue"):
        load_job("broken_jobs.py")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("x = (", "broken_jobs.py, line 1: '(' was never closed"),
        ("\nimport no_such_thing", "broken_jobs.py, line 2: ModuleNotFoundError: "),
        ("\n\n1 / 0", "broken_jobs.py, line 3: ZeroDivisionError: "),
        ("import sys\nsys.exit(4)", "broken_jobs.py, line 2: SystemExit: 4"),
        ("x = 1", "it has no Job; name a function with :name"),
    ],
)
def test_a_module_that_cannot_be_used_is_named_with_its_line(
    folder: Path, source: str, reason: str
) -> None:
    (folder / "broken_jobs.py").write_text(source, encoding="utf-8")
    with pytest.raises(TargetInvalid, match=re.escape(reason)):
        load_job("broken_jobs.py")


def test_a_compiled_job_may_be_named_and_be_returned(folder: Path) -> None:
    path = folder / "compiled_jobs.py"
    path.write_text(
        "from triolet.actors import Job, Step, compile_job\n"
        "def _load(ctx): pass\n"
        "def made(): return compile_job(Job('ready', [Step('load', _load)]))\n"
        "ready = made()\n"
    )
    for target in (
        "compiled_jobs.py",
        "compiled_jobs.py:ready",
        "compiled_jobs.py:made",
    ):
        assert load_job(target).plan.job == "ready"
