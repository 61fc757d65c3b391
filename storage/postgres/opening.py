"""From a URL to an open store, or to a raised schema; both block."""

from ..backend import Waits, drive
from ..model.errors import StoreUnavailable
from . import schema
from .backend import PostgresBackend
from .connecting import address_of, connect_patiently
from .faults import explained
from .link import BROKEN
from .wire import ConnectionLost, Refusal


def open_postgres(
    url: str,
    *,
    writer: bytes,
    create: bool = True,
    migrate: bool = False,
    read_only: bool = False,
) -> PostgresBackend:
    """Open a PostgreSQL store, blocking; see `PostgresBackend`.

    Raises:
        InvalidValue: libpq does not understand the URL.
        StoreError: See `PostgresBackend.open`.
    """
    backend = PostgresBackend(
        url, writer=writer, create=create, migrate=migrate, read_only=read_only
    )
    backend.connect()
    return backend


def migrate_database(url: str) -> tuple[int, int]:
    """Raise a database's schema; give the versions before and after.

    Raises:
        StoreError: The database cannot be used, or a newer release wrote it.
    """
    address = address_of(url)

    def migrated() -> Waits[tuple[int, int]]:
        wire = yield from connect_patiently(address, "triolet migrate")
        try:
            return (yield from schema.migrate(wire))
        except Refusal as refusal:
            raise explained(refusal.sqlstate) from refusal
        except ConnectionLost as lost:
            raise StoreUnavailable(BROKEN) from lost
        finally:
            wire.close()

    return drive(migrated())
