"""Imports run strictly downwards; pyproject.toml lists the floors, top to bottom."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LAYERS, *REST = SETTINGS["tool"]["importlinter"]["contracts"]
BANS: list[tuple[str, list[str], list[str]]] = [
    (ban["name"], ban["source_modules"], ban["forbidden_modules"]) for ban in REST
]

# Module to the depth of its floor and its room; ":" joins modules in one room.
FLOORS: dict[str, tuple[float, str]] = {
    module: (depth, layer if ":" in layer else module)
    for depth, layer in enumerate(LAYERS["layers"])
    for module in re.findall(r"[\w.]+", layer)
}
# A package's own face, and any module that no floor names, lies above the floors
# that the face shows to users.
for face, below in ("triolet.actors", "composition"), ("triolet.storage", "stores"):
    FLOORS[face] = (FLOORS[f"{face}.{below}"][0] - 0.5, face)


def module_name(path: Path) -> str:
    parts = ("triolet", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def within(name: str, *packages: str) -> bool:
    return f"{name}.".startswith(tuple(f"{package}." for package in packages))


def floor(name: str) -> tuple[float, str]:
    return FLOORS[max((room for room in FLOORS if within(name, room)), key=len)]


def imports(path: Path) -> Iterator[tuple[int, str, bool]]:
    """List what a module imports: line, absolute name, written relatively or not."""
    package = ("triolet", *path.parent.relative_to(ROOT).parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, False) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            start = (*above, *filter(None, [node.module]))
            for alias in node.names:
                yield node.lineno, ".".join((*start, alias.name)), node.level > 0


def complaint(source: str, target: str, relative: bool) -> str | None:
    """Say what is wrong when *source* imports *target*; None when nothing is."""
    for name, sources, forbidden in BANS:
        if within(source, *sources) and within(target, *forbidden):
            return name
    if target.partition(".")[0] in {"actors", "storage", "triolet"} and not relative:
        return "imports of our own code are relative here"
    if relative:
        (here, room), (there, other) = floor(source), floor(target)
        if there <= here and room != other:
            return "imports run strictly downwards"
    return None


def test_imports_run_strictly_downwards() -> None:
    offences = [
        f"{path.relative_to(ROOT)}:{line}: imports {target}: {wrong}"
        for top in ("actors", "storage")
        for path in sorted((ROOT / top).rglob("*.py"))
        for line, target, relative in imports(path)
        if (wrong := complaint(module_name(path), target, relative))
    ]
    if offences:
        pytest.fail("\n".join(offences), pytrace=False)
