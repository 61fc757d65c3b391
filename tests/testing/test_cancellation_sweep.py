"""Whatever is cancelled or stopped at any instant says so and comes to its end later."""

import os
from collections.abc import Callable
from random import Random

import pytest

from tests.testing.disturbing import How, play, sweep
from tests.testing.jobs import STORIES, copying, listening, scenario, writing
from triolet.actors import Job
from triolet.actors.testing import Fault, StoreKind, Variant
from triolet.actors.testing.equivalence import differences

LONG = bool(os.environ.get("TRIOLET_LONG"))
WHOLE = {
    StoreKind.MEMORY: tuple(STORIES),
    StoreKind.SQLITE: (copying, listening, writing),
}
"""On which store every step is tried of which jobs, at least for a cancelled launch."""
SEEDS = range(5 if LONG else 1)
MIXTURES = 300 if LONG else 5


@pytest.mark.parametrize("store", StoreKind)
@pytest.mark.parametrize("how", How, ids=lambda how: how.name.lower())
@pytest.mark.parametrize("job", STORIES, ids=lambda job: job.__name__)
def test_disturbed_at_any_task_step_it_is_stopped_and_comes_to_the_same_end(
    job: Callable[[], Job],
    how: How,
    store: StoreKind,
    record_property: Callable[[str, object], None],
) -> None:
    whole = LONG or (how is How.CANCEL_LAUNCH and job in WHOLE[store])
    stride = 1 if whole else 7
    points = sum(sweep(scenario(job, store, seed), how, stride) for seed in SEEDS)
    assert points > 0
    record_property("points", points)


@pytest.mark.parametrize("job", STORIES, ids=lambda job: job.__name__)
def test_disturbed_and_crashed_in_one_run_it_comes_to_the_same_end(
    job: Callable[[], Job], record_property: Callable[[str, object], None]
) -> None:
    for seed in range(MIXTURES):
        random = Random(seed)
        how = random.choice(list(How))
        story = scenario(job, StoreKind.MEMORY, seed)
        undisturbed = play(story, how)
        number = random.randint(1, len(undisturbed.steps))
        commits = random.sample(range(1, 2 * len(story.run().commits)), 3)
        faults = [Fault(one, random.choice(list(Variant))) for one in sorted(commits)]
        played = play(story, how, number, *faults)
        where = (how, number, faults, story)
        assert list(differences(undisturbed.ending, played.ending)) == [], where
    record_property("points", MIXTURES)
