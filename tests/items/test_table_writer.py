"""The table writer: what it stores, what it creates, and what it refuses."""

import pickle
import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triolet.actors.items import (
    ChunkKey,
    Delivery,
    TableError,
    TableMismatch,
    TableMissing,
    TableRowRefused,
    TableWriter,
)
from triolet.storage.model.errors import InvalidValue

TRADES: dict[str, type] = {"id": int, "name": str, "amount": float}


@pytest.fixture
def cursor() -> Iterator[sqlite3.Cursor]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("PRAGMA foreign_keys=ON")
    cursor = connection.cursor()
    cursor.execute("BEGIN")
    yield cursor
    cursor.close()
    connection.close()


def chunk(ordinal: int = 0) -> ChunkKey:
    return ChunkKey(instance_id=1, node="load", visit=1, ordinal=ordinal)


def opened(cursor: sqlite3.Cursor, writer: TableWriter) -> TableWriter:
    writer.open(cursor)
    return writer


def content(cursor: sqlite3.Cursor, table: str = "trades") -> list[Any]:
    return cursor.execute(f'SELECT * FROM "{table}"').fetchall()


def refusal(
    cursor: sqlite3.Cursor, writer: TableWriter, rows: Sequence[Any], ordinal: int = 0
) -> TableRowRefused:
    with pytest.raises(TableRowRefused) as caught:
        writer.write(cursor, rows, chunk(ordinal))
    return caught.value


def test_rows_are_stored_in_the_order_of_the_columns(cursor: sqlite3.Cursor) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    writer.write(cursor, [[1, "Ada", 2.5], (2, None, None)], chunk())
    writer.write(cursor, [["3", "Eve", "4.25"]], chunk(2))
    writer.close()
    assert content(cursor) == [(1, "Ada", 2.5), (2, None, None), (3, "Eve", 4.25)]


def test_dicts_are_stored_by_name(cursor: sqlite3.Cursor) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    row = {"amount": 2.5, "id": 1, "name": "Ada", "comment": "not stored"}
    writer.write(cursor, [row, row], chunk())
    assert content(cursor) == [(1, "Ada", 2.5)] * 2
    single = opened(cursor, TableWriter("names", {"name": str}))
    single.write(cursor, [{"name": "Ada"}], chunk())
    assert content(cursor, "names") == [("Ada",)]


def test_any_sequence_of_rows_will_do(cursor: sqlite3.Cursor) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    writer.write(cursor, (), chunk())
    writer.write(cursor, ([1, "Ada", 2],), chunk())
    writer.write(cursor, deque([[2, "Bob", 3], [3, "Eve", 4]]), chunk(1))
    assert [row[0] for row in content(cursor)] == [1, 2, 3]


def test_the_writer_never_ends_the_transaction(cursor: sqlite3.Cursor) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    writer.write(cursor, [[1, "Ada", 2.5]], chunk())
    cursor.execute("ROLLBACK")
    assert cursor.execute("SELECT name FROM sqlite_schema").fetchall() == []


def test_rows_are_committed_with_the_checkpoint() -> None:
    assert TableWriter("trades").delivery is Delivery.ATOMIC


def test_a_created_table_is_strict_and_nullable(cursor: sqlite3.Cursor) -> None:
    columns: dict[str, type] = {**TRADES, "raw": bytes, "open": bool}
    opened(cursor, TableWriter("trades", columns))
    (row,) = cursor.execute("PRAGMA table_list('trades')").fetchall()
    assert row[5] == 1
    info = cursor.execute("PRAGMA table_info('trades')").fetchall()
    types = ["INTEGER", "TEXT", "REAL", "BLOB", "INTEGER"]
    assert [(name, kind) for _, name, kind, *_ in info] == [
        *zip(columns, types, strict=True)
    ]
    assert not any(notnull for _, _, _, notnull, *_ in info)


