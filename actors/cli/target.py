"""Finding the job that a TARGET names: ``path.py:job`` or ``package.module:job``."""

import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, TracebackType

from ...storage.model.errors import TrioletError, error, with_article
from ..plan.compile import CompiledJob, compiled
from ..plan.definition import Job

_JOBS = (Job, CompiledJob)


@error
class TargetInvalid(TrioletError):
    """The target names no job, or the user's module cannot be imported."""

    code = "target_invalid"
    target: str
    reason: str

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return f"cannot use {self.target!r}: {self.reason}"


def load_job(target: str) -> CompiledJob:
    """Import the user's module and give the job in it.

    Raises:
        TargetInvalid: With what is missing, or what the module raised.
        DefinitionError: The definition has mistakes; all are listed.
    """
    found = load_maker(target)
    return compiled(found if isinstance(found, _JOBS) else found())


def load_maker(
    target: str,
) -> Job | CompiledJob | Callable[[], Job | CompiledJob]:
    """Import the user's module and give the job in it, or the function that makes it.

    Raises:
        TargetInvalid: With what is missing, or what the module raised; the function
            raises the same.
    """
    place, _, name = target.partition(":")
    module = _from_file(target, Path(place)) if place.endswith(".py") else None
    if module is None:
        module = _from_package(target, place)
    found = _named(target, module, name) if name else _only(target, module)
    return found if isinstance(found, _JOBS) else lambda: _called(target, found)


def _from_file(target: str, path: Path) -> ModuleType:
    if not path.is_file():
        raise TargetInvalid(target, f"there is no file {str(path)!r}")
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    loader = spec.loader
    _guarded(target, lambda: loader.exec_module(module))
    return module


def _from_package(target: str, name: str) -> ModuleType:
    if not name or not all(part.isidentifier() for part in name.split(".")):
        reason = "write path.py:job or package.module:job"
        raise TargetInvalid(target, reason)
    sys.path.insert(0, str(Path.cwd()))
    try:
        known = importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        known = False
    if not known:
        raise TargetInvalid(target, f"there is no module {name!r}")
    _guarded(target, lambda: importlib.import_module(name))
    return sys.modules[name]


def _guarded(target: str, load: Callable[[], object]) -> None:
    try:
        load()
    except SyntaxError as exc:
        reason = f"{exc.filename}, line {exc.lineno}: {exc.msg}"
        raise TargetInvalid(target, reason) from exc
    except (Exception, SystemExit) as exc:
        where = _place_of(exc.__traceback__)
        reason = f"{where}: {type(exc).__name__}: {exc}"
        raise TargetInvalid(target, reason) from exc


def _place_of(trace: TracebackType | None) -> str:
    """Name the innermost line that is the user's: not of Python's, not of ours."""
    place = "importing it"
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if not name.startswith("<frozen") and not module.startswith("triolet."):
            place = f"{name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _named(target: str, module: ModuleType, name: str) -> object:
    if hasattr(module, name):
        return getattr(module, name)
    close = difflib.get_close_matches(name, _usable(module), 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise TargetInvalid(target, f"it has no {name!r}{hint}")


def _only(target: str, module: ModuleType) -> object:
    jobs = _jobs(module)
    if len({id(job) for job in jobs.values()}) == 1:
        return next(iter(jobs.values()))
    if not jobs:
        raise TargetInvalid(target, "it has no Job; name a function with :name")
    names = ", ".join(f":{name}" for name in jobs)
    raise TargetInvalid(target, f"it has several jobs, name one: {names}")


def _usable(module: ModuleType) -> list[str]:
    """Name its jobs and the functions that it defines itself, not what it imports."""
    makers = [
        name
        for name, one in vars(module).items()
        if inspect.isfunction(one) and one.__module__ == module.__name__
    ]
    return [*_jobs(module), *makers]


def _jobs(module: ModuleType) -> dict[str, Job | CompiledJob]:
    return {name: one for name, one in vars(module).items() if isinstance(one, _JOBS)}


def _called(target: str, found: object) -> Job | CompiledJob:
    if not callable(found):
        kind = with_article(type(found).__name__)
        raise TargetInvalid(target, f"it is {kind}, not a Job")
    if inspect.iscoroutinefunction(found):
        raise TargetInvalid(target, "the function is async, it must be a plain one")
    try:
        inspect.signature(found).bind()
    except (TypeError, ValueError):
        reason = "the function needs arguments, which there are none to give it"
        raise TargetInvalid(target, reason) from None
    made: list[object] = []
    _guarded(target, lambda: made.append(found()))
    (job,) = made
    if not isinstance(job, _JOBS):
        kind = with_article(type(job).__name__)
        raise TargetInvalid(target, f"the function returned {kind}, not a Job")
    return job
