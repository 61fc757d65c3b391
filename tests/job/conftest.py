"""Fixtures of the tests of jobs."""

import pytest

from tests.job.harness import Store, Trace


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def trace() -> Trace:
    return Trace()