@pytest.mark.parametrize("name", ["a b", 'a"b', "a.b", "select", "x'; --", "ü", "[a]"])
def test_any_name_is_quoted(cursor: sqlite3.Cursor, name: str) -> None:
    writer = opened(cursor, TableWriter(name, {name: int, "other": str}))
    writer.write(cursor, [[1, "x"]], chunk())
    writer.write(cursor, [{name: 2, "other": "y"}], chunk(1))
    assert cursor.execute("SELECT name FROM sqlite_schema").fetchall() == [(name,)]
    error = refusal(cursor, writer, [["no", "x"]])
    assert (error.table, error.column) == (name, name)


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.text(st.characters(exclude_categories=["Cs"])),
            st.none() | st.floats(allow_nan=False),
            st.none() | st.binary(),
        ),
        min_size=1,
    ),
    st.booleans(),
)
def test_what_was_written_is_read_back(rows: list[Any], as_dicts: bool) -> None:
    columns: dict[str, type] = {"i": int, "t": str, "r": float, "b": bytes}
    connection = sqlite3.connect(":memory:", isolation_level=None)
    cursor = connection.cursor()
    writer = opened(cursor, TableWriter("t", columns))
    by_name = [dict(zip(columns, row, strict=True)) for row in rows]
    writer.write(cursor, by_name if as_dicts else rows, chunk())
    assert content(cursor, "t") == rows
    connection.close()


def test_an_existing_table_with_the_declared_columns_is_used(
    cursor: sqlite3.Cursor,
) -> None:
    cursor.execute("CREATE TABLE Trades (extra TEXT, AMOUNT REAL, Id INT, name TEXT)")
    writer = opened(cursor, TableWriter("trades", TRADES))
    writer.write(cursor, [[1, "Ada", 2.5]], chunk())
    assert content(cursor) == [(None, 2.5, 1, "Ada")]


def test_without_declared_columns_those_of_the_table_are_taken(
    cursor: sqlite3.Cursor,
) -> None:
    cursor.execute("CREATE TABLE trades (id INTEGER PRIMARY KEY, day DATE, amount)")
    writer = opened(cursor, TableWriter("trades"))
    writer.write(cursor, [[1, "2026-11-30", 5]], chunk())
    writer.write(cursor, [{"id": 2, "day": None, "amount": "x"}], chunk(1))
    assert content(cursor) == [(1, "2026-11-30", 5), (2, None, "x")]


def test_a_missing_column_is_named_with_those_that_are_there(
    cursor: sqlite3.Cursor,
) -> None:
    cursor.execute("CREATE TABLE trades (id INTEGER, name TEXT)")
    with pytest.raises(TableMismatch) as caught:
        TableWriter("trades", TRADES).open(cursor)
    assert caught.value.column == "amount"
    assert "only has 'id' and 'name'" in str(caught.value)


@pytest.mark.parametrize(("actual", "shown"), [("TEXT", "TEXT"), ("", "no type")])
def test_a_column_of_another_type_is_named_with_both_types(
    cursor: sqlite3.Cursor, actual: str, shown: str
) -> None:
    cursor.execute(f"CREATE TABLE trades (id INTEGER, name TEXT, amount {actual})")
    with pytest.raises(TableMismatch) as caught:
        TableWriter("trades", TRADES).open(cursor)
    message = str(caught.value)
    assert message.startswith(
        "table 'trades', column 'amount': declared as float (REAL)"
    )
    assert f"the table has {shown};" in message


def test_a_missing_table_is_refused_when_it_must_exist(cursor: sqlite3.Cursor) -> None:
    for writer in (TableWriter("trades"), TableWriter("trades", TRADES, create=False)):
        with pytest.raises(TableMissing, match="there is no such table"):
            writer.open(cursor)


def test_a_table_that_cannot_be_created_is_reported(cursor: sqlite3.Cursor) -> None:
    cursor.execute("CREATE TABLE other (id INTEGER)")
    cursor.execute("CREATE INDEX trades ON other (id)")
    with pytest.raises(TableMissing, match="cannot be created"):
        TableWriter("trades", TRADES).open(cursor)


def test_a_failure_of_the_database_is_not_blamed_on_the_table(
    cursor: sqlite3.Cursor,
) -> None:
    cursor.execute("COMMIT")
    cursor.execute("PRAGMA query_only=ON")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        TableWriter("trades", TRADES).open(cursor)


