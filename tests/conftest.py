"""Hypothesis profiles: random at home, reproducible in continuous integration.

Neither has a deadline: a busy machine must not fail a test. And PostgreSQL: a server
for each worker, started when a test first asks for it, and a database for each test.
"""

import itertools
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.postgres.server import Server, available_servers, shared_server

settings.register_profile("home", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")

pytest_plugins = ["pytester"]

# A shell lets what it starts in the background ignore SIGINT, and so would the programs
# that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Server:
    """Give the server that every machine has."""
    return shared_server(available_servers()[0])


@pytest.fixture(scope="session", params=available_servers(), ids=str)
def each_postgres(request: pytest.FixtureRequest) -> Server:
    """Give one server after another: the test runs on each."""
    return shared_server(request.param)


@pytest.fixture
def postgres_url(postgres: Server) -> Iterator[str]:
    """Give an empty database of the test's own."""
    yield from _database(postgres)


@pytest.fixture
def each_postgres_url(each_postgres: Server) -> Iterator[str]:
    """Give an empty database of the test's own, on one server after another."""
    yield from _database(each_postgres)


def _database(server: Server) -> Iterator[str]:
    name = f"test_{next(_NUMBERS)}"
    yield server.create_database(name)
    server.drop_database(name)
