"""The options of a runtime, and their bounds."""

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
        threads_max: Synchronous user functions that may run at the same time.
        store_error_text: False keeps the messages of user exceptions out of the store.
        inline: True runs storage and synchronous user functions on the event loop,
            without any thread, as deterministic tests need.
        patience: Seconds for which a commit, or the reading of a local file, may keep
            the event loop on average; what takes longer moves to a thread.
        ask_deadline: Seconds within which the store must carry out a command.
        random: The source of batch ids and failure ids.
    """

    events: EventSink | None = None
    lease: float = LEASE_SECS
    stop_poll: float = STOP_POLL_SECS
    threads_max: int = THREADS_MAX
    store_error_text: bool = True
    inline: bool = False
    patience: float = PATIENCE_SECS
    ask_deadline: float = DEADLINE_SECS
    random: Random = field(factory=_seeded)

    def __attrs_post_init__(self) -> None:
        if not LEASE_SECS_MIN <= self.lease <= LEASE_SECS_MAX:
            raise InvalidValue("the lease", "must be 1 to 3600 seconds")
        if not STOP_POLL_SECS_MIN <= self.stop_poll <= STOP_POLL_SECS_MAX:
            raise InvalidValue("stop_poll", "must be 0.1 to 60 seconds")
        if self.threads_max < 1:
            raise InvalidValue("threads_max", "must be at least 1")
