"""The one connection of a backend: opened, checked, dropped and made again."""

from ..backend import WaitedTooLong, Waits, drive
from ..model.errors import StoreUnavailable
from . import schema
from .connecting import address_of, connect, connect_patiently
from .faults import explained
from .wire import ConnectionLost, Refusal, Wire

BROKEN = "the connection to PostgreSQL broke"
_FORGET_OLD = (
    "DELETE FROM triolet.commit_marker "
    "WHERE marked_at < triolet.now() - 86400::bigint * 1000000"
)
_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off'"
)


class Link:
    """A connection that is made again when it is lost.

    Args:
        url: As libpq has it.
        writer: Names this connection among those of all processes.
        create: Whether our schema may be made where there is none.
        migrate: Whether an older schema may be raised.
        read_only: Whether the role only has to be allowed to read.
    """

    def __init__(
        self, url: str, *, writer: str, create: bool, migrate: bool, read_only: bool
    ) -> None:
        self._address = address_of(url)
        self._writer = writer
        self._create = create
        self._migrate = migrate
        self._read_only = read_only
        self._connections = 0
        self._wire: Wire | None = None

    @property
    def name(self) -> str:
        """What the server calls the connection; each new one has a name of its own."""
        return f"triolet {self._writer} {self._connections}"

    @property
    def wire(self) -> Wire | None:
        """The connection, if there is one."""
        return self._wire

    def open(self) -> Waits[None]:
        """Connect for the first time, patiently; check the schema or make it.

        Raises:
            StoreUnavailable: The server did not answer in time.
            StoreUnusable: Wrong password, no such database, a server that is too old,
                a missing privilege.
            SchemaTooNew: A newer release wrote the store.
            SchemaMissing: The schema is missing or older, and may not be migrated.
        """
        self._connections += 1
        wire = yield from connect_patiently(self._address, self.name)
        try:
            found = yield from schema.version_of(wire)
            if self._migrate or (self._create and found == 0):
                yield from schema.migrate(wire)
            yield from schema.require(wire, read_only=self._read_only)
            if not self._read_only:
                yield from wire.exchange([(_DURABLE, ()), (_FORGET_OLD, ())])
        except Refusal as refusal:
            wire.close()
            raise explained(refusal.sqlstate) from refusal
        except ConnectionLost as lost:
            wire.close()
            raise StoreUnavailable(BROKEN) from lost
        except BaseException:
            wire.close()
            raise
        self._wire = wire

    def connect(self) -> None:
        """Do what `open` does, blocking."""
        secs = self._address.secs
        try:
            drive(self.open(), timeout=2 * secs)
        except WaitedTooLong:
            raise StoreUnavailable(
                f"PostgreSQL did not answer ({self._address.where}) within "
                f"{2 * secs:g} seconds"
            ) from None

    def drop(self) -> None:
        """Close the connection, if there is one; the server rolls back what was open."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def connected(self) -> Waits[Wire]:
        """Give the connection; make it anew when it is lost.

        Raises:
            StoreUnavailable: The server does not answer.
            ConnectionLost: It was lost again at once.
        """
        if self._wire is not None and self._wire.broken:
            self.drop()
        if self._wire is None:
            self._connections += 1
            self._wire = yield from connect(self._address, self.name)
            yield from self._wire.exchange([(_DURABLE, ())])
        return self._wire
