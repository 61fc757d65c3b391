"""What every command is: a frozen value that knows the type of its reply."""

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from ..model.errors import Rejection, error

R_co = TypeVar("R_co", covariant=True)


class Command(Generic[R_co]):
    """What a store can be asked to do; R_co is the type of the reply."""

    __slots__ = ()

    @property
    def enlisted(self) -> bool:
        """Whether user code writes within the command's transaction."""
        return False

    @property
    def alone(self) -> bool:
        """Whether it takes a transaction of its own.

        Operators' requests lock what others have in use: with a lock already held they
        could wait for each other.
        """
        return self.enlisted

    @property
    def place(self) -> tuple[str, bytes]:
        """Where it belongs in a batch: whoever makes the same rows makes them in order.

        Two transactions that make the same rows in different orders would wait for
        each other.
        """
        return "", b""


class Question(Command[R_co]):
    """A command that changes nothing; it is answered even while the store is locked."""

    __slots__ = ()


class Cursor(Protocol):
    """What user code gets of the store's connection inside a transaction."""

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed."""

    def execute(self, statement: str, parameters: Any = (), /) -> object:  # noqa: ANN401  # as in DB-API
        """Carry out one statement."""

    def executemany(self, statement: str, parameters: Any, /) -> object:  # noqa: ANN401  # as in DB-API
        """Carry out one statement for each of many parameter sets."""

    def fetchone(self) -> Any:  # noqa: ANN401  # as in DB-API
        """Give the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Give all remaining rows."""


EnlistedWrite: TypeAlias = Callable[[Cursor], None]
"""User code that writes its rows inside the command's own transaction."""


@error
class WriteFailed(Rejection):
    """The enlisted user code raised; its rows and the command were rolled back."""

    code = "write_failed"
    cause: BaseException

    def __str__(self) -> str:
        return f"the enlisted write raised {type(self.cause).__name__}"


def call_enlisted(write: EnlistedWrite, cursor: Cursor) -> None:
    """Call user code with a cursor; whatever it raises is its failure.

    Raises:
        WriteFailed: What the user code raised; an interruption goes on as it is.
    """
    try:
        write(cursor)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as exc:
        raise WriteFailed(exc) from exc
