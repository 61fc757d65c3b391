"""The texts of `Advance`: for each of its shapes one, and one for many commands of it."""

from functools import cache

from attrs import frozen

from ..model.status import BatchStatus
from ..sql.fencing import sources
from .binding import Bound, BoundTogether
from .chain import (
    AT,
    COUNTS,
    Chain,
    Likeness,
    counted,
)


@frozen
class Shape:
    """Which parts an `Advance` has, so that one text can be prepared for each."""

    begin: bool
    finish: BatchStatus | None
    decisions: bool
    first_visit: bool
    start: bool
    inherit: bool
    limited: bool
    end: BatchStatus | None
    publish: bool
    assign: bool

    @property
    def plain(self) -> bool:
        """Whether commands of this shape can be carried out together."""
        rare = self.begin or self.decisions or self.inherit or self.limited
        return not rare and (self.finish is not None or self.start)


@cache
def advance_text(shape: Shape) -> str:
    """Give the statement of one command."""
    return _text(shape, Bound())


@cache
def advance_likeness(shape: Shape) -> Likeness | None:
    """Give the statement of many commands, for the shapes that are many at a time."""
    if not shape.plain:
        return None
    bound = BoundTogether()
    return Likeness(_text(shape, bound), tuple(bound.kinds))


def _text(shape: Shape, bound: Bound) -> str:
    chain = Chain()
    bound.take("bigint", "bigint")  # the execution's id and its owner's
    chain.add("fence", "")
    if shape.begin:
        chain.add("begun", _begin_part(bound))
    finished = "NULL::bigint"
    if shape.finish is not None:
        (finished,) = bound.take("bigint")
        chain.add("finished", _finish_part(shape.finish, finished, bound))
    if shape.publish:
        chain.add("published", _publish_part(bound))
    if shape.decisions:
        chain.add("decided", _decision_part(shape, chain.last, finished, bound))
        chain.add("all_decided", "SELECT 1 FROM decided HAVING count(*) > 0")
    if shape.end is not None:
        chain.add("ended", _end_part(shape.end, chain.last, bound))
    moved = chain.last
    if shape.start:
        _add_start(shape, chain, bound)
    chain.fill("fence", bound.fence())
    noted = moved if shape.limited else chain.last
    return chain.ending(bound.noted(noted, started=shape.start))


def _begin_part(bound: Bound) -> str:
    (step,) = bound.take("bigint")
    return (
        "UPDATE triolet.step SET status = 'STARTED', "
        f"started_at = greatest({AT}, created_at), version = version + 1 "
        f"FROM fence WHERE step.id = {step} AND execution_id = fence.id "
        "AND status = 'STARTING' RETURNING step.id"
    )


_COUNTS = ("bigint",) * len(COUNTS)


def _finish_part(status: BatchStatus, step: str, bound: Bound) -> str:
    version, code, *counts = bound.take("bigint", "text", *_COUNTS)
    context, failure, sequence, target = bound.take("text", "text", "bigint", "text")
    instant = f"coalesce(ended_at, greatest({AT}, coalesce(started_at, created_at)))"
    ended = instant if status.finished else "NULL"
    return (
        f"UPDATE triolet.step SET status = '{status.value}', exit_code = {code}, "
        f"{counted(counts)}, context = coalesce({context}, context), "
        f"failure = coalesce({failure}, failure), ended_at = {ended}, "
        "version = version + 2, "
        f"decision_sequence = coalesce({sequence}, decision_sequence), "
        f"decision_target = coalesce({target}, decision_target) "
        f"FROM fence WHERE step.id = {step} AND execution_id = fence.id "
        f"AND version = {version} AND {sources(status)} RETURNING step.id, "
        f"{', '.join(f'step.{one}' for one in _PUBLISHED)}{bound.key}"
    )


_PUBLISHED = ("status", "exit_code", *(f"{one}_count" for one in COUNTS))


def _publish_part(bound: Bound) -> str:
    manager, ordinal = bound.take("bigint", "bigint")
    rows, condition = bound.together("finished")
    taken_over = ", ".join(f"{one} = finished.{one}" for one in _PUBLISHED)
    return (
        f"UPDATE triolet.partition AS p SET {taken_over}, version = p.version + 1 "
        f"FROM {rows} WHERE {condition} AND p.manager_id = {manager} "
        f"AND p.ordinal = {ordinal} AND p.worker_id = finished.id "
        f"AND p.status = 'STARTED' RETURNING finished.id{bound.key}"
    )


