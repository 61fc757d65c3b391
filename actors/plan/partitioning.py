"""What a planner returns, checked before anything of it is stored.

Sentences name a partition by its number, never by its key, which may be sensitive.
"""

from ...storage.envelope import CONTEXT_FORMAT, STATE_SCHEMA, canonical_json, seal
from ...storage.model.errors import InvalidValue
from ...storage.model.partition import (
    CONTEXT_BYTES_MAX,
    KEY_BYTES_MAX,
    PARTITIONS_MAX,
    NewPartition,
)


def check_partitions(result: object, count: int | None) -> tuple[NewPartition, ...]:
    """Take in what a planner returned.

    Args:
        result: Should be a list of pairs: a key, and a dict of JSON values.
        count: How many partitions the step has declared; None: 0 to 1,024.

    Returns:
        The partitions in the planner's order.

    Raises:
        InvalidValue: With the first rule that is broken: it must be a list or tuple
            of *count* pairs; a key must be text of 1 to 128 bytes, without U+0000, and
            unique; a context must be a dict of JSON values that takes at most 4,096
            bytes in its envelope.
    """
    what = "what the planner returned"
    if not isinstance(result, (list, tuple)):
        kind = type(result).__name__
        raise InvalidValue(what, f"must be a list of (key, context) pairs, not {kind}")
    if count is not None and len(result) != count:
        raise InvalidValue(what, f"must have {count} partitions, not {len(result)}")
    if len(result) > PARTITIONS_MAX:
        reason = f"must have at most {PARTITIONS_MAX} partitions, not {len(result)}"
        raise InvalidValue(what, reason)
    numbers: dict[str, int] = {}
    partitions = []
    for number, pair in enumerate(result, 1):
        one = _partition(pair, f"partition {number}")
        first = numbers.setdefault(one.key, number)
        if first != number:
            raise InvalidValue(
                f"partition {number}", f"has the key of partition {first}"
            )
        partitions.append(one)
    return tuple(partitions)


def _partition(pair: object, what: str) -> NewPartition:
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        kind = type(pair).__name__
        raise InvalidValue(what, f"must be a pair of key and context, not {kind}")
    key, context = pair
    about = f"the context of {what}"
    return NewPartition(
        _key(key, f"the key of {what}"),
        seal(CONTEXT_FORMAT, STATE_SCHEMA, context, about, CONTEXT_BYTES_MAX),
    )


def _key(key: object, what: str) -> str:
    if not isinstance(key, str):
        raise InvalidValue(what, f"must be text, not {type(key).__name__}")
    if not key:
        raise InvalidValue(what, "must not be empty")
    canonical_json(key, what)  # refuses what cannot be stored
    size = len(key.encode())
    if size > KEY_BYTES_MAX:
        reason = f"has {size} bytes, at most {KEY_BYTES_MAX} are allowed"
        raise InvalidValue(what, reason)
    return key
