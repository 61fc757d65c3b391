"""``triolet upgrade``: letting a changed job continue what an earlier one began."""

from collections.abc import Iterator, Sequence

from attrs import evolve

from ...storage.commands.upgrading import FindDefinition
from ...storage.model.errors import InvalidValue, listed
from ..job.upgrading import Upgraded, upgrade_of, upgraded
from .answers import Answer
from .asking import ask, carry_out
from .confirming import confirm
from .target import load_job


def upgrade(
    target: str,
    url: str,
    revision: str,
    renamed: Sequence[str],
    *,
    yes: bool = False,
    dry_run: bool = False,
) -> Answer:
    """Register an upgrade and say what is carried over.

    Raises:
        InvalidValue: A pair is not OLD=NEW, or names what is not there.
        DefinitionUnknown: The job was never launched under that revision.
        UpgradeConflict: Another upgrade between the two is registered.
        ConfirmationMissing: Something is left behind, and nobody said yes.
    """
    pairs = dict(map(_pair, renamed))
    job = load_job(target)
    earlier = ask(url, FindDefinition(job.plan.job, revision))
    command = upgrade_of(job, earlier, pairs, None)
    found = upgraded(job, earlier, command)
    if not dry_run:
        if found.left_behind:
            confirm(_question(found), yes)
        done = carry_out(url, command)
        found = evolve(found, registered=True, unchanged=done.unchanged)
    return Answer(found, list(_lines(found)))


def _question(found: Upgraded) -> str:
    new = f", and begin {listed(found.new)} anew" if found.new else ""
    return (
        "a renamed node has to be given as OLD=NEW, and an upgrade is never changed; "
        f"leave {listed(found.left_behind)} behind, with all that was done there{new}"
    )


def _lines(found: Upgraded) -> Iterator[str]:
    renamed = [f"{old} as {new}" for old, new in found.continued.items() if old != new]
    kept = len(found.continued) - len(renamed)
    verb = "continues" if found.registered else "would continue"
    yield ", ".join(
        [
            f"job {found.job} of revision {found.revision} {verb} revision "
            f"{found.earlier}: {kept} node{'' if kept == 1 else 's'} as before",
            *renamed,
        ]
    )
    if found.left_behind:
        yield f"  left behind: {', '.join(found.left_behind)}"
    if found.new:
        yield f"  new: {', '.join(found.new)}"


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise InvalidValue(f"the pair {text!r}", "must be OLD=NEW")
    return old, new
