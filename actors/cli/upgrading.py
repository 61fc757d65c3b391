"""``triolet upgrade``: letting a changed job continue what an earlier one began."""

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from ...storage.commands.upgrading import FindDefinition
from ...storage.model.errors import InvalidValue, listed
from ..job.upgrading import upgrade_of
from ..plan.compile import compile_job
from ..plan.manifest import read_manifest
from ..plan.upgrade import begun_new, left_behind
from .answers import Answer
from .asking import ask, carry_out
from .confirming import confirm
from .target import load_job


@frozen(kw_only=True)
class Upgraded:
    """What an upgrade carries over, and what it does not."""

    job: str
    revision: str
    earlier: str
    """The revision that is continued."""
    continued: Mapping[str, str]
    """Earlier node to the one that continues it."""
    left_behind: tuple[str, ...]
    """Earlier nodes that nothing continues: whatever they did is forgotten."""
    new: tuple[str, ...]
    """Nodes that continue nothing: they run, whatever was done under another name."""
    registered: bool
    """False: it was only previewed."""


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
    job = compile_job(load_job(target))
    earlier = ask(url, FindDefinition(job.plan.job, revision))
    command = upgrade_of(job, earlier, pairs, None)
    found = Upgraded(
        job=job.plan.job,
        revision=job.revision,
        earlier=revision,
        continued=dict(command.steps),
        left_behind=left_behind(read_manifest(earlier.manifest), command.steps),
        new=begun_new(job.plan, command.steps),
        registered=not dry_run,
    )
    if not dry_run:
        if found.left_behind:
            confirm(_question(found), yes)
        carry_out(url, command)
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
