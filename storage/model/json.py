"""The JSON values that may enter the store, as types."""

from typing import TypeAlias

Json: TypeAlias = (
    "bool | int | float | str | list[Json] | tuple[Json, ...] | dict[str, Json] | None"
)
"""Any JSON value; tuples are written as arrays."""

JsonObject: TypeAlias = dict[str, Json]
"""A JSON object: what a checkpoint or a step's state must be."""
