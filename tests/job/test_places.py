"""The place of a failure is a line of the user's own code."""

import json
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from triolet.actors import CsvFileMissing, CsvReader
from triolet.actors.job.places import Place, place_of


def raised(work: Callable[[], object]) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011  # whatever it is
        work()
    return caught.value


def fails() -> None:
    raise ValueError("here")


def line_of(function: Callable[[], object]) -> int:
    return function.__code__.co_firstlineno + 1


def test_it_is_written_without_the_folder() -> None:
    assert str(Place("/home/somebody/orders.py", 12)) == "orders.py, line 12"


def test_the_innermost_line_counts() -> None:
    assert place_of(raised(lambda: fails())) == Place(__file__, line_of(fails))


def test_what_python_does_for_the_user_does_not_count() -> None:
    def parse() -> None:
        json.loads("{")

    assert place_of(raised(parse)) == Place(__file__, line_of(parse))


def test_what_we_do_for_the_user_does_not_count() -> None:
    def read() -> None:
        CsvReader("missing.csv").open(None)

    exc = raised(read)
    assert isinstance(exc, CsvFileMissing)
    assert place_of(exc) == Place(__file__, line_of(read))


def test_of_a_group_the_first_exception_counts() -> None:
    async def child() -> None:
        fails()

    async def work() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)

    exc = raised(lambda: trio.run(work))
    assert place_of(exc) == Place(__file__, line_of(fails))


def test_an_installed_job_is_shown_by_its_first_line() -> None:
    file = str(Path(sysconfig.get_path("purelib"), "settled", "jobs.py"))
    code = compile("def deep(): 1 / 0\ndef work(): deep()\n", file, "exec")
    names = {"__name__": "settled.jobs"}
    exec(code, names)
    work = names["work"]
    assert callable(work)
    (place,) = [place_of(one) for one in [_from_installed(work)]]
    assert place == Place(file, 2)


def _from_installed(work: Callable[[], object]) -> BaseException:
    """Give what *work* raises without a line of this file in its traceback."""
    exc = raised(work)
    trace = exc.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return exc.with_traceback(trace)


def test_what_was_never_raised_has_no_place() -> None:
    assert place_of(ValueError("unborn")) is None
