"""How a runtime works: the options that `open_runtime` takes."""

from random import Random, SystemRandom

from attrs import field, frozen

from ...storage.model.errors import InvalidValue
from ..kernel.offload import PATIENCE_SECS
from ..kernel.storage_actor import DEADLINE_SECS
from .events import EventSink

LEASE_SECS = 30.0
LEASE_SECS_MIN = 1.0
LEASE_SECS_MAX = 3600.0
STOP_POLL_SECS = 1.0
STOP_POLL_SECS_MIN = 0.1
STOP_POLL_SECS_MAX = 60.0
BLOCK_SECS = 0.5
BLOCK_SECS_MIN = 0.01
BLOCK_SECS_MAX = 60.0
CONNECTIONS = 2
CONNECTIONS_MAX = 64
THREADS_MAX = 40


def _seeded() -> Random:
    """Make a fast source of ids, seeded by the system."""
    return Random(SystemRandom().getrandbits(256))


@frozen(kw_only=True)
class RuntimeOptions:
    """How a runtime works.

    Args:
        events: Called with every event; what it raises is only logged.
        lease: Seconds after which another process may take over what a dead one left,
            1 to 3600.
        stop_poll: Seconds between two looks for stops that operators ask for, 0.1 to 60;
            the store is asked only while jobs run.
        connections: To a PostgreSQL store, for jobs, 1 to 64; one more is for control.
            Other stores have one connection.
        threads_max: Synchronous user functions that may run at the same time.
        store_error_text: False keeps the messages of user exceptions out of the store.
        inline: True runs storage and synchronous user functions on the event loop,
            without any thread, as deterministic tests need.
        patience: Seconds for which a commit, or the reading of a local file, may keep
            the event loop on average; what takes longer moves to a thread.
        ask_deadline: Seconds within which the store must carry out a command.
        block_warning: Seconds, 0.01 to 60, for which a job's code may keep the event
            loop before that is told as an event and logged; 0 switches it off, and so
            does *inline*.
        random: The source of batch ids and failure ids.

    Raises:
        InvalidValue: An option is of another type or out of its bounds.
    """

    events: EventSink | None = None
    lease: float = LEASE_SECS
    stop_poll: float = STOP_POLL_SECS
    connections: int = CONNECTIONS
    threads_max: int = THREADS_MAX
    store_error_text: bool = True
    inline: bool = False
    patience: float = PATIENCE_SECS
    ask_deadline: float = DEADLINE_SECS
    block_warning: float = BLOCK_SECS
    random: Random = field(factory=_seeded)

    def __attrs_post_init__(self) -> None:
        events: object = self.events
        if not (events is None or callable(events)):
            kind = type(events).__name__
            raise InvalidValue("the option events", f"must be a function, not {kind}")
        for name in ("lease", "stop_poll", "patience", "ask_deadline", "block_warning"):
            check_type(getattr(self, name), (int, float), f"the option {name}")
        for name in ("store_error_text", "inline"):
            check_type(getattr(self, name), bool, f"the option {name}")
        for name in ("connections", "threads_max"):
            check_type(getattr(self, name), int, f"the option {name}")
        check_type(self.random, Random, "the option random")
        if not LEASE_SECS_MIN <= self.lease <= LEASE_SECS_MAX:
            raise InvalidValue("the lease", "must be 1 to 3600 seconds")
        if not STOP_POLL_SECS_MIN <= self.stop_poll <= STOP_POLL_SECS_MAX:
            raise InvalidValue("stop_poll", "must be 0.1 to 60 seconds")
        if not 1 <= self.connections <= CONNECTIONS_MAX:
            raise InvalidValue("connections", f"must be 1 to {CONNECTIONS_MAX}")
        if not (
            self.block_warning == 0
            or BLOCK_SECS_MIN <= self.block_warning <= BLOCK_SECS_MAX
        ):
            raise InvalidValue("block_warning", "must be 0, or 0.01 to 60 seconds")
        if self.threads_max < 1:
            raise InvalidValue("threads_max", "must be at least 1")
        for name in ("patience", "ask_deadline"):
            if not getattr(self, name) >= 0:
                raise InvalidValue(f"the option {name}", "must be at least 0 seconds")


def check_type(value: object, kinds: type | tuple[type, ...], what: str) -> None:
    """Refuse a value of another type than those; a bool is no number.

    Raises:
        InvalidValue: With *what* as its subject.
    """
    every = kinds if isinstance(kinds, tuple) else (kinds,)
    fits = isinstance(value, every)
    if not fits or (isinstance(value, bool) and bool not in every):
        wanted = " or ".join(kind.__name__ for kind in every)
        reason = f"must be of type {wanted}, not {type(value).__name__}"
        raise InvalidValue(what, reason)


def connections_for(needed: int) -> int:
    """Give the `connections` with which a job is served that asks for so many.

    Args:
        needed: By the job, the one for control included.
    """
    return min(max(CONNECTIONS, needed - 1), CONNECTIONS_MAX)
