"""Every kind of job comes to its end whatever commits the process dies at."""

import os
from collections.abc import Callable

import pytest

from tests.testing.jobs import STORIES, scenario
from triolet.actors import Job
from triolet.actors.testing import StoreKind, Variant, crash_at_every_commit

LONG = bool(os.environ.get("TRIOLET_LONG"))
SEEDS = range(10 if LONG else 1)
Record = Callable[[str, object], None]


@pytest.mark.parametrize("store", StoreKind)
@pytest.mark.parametrize("job", STORIES, ids=lambda job: job.__name__)
def test_a_crash_at_any_commit_changes_nothing_of_the_end(
    job: Callable[[], Job], store: StoreKind, record_property: Record
) -> None:
    sweeps = [crash_at_every_commit(scenario(job, store, seed)) for seed in SEEDS]
    points = sum(sweep.points for sweep in sweeps)
    assert points == len(Variant) * sum(len(sweep.commits) for sweep in sweeps)
    record_property("triolet_points", points)