def test_a_failure_of_the_database_is_not_blamed_on_a_row(
    cursor: sqlite3.Cursor,
) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    cursor.execute("DROP TABLE trades")
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        writer.write(cursor, [[1, "Ada", 2.5]], chunk())
    cursor.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        writer.write(cursor, [[1, "Ada", 2.5]], chunk())


def test_a_fault_outside_the_row_is_left_as_it_is(cursor: sqlite3.Cursor) -> None:
    class Torn(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            if not self.pop("mended", False):
                self["mended"] = True
                raise LookupError("torn")
            return "Ada"

    writer = opened(cursor, TableWriter("names", {"name": str}))
    with pytest.raises(LookupError, match="torn"):
        writer.write(cursor, [Torn(name="Ada")], chunk())


def test_writing_needs_an_open_writer_and_a_cursor(cursor: sqlite3.Cursor) -> None:
    writer = TableWriter("trades", TRADES)
    with pytest.raises(InvalidValue, match="not open"):
        writer.write(cursor, [[1, "Ada", 2.5]], chunk())
    with pytest.raises(InvalidValue, match="missing"):
        writer.open(None)
    with pytest.raises(InvalidValue, match="no cursor"):
        opened(cursor, writer).write(None, [[1, "Ada", 2.5]], chunk())


def test_a_value_of_the_wrong_type_is_named_by_column_and_record(
    cursor: sqlite3.Cursor,
) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    rows = [[1, "Ada", 2.5], [2, "Bob", "secret"], [3, "Eve", 4]]
    error = refusal(cursor, writer, rows, ordinal=1_000)
    assert (error.column, error.index, error.ordinal) == ("amount", 1, 1_001)
    assert str(error) == (
        "table 'trades', column 'amount': the value does not fit the type REAL; "
        "convert it in the processor (row 2 of the chunk that begins with item 1001)"
    )


def test_the_last_row_of_a_chunk_is_found_too(cursor: sqlite3.Cursor) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    error = refusal(cursor, writer, [[1, "Ada", 2.5], [2, b"Bob", 1]])
    assert (error.column, error.index) == ("name", 1)


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        ([1, "Ada"], None, "2 values for 3 columns"),
        ([1, "Ada", 2.5, 6], None, "4 values for 3 columns"),
        ("Adam", None, "type str"),
        (b"Adam", None, "type bytes"),
        (5, None, "type int"),
        ({1, 2, 3}, None, "type set"),
        ({"id": 1}, None, "type dict, but the first of its chunk is a list"),
        ([1, "Ada", object()], "amount", "type object cannot be stored"),
        ([2**63, "Ada", 2.5], "id", "64 bits"),
        ([1, "\ud800", 2.5], "name", "lone surrogate"),
    ],
)
def test_a_row_that_cannot_be_bound_is_explained(
    cursor: sqlite3.Cursor, row: Any, column: str | None, reason: str
) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    error = refusal(cursor, writer, [[1, "Ada", 2.5], row, [2, "Bob", 3]], 10)
    assert (error.column, error.index, error.ordinal) == (column, 1, 11)
    assert reason in str(error)


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        ({"id": 1, "amount": 2.5}, "name", "no such key"),
        ([1, "Ada", 2.5], None, "type list, but the first of its chunk is a dict"),
        ({"id": 1, "name": object(), "amount": 1}, "name", "type object cannot be"),
        ({"id": 1, "name": "\ud800", "amount": 1}, "name", "lone surrogate"),
    ],
)
def test_a_dict_that_does_not_fit_is_explained(
    cursor: sqlite3.Cursor, row: Any, column: str | None, reason: str
) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    good = {"id": 1, "name": "Ada", "amount": 2.5}
    error = refusal(cursor, writer, [good, row, good])
    assert (error.column, error.index) == (column, 1)
    assert reason in str(error)


def test_a_first_row_that_is_text_is_refused_for_a_single_column(
    cursor: sqlite3.Cursor,
) -> None:
    writer = opened(cursor, TableWriter("names", {"name": str}))
    for first in ("A", "Ada", b"A"):
        error = refusal(cursor, writer, [first, "Bob"])
        assert error.index == 0
        assert "list of one value" in str(error)


