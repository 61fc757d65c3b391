"""Members of a JSON document, of the types that they must have.

All of these raise a KeyError or TypeError when there is no such member.
"""

from collections.abc import Iterator

from ...storage.model.json import Json


def member_at(value: Json, *path: str) -> Json:
    """Give what stands at the end of a path of members."""
    for name in path:
        if not isinstance(value, dict):
            raise TypeError(name)
        value = value[name]
    return value


def text_at(value: Json, *path: str) -> str:
    """Give the text there."""
    found = member_at(value, *path)
    if not isinstance(found, str):
        raise TypeError(path)
    return found


def number_at(value: Json, *path: str) -> int:
    """Give the whole number there."""
    found = member_at(value, *path)
    if not isinstance(found, int) or isinstance(found, bool):
        raise TypeError(path)
    return found


def items_at(value: Json, *path: str) -> Iterator[Json]:
    """Give the items of the array there."""
    found = member_at(value, *path)
    if not isinstance(found, list):
        raise TypeError(path)
    return iter(found)
