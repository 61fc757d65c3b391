"""Fixtures of the contract suite: every test that asks for a client runs per backend."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.backends import KINDS, Clock, open_backend
from tests.storage.client import Client
from triolet.storage.backend import Backend


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=KINDS)
def backend(
    request: pytest.FixtureRequest, clock: Clock, tmp_path: Path
) -> Iterator[Backend]:
    backend = open_backend(request.param, clock, tmp_path)
    yield backend
    backend.close()


@pytest.fixture
def client(backend: Backend, clock: Clock) -> Client:
    return Client(backend, clock)
