"""``triolet migrate``: making the tables, or raising them to the newest version."""

from ...storage.stores import StoreOptions, open_store
from .exit_codes import DONE


def migrate_store(url: str) -> int:
    """Raise the store's schema to this release's version and say so.

    Raises:
        StoreError: The store cannot be used, or a newer release wrote it.
    """
    backend = open_store(url, StoreOptions(create=True, migrate=True))
    version = backend.descriptor.schema_version
    backend.close()
    print(f"the store {url} has schema version {version}")
    return DONE
