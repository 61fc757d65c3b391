"""``triolet migrate``: making the tables, or raising them to the newest version."""

from attrs import frozen

from ...storage.stores import migrate_store
from .answers import Answer


@frozen
class Migrated:
    """The schema's version before and after."""

    before: int
    after: int


def migrate(url: str) -> Answer:
    """Raise the store's schema to this release's version and say so.

    Raises:
        StoreError: The store cannot be used, or a newer release wrote it.
    """
    done = Migrated(*migrate_store(url))
    if done.before == done.after:
        text = f"the store has schema version {done.after} already"
    else:
        text = f"the store was raised from schema version {done.before} to {done.after}"
    return Answer(done, [text])
