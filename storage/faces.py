"""Packages that show names without importing their homes before they are used."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module


def lazy_face(
    package: str, homes: Sequence[str], names: list[str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make the functions ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Args:
        package: Its full name.
        homes: Where the names live, relative to it, quick ones first; the first that
            has a name wins.
        names: What it shows.
    """

    def find(name: str) -> object:
        if name in names:
            for home in homes:
                module = import_module(home, package)
                if hasattr(module, name):
                    found: object = getattr(module, name)
                    setattr(sys.modules[package], name, found)
                    return found
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find, lambda: names
