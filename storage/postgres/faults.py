"""PostgreSQL's refusals in our words, and which of them may pass.

What the server says may hold values and is not repeated; the five characters of
SQLSTATE (PostgreSQL manual, appendix A) say enough.
"""

from ..model.errors import StoreError, StoreUnavailable, StoreUnusable

REFUSED = "TR001"
"""Raised by our own SQL when a command is refused as a whole."""
UNIQUE_VIOLATION = "23505"
UNORDERED = ("40001", "40P01")
"""Transactions that were in each other's way: carried out again, they may not be."""

_PASSING = {
    "40001": "two transactions could not be put into an order",
    "40P01": "two transactions waited for each other",
    "55P03": "a lock was not free within the lock timeout",
    "57014": "a statement took longer than the statement timeout",
    "57P01": "an administrator ended the connection",
    "57P02": "the server is restarting after a crash",
    "57P03": "the server is starting or stopping",
    "57P05": "the connection had been idle for too long",
    "25P03": "a transaction had been idle for too long",
    "25006": "the server is read-only",
    "53100": "the server's disk is full",
    "53200": "the server is out of memory",
    "53300": "the server has no connection left",
}
_LASTING = {
    "28000": "the role may not log in",
    "28P01": "the password is wrong",
    "3D000": "there is no such database",
    "42501": "a privilege is missing",
    "42P01": "a table is missing",
    "42703": "a column is missing",
}


def is_passing(sqlstate: str) -> bool:
    """Tell whether the same transaction may succeed when it is sent again."""
    return sqlstate in _PASSING or sqlstate.startswith("08")


def explained(sqlstate: str) -> StoreError:
    """Put a refusal into our words, without SQL and values."""
    if is_passing(sqlstate):
        why = _PASSING.get(sqlstate, "the connection failed")
        return StoreUnavailable(f"PostgreSQL could not be used: {why} ({sqlstate})")
    why = _LASTING.get(sqlstate, "a statement was refused")
    return StoreUnusable(f"PostgreSQL cannot be used: {why} ({sqlstate})")