def test_a_value_too_long_for_the_database_is_explained(
    cursor: sqlite3.Cursor,
) -> None:
    writer = opened(cursor, TableWriter("names", {"name": str}))
    cursor.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100)
    assert "too long" in str(refusal(cursor, writer, [["x" * 101]]))


@pytest.mark.parametrize(
    ("rule", "row", "column", "reason"),
    [
        ("id INTEGER NOT NULL, name TEXT", [None, "x"], "id", "NULL is not allowed"),
        ("id INTEGER UNIQUE, name TEXT", [7, "x"], "id", "same 'id' is there already"),
        ("id INTEGER PRIMARY KEY, name TEXT", [7, "x"], "id", "there already"),
        ("id INT, name TEXT, UNIQUE (id, name)", [7, "a"], None, "'id' and 'name' is"),
        ("id INT, name TEXT, CONSTRAINT small CHECK (id < 9)", [9, "x"], None, "small"),
        ("id INT REFERENCES trades (rowno), name TEXT, rowno INTEGER PRIMARY KEY",
         [9, "x"], None, "foreign key"),
    ],
)  # fmt: skip
def test_a_row_that_breaks_a_rule_of_the_table_is_explained(
    cursor: sqlite3.Cursor, rule: str, row: list[Any], column: str | None, reason: str
) -> None:
    cursor.execute(f"CREATE TABLE Trades ({rule}) STRICT")
    writer = opened(cursor, TableWriter("trades", {"id": int, "name": str}))
    first: list[Any] = [None, "a"] if "REFERENCES" in rule else [7, "a"]
    error = refusal(cursor, writer, [first, row])
    assert (error.column, error.index) == (column, 1)
    assert reason in str(error)


def test_what_a_trigger_says_is_not_repeated(cursor: sqlite3.Cursor) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    cursor.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON trades "
        "BEGIN SELECT RAISE(ABORT, 'secret'); END"
    )
    message = str(refusal(cursor, writer, [[1, "Ada", 2.5]]))
    assert "constraint or trigger" in message
    assert "secret" not in message


def test_no_message_repeats_a_value_of_a_row(cursor: sqlite3.Cursor) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    bad: list[list[Any]] = [["secret", "x", 1], [1, b"secret", 1], [1, "x", {"secret"}]]
    for row in bad:
        assert "secret" not in str(refusal(cursor, writer, [row]))


@pytest.mark.parametrize(
    "name",
    ["", "a\0b", "\ud800", 5, "triolet_step", "TRIOLET_x", "sqlite_x", "Sqlite_Master"],
)
def test_a_table_name_that_is_not_ours_to_give_is_refused_at_once(name: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^table must"):
        TableWriter(name, TRADES)


@pytest.mark.parametrize(
    "columns",
    [
        {},
        ["id"],
        "id",
        {"": int},
        {"a\0": int},
        {5: int},
        {"day": object},
        {"day": "int"},
        {"day": []},
        {"Id": int, "iD": str},
    ],
)
def test_bad_columns_are_refused_at_once(columns: Any) -> None:
    with pytest.raises(InvalidValue, match="columns"):
        TableWriter("trades", columns)


def test_names_differ_when_sqlite_says_so(cursor: sqlite3.Cursor) -> None:
    writer = opened(cursor, TableWriter("trades", {"ä": int, "Ä": int}))
    writer.write(cursor, [[1, 2]], chunk())
    assert content(cursor) == [(1, 2)]


def test_create_must_be_a_truth_value() -> None:
    create: Any = "no"
    with pytest.raises(InvalidValue, match=r"^create must"):
        TableWriter("trades", TRADES, create=create)


def test_every_error_survives_pickling_and_has_its_own_code() -> None:
    kinds: list[Any] = [TableError, *TableError.__subclasses__()]
    codes = set()
    for kind in kinds:
        extra = (3, 1_003) if kind is TableRowRefused else ()
        error = kind("trades", "id", "why", *extra)
        assert pickle.loads(pickle.dumps(error)) == error
        assert str(error).startswith("table 'trades', column 'id': why")
        codes.add(error.code)
    assert len(codes) == len(kinds)