DECISION = (
    *("bigint", "text", "bigint", "bigint", "text"),
    *("text", "text", "bytea", "bigint", "bigint"),
)
"""The SQL types of a decision's columns that are bound, each as an array."""


def _decision_part(shape: Shape, before: str, finished: str, bound: Bound) -> str:
    arrays = bound.take(*(f"{kind}[]" for kind in DECISION))
    sequences, cited = arrays[0], arrays[3]
    rows, condition = bound.together(before)
    unfolded = (
        "NOT EXISTS (SELECT 1 FROM triolet.step "
        f"WHERE execution_id = fence.id AND decision_sequence = ANY ({sequences}) "
        f"AND id IS DISTINCT FROM {finished}) AND "
    )
    return (
        "INSERT INTO triolet.decision "
        f"SELECT fence.id, new.*, {AT} FROM {rows}, unnest({', '.join(arrays)}) AS new "
        f"WHERE {condition} AND {unfolded * shape.first_visit}"
        f"NOT EXISTS (SELECT 1 FROM unnest({cited}) AS cited(id) "
        "LEFT JOIN triolet.step ON step.id = cited.id "
        "WHERE cited.id IS NOT NULL AND step.id IS NULL) RETURNING 1"
    )


def _add_start(shape: Shape, chain: Chain, bound: Bound) -> None:
    rows, condition = bound.together(chain.last)
    node, visit, *others = bound.take("text", "bigint", "text", "text", "bigint")
    name, status, version = others
    columns = "execution_id, node, visit, name, status, created_at, started_at, version"
    values = (
        f"fence.id, {node}, {visit}, {name}, {status}, {AT}, "
        f"CASE WHEN {version} > 0 THEN {AT} END, {version}"
    )
    if shape.limited:
        (limit,) = bound.take("bigint")
        condition += (
            " AND (SELECT count(*) FROM triolet.step AS s JOIN triolet.execution AS e "
            "ON e.id = s.execution_id WHERE e.instance_id = fence.instance_id "
            f"AND s.node = {node} AND s.visit = {visit}) < {limit}"
        )
    if shape.inherit:
        (inherit,) = bound.take("bigint")
        kept = ", ".join(f"{one}_count" for one in COUNTS) + ", checkpoint, context"
        columns += f", {kept}"
        values += ", " + ", ".join(f"old.{one}" for one in kept.split(", "))
        rows += ", triolet.step AS old, triolet.execution AS earlier"
        condition += (
            f" AND old.id = {inherit} AND earlier.id = old.execution_id "
            "AND earlier.instance_id = fence.instance_id"
        )
    chain.add(
        "inserted" if bound.many else "started",
        f"INSERT INTO triolet.step ({columns}) SELECT {values} FROM {rows} "
        f"WHERE {condition}{bound.order} RETURNING id, execution_id, node, visit",
    )
    if bound.many:
        # What an INSERT gives cannot name the command that it was for.
        chain.add(
            "started",
            f"SELECT inserted.id{bound.key} FROM inserted, fence WHERE "
            f"execution_id = fence.id AND node = {node} AND visit = {visit}",
        )
    if shape.assign:
        chain.add("assigned", _assign_part(bound))


def _assign_part(bound: Bound) -> str:
    manager, ordinal = bound.take("bigint", "bigint")
    rows, condition = bound.together("started")
    return (
        "UPDATE triolet.partition AS p SET status = 'STARTED', "
        "worker_id = started.id, version = p.version + 1 "
        f"FROM {rows}, triolet.step AS m WHERE {condition} "
        f"AND p.manager_id = {manager} AND p.ordinal = {ordinal} "
        "AND p.status = 'STARTING' AND m.id = p.manager_id AND m.execution_id = fence.id "
        f"AND m.status = 'STARTED' RETURNING started.id{bound.key}"
    )


def _end_part(status: BatchStatus, before: str, bound: Bound) -> str:
    code, *counts, failure = bound.take("text", *_COUNTS, "text")
    rows, condition = bound.together(before)
    instant = f"greatest({AT}, coalesce(started_at, created_at))"
    return (
        f"UPDATE triolet.execution SET status = '{status.value}', exit_code = {code}, "
        f"{counted(counts)}, failure = coalesce({failure}, failure), "
        f"ended_at = {instant if status.finished else 'NULL'}, version = version + 2 "
        f"FROM {rows} WHERE {condition} AND execution.id = fence.id "
        f"AND {sources(status, 'execution.status')} RETURNING execution.id{bound.key}"
    )
