"""Every error that Triolet raises on purpose, as one tree.

The class says whose fault it is; ``code`` is a stable word for stored records and
scripts; the text is one sentence with ids and names in it, never with payloads.
Errors compare by value, because a rejection is also a reply of the store.
"""

from collections.abc import Iterable
from typing import ClassVar, TypeVar, dataclass_transform

import attrs

E = TypeVar("E", bound="TrioletError")


@dataclass_transform(field_specifiers=(attrs.field,))
def error(cls: type[E]) -> type[E]:
    """Make *cls* an error whose fields are its identity: equal, hashable, picklable."""
    return attrs.define(cls, slots=False, auto_exc=False, unsafe_hash=True)


class TrioletError(Exception):
    """Root of all errors of this library."""

    code: ClassVar[str] = "triolet_error"

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return str(self.args[0]) if self.args else (type(self).__doc__ or self.code)

    def __reduce__(self) -> tuple[object, ...]:
        kind: type = type(self)
        if not attrs.has(kind):
            return (kind, self.args)
        return (kind, tuple(getattr(self, one.name) for one in attrs.fields(kind)))


@error
class Problem(TrioletError):
    """One thing that is wrong with a definition."""

    code = "definition_problem"
    node: str | None
    reason: str

    def __str__(self) -> str:
        return f"{self.node!r}: {self.reason}" if self.node else self.reason


@error
class DefinitionError(TrioletError):
    """The job's author made mistakes; all of them are listed, nothing was written."""

    code = "definition_invalid"
    job: str
    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        count = len(self.problems)
        head = f"job {self.job!r} has {count} mistake{'s' if count > 1 else ''}"
        return f"{head}: " + "; ".join(str(problem) for problem in self.problems)


@error
class InvalidName(TrioletError):
    """A name breaks the rules; the text is not repeated, it may be sensitive."""

    code = "name_invalid"
    kind: str
    reason: str

    def __str__(self) -> str:
        return f"the {self.kind} {self.reason}"


@error
class InvalidParameter(TrioletError):
    """A launch parameter is unknown, missing or of the wrong type."""

    code = "parameter_invalid"
    name: str
    reason: str

    def __str__(self) -> str:
        return f"parameter {self.name!r} {self.reason}"


@error
class InvalidValue(TrioletError):
    """A value cannot be stored, or an argument is out of its bounds."""

    code = "value_invalid"
    what: str
    reason: str

    def __str__(self) -> str:
        return f"{self.what} {self.reason}"


class Rejection(TrioletError):
    """The store said no and changed nothing; asking again unchanged is pointless."""

    code = "rejected"


class StoreError(TrioletError):
    """The store itself is at fault: unreachable, locked, of another kind or broken."""

    code = "store_error"


@error
class StoreUnavailable(StoreError):
    """The store could not be used; nothing was written, and a repetition may succeed."""

    code = "store_unavailable"
    reason: str

    def __str__(self) -> str:
        return self.reason


@error
class StoreLocked(StoreUnavailable):
    """Another process held the store's write lock for longer than we wait."""

    code = "store_locked"


@error
class StoreUnusable(StoreError):
    """The store is read-only, not a database, or not writable by this user."""

    code = "store_unusable"
    reason: str

    def __str__(self) -> str:
        return self.reason


@error
class SchemaMissing(StoreError):
    """The store has no schema or an older one, and may not be migrated here."""

    code = "schema_missing"
    found: int | None
    """0 for no schema; None when it was not looked at closely."""
    needed: int

    def __str__(self) -> str:
        if self.found == 0:
            return (
                "there is nothing of Triolet's in the store yet: the first run of a job "
                "makes its tables, and so does 'triolet migrate'"
            )
        known = "missing or older" if self.found is None else f"version {self.found}"
        return (
            f"the store's schema is {known}, version {self.needed} is needed: run "
            "'triolet migrate' once"
        )


@error
class SchemaTooNew(StoreError):
    """The store was written by a newer release; this one refuses to touch it."""

    code = "schema_too_new"
    found: int
    known: int

    def __str__(self) -> str:
        return (
            f"the store's schema is version {self.found}, but this release knows "
            f"versions up to {self.known}: use a newer triolet"
        )


@error
class StoreGone(StoreError):
    """The storage actor ended before it could take up the command."""

    code = "store_gone"

    def __str__(self) -> str:
        return "the store was closed before the command could be carried out"


@error
class CommitOutcomeUnknown(StoreError):
    """A commit was sent, and it cannot be found out whether it took effect."""

    code = "commit_outcome_unknown"

    def __str__(self) -> str:
        return (
            "the answer to a commit was lost and its outcome could not be settled: when "
            "the store can be reached, 'triolet doctor' tells what is open, and the same "
            "command goes on where the store says"
        )


@error
class CorruptRecord(StoreError):
    """A stored record does not follow its own format; it is never guessed at."""

    code = "record_corrupt"
    what: str
    reason: str

    def __str__(self) -> str:
        return f"{self.what} in the store is corrupt: {self.reason}"


@error
class DriverMissing(StoreError):
    """The package that talks to this kind of store is not installed."""

    code = "driver_missing"

    def __str__(self) -> str:
        return "a PostgreSQL store needs psycopg: pip install 'triolet[postgres]'"


@error
class UndeclaredCapability(StoreError):
    """The job needs what this kind of store cannot do; nothing was written."""

    code = "undeclared_capability"
    store: str
    missing: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"a store of kind {self.store!r} has no {listed(self.missing)}, which the "
            "job needs: use another store"
        )


@error
class InsufficientPoolCapacity(StoreError):
    """The job needs more connections than the runtime has; nothing was written."""

    code = "insufficient_pool_capacity"
    required: int
    configured: int

    def __str__(self) -> str:
        return (
            f"the job needs {self.required} connections and the runtime has "
            f"{self.configured}: raise RuntimeOptions(connections=...), which counts "
            "one less and is for PostgreSQL, or lower pool_size="
        )


@error
class InternalError(TrioletError):
    """A bug of Triolet itself; please report it."""

    code = "internal_error"
    what: str

    def __str__(self) -> str:
        return f"internal error, please report it: {self.what}"


def with_article(word: str) -> str:
    """Put a type's name behind its article: ``an int``, ``a str``, ``a UUID``."""
    return f"{'an' if word.startswith(tuple('AEIOaeio')) else 'a'} {word}"


def listed(words: Iterable[str]) -> str:
    """Write *words* as an English list: ``a, b and c``."""
    every = list(words)
    if len(every) < 2:
        return "".join(every)
    return ", ".join(every[:-1]) + " and " + every[-1]
