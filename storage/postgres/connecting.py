"""From a URL to a connection with our settings.

libpq's own options, TLS among them, pass through. The settings that we need are sent
with the connection's first packet, before the URL's own, which therefore win.
"""

import re

from attrs import frozen
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ..backend import Pause, Waits
from ..model.errors import InvalidValue, StoreUnavailable, StoreUnusable
from .wire import ConnectionLost, Wire, open_wire

CONNECT_SECS = 10.0
"""For which a server that does not answer is tried, unless connect_timeout says else."""
PAUSE_SECS = 0.25
PORTS = range(1, 65_536)
_HINTS = ("Is the server running", "Either provide the file")
OLDEST_SERVER = 150_000

_SETTINGS = {
    "statement_timeout": "30s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "60s",
    # Our statements look up rows by key: planning them anew costs more than it finds.
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}
_DEFAULTS = {
    # A peer that has vanished is noticed within half a minute.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
}
_LASTING = re.compile(
    "authentication failed|does not exist|pg_hba|no password|not permitted|"
    "permission denied|certificate|SSL|sslmode|GSS",
)


@frozen
class Address:
    """Where a database is, and how to get in; never printed."""

    conninfo: str
    where: str
    """For people: host, port and database, no secrets."""
    secs: float

    def named(self, application: str) -> bytes:
        """Give the connection string of a connection of that name."""
        return make_conninfo(self.conninfo, application_name=application).encode()

    def __repr__(self) -> str:
        return f"Address({self.where})"


def address_of(url: str) -> Address:
    """Read a URL; `SETTINGS` go before its own options.

    Raises:
        InvalidValue: libpq does not understand it, or a port is none; the URL is not
            repeated.
    """
    try:
        given = conninfo_to_dict(url)
        ports = [int(part) for part in str(given.get("port") or 5432).split(",")]
        secs = float(given.get("connect_timeout") or CONNECT_SECS)
    except (ProgrammingError, ValueError) as exc:
        unknown = re.search(r'invalid URI query parameter: "(\w+)"', str(exc))
        why = f" (it has no option {unknown[1]!r})" if unknown else ""
        raise InvalidValue(
            "the store URL",
            "must be postgresql://USER@HOST:PORT/DATABASE, with options after '?' as "
            f"libpq has them{why}",
        ) from None
    hosts = f"{given.get('host') or ''}{given.get('hostaddr') or ''}"
    if "@" in hosts:
        reason = (
            "holds more than one '@': write those of the user's name and the password "
            "as %40"
        )
        raise InvalidValue("the store URL", reason)
    for port in ports:
        if port not in PORTS:
            reason = f"must be 1 to {PORTS[-1]}, not {port}"
            raise InvalidValue("the port of the store URL", reason)
    settings = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
    kept = {name: str(value) for name, value in given.items() if value is not None}
    wanted = {**_DEFAULTS, **kept, "client_encoding": "utf8"}
    wanted["options"] = f"{settings} {given.get('options') or ''}".strip()
    host = given.get("host") or given.get("hostaddr") or "the local socket"
    database = given.get("dbname") or given.get("user") or ""
    where = f"database {database!r} on {host}, port {ports[0]}"
    return Address(make_conninfo(**wanted), where, secs)


def connect(address: Address, application: str) -> Waits[Wire]:
    """Connect once.

    Raises:
        StoreUnavailable: The server does not answer now.
        StoreUnusable: It never will in this way: wrong password, no such database, a
            release that is too old.
    """
    try:
        wire = yield from open_wire(address.named(application))
    except ConnectionLost as exc:
        reason = _in_one_line(str(exc))
        text = f"PostgreSQL could not be reached ({address.where}): {reason}"
        if _LASTING.search(reason) and "No such file" not in reason:
            raise StoreUnusable(text) from None
        raise StoreUnavailable(text) from None
    if wire.raw.server_version < OLDEST_SERVER:
        found = wire.raw.server_version // 10_000
        wire.close()
        raise StoreUnusable(
            f"PostgreSQL {found} is too old ({address.where}): 15 or newer is needed"
        )
    return wire


def connect_patiently(address: Address, application: str) -> Waits[Wire]:
    """Connect to a server that may still be starting: try for `Address.secs`.

    Raises:
        StoreUnavailable: It did not answer in that time.
        StoreUnusable: See `connect`.
    """
    tries = max(1, round(address.secs / PAUSE_SECS))
    for _ in range(tries - 1):
        try:
            return (yield from connect(address, application))
        except StoreUnavailable:
            yield Pause(PAUSE_SECS)
    try:
        return (yield from connect(address, application))
    except StoreUnavailable as exc:
        raise StoreUnavailable(f"{exc} (tried for {address.secs:g} seconds)") from None


def _in_one_line(text: str) -> str:
    """Keep libpq's last sentence; it names addresses and users, never a password."""
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if line and not line.startswith(_HINTS)]
    return said[-1] if said else "no reason was given"
