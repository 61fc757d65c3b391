"""``triolet migrate``: making the tables, or raising them to the newest version."""

from ...storage.stores import migrate_store
from .exit_codes import DONE
from .output import emit


def migrate(url: str) -> int:
    """Raise the store's schema to this release's version and say so.

    Raises:
        StoreError: The store cannot be used, or a newer release wrote it.
    """
    before, after = migrate_store(url)
    if before == after:
        emit([f"the store {url} has schema version {after} already"])
    else:
        emit([f"the store {url} was raised from schema version {before} to {after}"])
    return DONE
