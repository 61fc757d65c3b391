"""The public faces are complete, resolve, and cost nothing to import."""

import ast
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from triolet.storage.model.errors import TrioletError

ROOT = Path(__file__).parents[1]
FACES = ["triolet.actors", "triolet.actors.testing", "triolet.storage"]
APART = "triolet.actors.cli"
"""Stands above the face; its errors never reach a program."""
HEAVY = {"trio", "sqlite3", "attrs", "cyclopts"}


def declared(face: str) -> Iterator[tuple[str, str]]:
    """List what the face tells a type checker: the home of each name, and the name."""
    path = ROOT.joinpath(*face.split(".")[1:], "__init__.py")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = face.split(".")
            above = above[: len(above) + 1 - node.level]
            home = ".".join([*above, node.module or ""])
            yield from ((home, one.name) for one in node.names if one.asname)


def errors(root: type[TrioletError] = TrioletError) -> Iterator[type[TrioletError]]:
    yield root
    for one in root.__subclasses__():
        yield from errors(one)


def import_everything(face: str) -> None:
    package = import_module(face)
    for module in pkgutil.walk_packages(package.__path__, f"{face}."):
        if not module.name.endswith("__main__"):
            import_module(module.name)


@pytest.mark.parametrize("face", FACES)
def test_every_name_is_the_one_that_type_checkers_see(face: str) -> None:
    module = import_module(face)
    homes = {name: home for home, name in declared(face)}
    assert sorted(homes) == sorted(module.__all__)
    for name, home in homes.items():
        assert getattr(module, name) is getattr(import_module(home), name), name


@pytest.mark.parametrize("face", FACES)
def test_every_error_of_the_library_is_public(face: str) -> None:
    import_everything(face)
    known = {
        one.__name__
        for one in errors()
        if one.__module__.startswith(face) and not one.__module__.startswith(APART)
    }
    assert known - set(import_module(face).__all__) == set()


@pytest.mark.parametrize("face", FACES)
def test_an_unknown_name_is_an_attribute_error(face: str) -> None:
    with pytest.raises(AttributeError, match=f"'{face}' has no attribute 'Jbo'"):
        import_module(face).Jbo  # noqa: B018  # the access is what raises


@pytest.mark.parametrize("face", FACES)
def test_dir_lists_the_face(face: str) -> None:
    module = import_module(face)
    assert dir(module) == sorted(module.__all__)


def test_importing_the_faces_imports_nothing_heavy() -> None:
    script = f"import sys, {', '.join(FACES)}; print(*sys.modules)"
    output = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert HEAVY & set(output.split()) == set()
