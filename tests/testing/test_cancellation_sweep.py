"""Whatever is cancelled or stopped at any instant says so and comes to its end later."""

import os
from collections.abc import Callable

import pytest

from tests.testing.jobs import STORIES, copying, listening, scenario, writing
from triolet.actors import Job
from triolet.actors.testing import StoreKind, disturb
from triolet.actors.testing.checkpoints import interrupt_at_every_checkpoint
from triolet.actors.testing.interruptions import How

LONG = bool(os.environ.get("TRIOLET_LONG"))
WHOLE = {
    StoreKind.MEMORY: tuple(STORIES),
    StoreKind.SQLITE: (copying, listening, writing),
}
"""On which store every step is tried of which jobs, at least for some interruptions."""
WHOLE_HOW = {
    StoreKind.MEMORY: (How.CANCEL_LAUNCH, How.STOP),
    StoreKind.SQLITE: (How.CANCEL_LAUNCH,),
}
SOME = 10
SEEDS = range(5 if LONG else 1)
MIXTURES = 300 if LONG else 10
Record = Callable[[str, object], None]


@pytest.mark.parametrize("store", StoreKind)
@pytest.mark.parametrize("how", How, ids=lambda how: how.name.lower())
@pytest.mark.parametrize("job", STORIES, ids=lambda job: job.__name__)
def test_disturbed_at_any_task_step_it_is_stopped_and_comes_to_the_same_end(
    job: Callable[[], Job], how: How, store: StoreKind, record_property: Record
) -> None:
    whole = LONG or (how in WHOLE_HOW[store] and job in WHOLE[store])
    points = None if whole else SOME
    tried = 0
    for seed in SEEDS:
        story = scenario(job, store, seed)
        sweep = interrupt_at_every_checkpoint(how.name, story, how, points)
        assert sweep.points == (sweep.steps if whole else SOME)
        tried += sweep.points
    record_property("triolet_points", tried)


@pytest.mark.parametrize("job", STORIES, ids=lambda job: job.__name__)
def test_disturbed_again_and_again_in_one_run_it_comes_to_the_same_end(
    job: Callable[[], Job], record_property: Record
) -> None:
    sweep = disturb(scenario(job, StoreKind.MEMORY), seed=1, rounds=MIXTURES)
    record_property("triolet_points", sweep.points)
