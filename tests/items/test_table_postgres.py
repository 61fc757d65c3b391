"""The table writer on PostgreSQL: COPY within the chunk's transaction."""

from collections import deque
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.job.components import ListReader
from triolet.actors import BatchStatus, Chunk, Job, Step, open_runtime
from triolet.actors.items import (
    ChunkKey,
    TableError,
    TableMismatch,
    TableMissing,
    TableRowRefused,
    TableWriter,
)

TRADES: dict[str, type] = {"id": int, "name": str, "amount": float}


@pytest.fixture
def cursor(postgres_url: str) -> Iterator[psycopg.Cursor[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("BEGIN")
        yield connection.cursor()
        connection.execute("ROLLBACK")


def chunk(ordinal: int = 0) -> ChunkKey:
    return ChunkKey(instance_id=1, node="load", visit=1, ordinal=ordinal)


def opened(cursor: psycopg.Cursor[Any], writer: TableWriter) -> TableWriter:
    writer.open(cursor)
    return writer


def content(cursor: psycopg.Cursor[Any], table: str = "trades") -> list[Any]:
    return cursor.execute(f'SELECT * FROM "{table}"').fetchall()


def refusal(
    cursor: psycopg.Cursor[Any],
    writer: TableWriter,
    rows: Sequence[Any],
    ordinal: int = 0,
) -> TableRowRefused:
    cursor.execute("SAVEPOINT before")
    with pytest.raises(TableRowRefused) as caught:
        writer.write(cursor, rows, chunk(ordinal))
    cursor.execute("ROLLBACK TO before")
    return caught.value


def test_rows_are_stored_in_the_order_of_the_columns(
    cursor: psycopg.Cursor[Any],
) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    writer.write(cursor, (), chunk())
    writer.write(cursor, [[1, "Ada", 2.5], (2, None, None)], chunk())
    writer.write(cursor, deque([["3", "Eve\t\\N\n", "4.25"]]), chunk(2))
    writer.write(cursor, [deque([4, "", 1])], chunk(3))
    writer.close()
    assert content(cursor) == [
        (1, "Ada", 2.5),
        (2, None, None),
        (3, "Eve\t\\N\n", 4.25),
        (4, "", 1),
    ]


def test_rows_arrive_by_copy(cursor: psycopg.Cursor[Any]) -> None:
    """A whole chunk is one COPY, whatever its rows are."""
    writer = opened(cursor, TableWriter("trades", TRADES))
    cursor.execute("CREATE TABLE statements (text text)")
    cursor.execute(
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO statements VALUES (current_query()); RETURN NULL; END $$"
    )
    cursor.execute(
        "CREATE TRIGGER note AFTER INSERT ON trades "
        "FOR EACH STATEMENT EXECUTE FUNCTION note()"
    )
    row = {"amount": 2.5, "id": 1, "name": "Ada"}
    writer.write(cursor, [[1, "Ada", 2.5]] * 1000, chunk())
    writer.write(cursor, [row] * 1000, chunk(1000))
    found = content(cursor, "statements")
    assert [text.split()[0] for (text,) in found] == ["COPY"] * 2
    assert len(content(cursor)) == 2000


def test_dicts_are_stored_by_name(cursor: psycopg.Cursor[Any]) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    row = {"amount": 2.5, "id": 1, "name": "Ada", "comment": "not stored"}
    writer.write(cursor, [row, row], chunk())
    assert content(cursor) == [(1, "Ada", 2.5)] * 2
    single = opened(cursor, TableWriter("names", {"name": str}))
    single.write(cursor, [{"name": "Ada"}], chunk())
    assert content(cursor, "names") == [("Ada",)]


def test_the_writer_never_ends_the_transaction(cursor: psycopg.Cursor[Any]) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    writer.write(cursor, [[1, "Ada", 2.5]], chunk())
    cursor.execute("ROLLBACK")
    assert cursor.execute("SELECT to_regclass('trades')").fetchone() == (None,)
    cursor.execute("BEGIN")


def test_a_created_table_has_postgres_types_and_is_nullable(
    cursor: psycopg.Cursor[Any],
) -> None:
    columns: dict[str, type] = {**TRADES, "raw": bytes, "open": bool}
    writer = opened(cursor, TableWriter("trades", columns))
    found = cursor.execute(
        "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
        "WHERE table_name = 'trades' ORDER BY ordinal_position"
    ).fetchall()
    types = ["bigint", "text", "double precision", "bytea", "boolean"]
    assert found == [
        (name, kind, "YES") for name, kind in zip(columns, types, strict=True)
    ]
    writer.write(cursor, [[1, "Ada", 2.5, b"\0\xff", True]], chunk())
    assert content(cursor) == [(1, "Ada", 2.5, b"\0\xff", True)]


@pytest.mark.parametrize(
    "name", ["a b", 'a"b', "a.b", "select", "x'; --", "ü", "%s", "a, line 9", "column"]
)
def test_any_name_is_quoted(cursor: psycopg.Cursor[Any], name: str) -> None:
    writer = opened(cursor, TableWriter(name, {name: int, "other": str}))
    writer.write(cursor, [[1, "x"]], chunk())
    writer.write(cursor, [{name: 2, "other": "y"}], chunk(1))
    error = refusal(cursor, writer, [[1, "x"], ["no", "x"]])
    assert (error.table, error.column, error.index) == (name, name, 1)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none()
            | st.text(
                st.characters(exclude_categories=["Cs"], exclude_characters="\0")
            ),
            st.none() | st.floats(allow_nan=False),
            st.none() | st.binary(),
            st.none() | st.booleans(),
        ),
        min_size=1,
    ),
    st.booleans(),
)
def test_what_was_written_is_read_back(
    cursor: psycopg.Cursor[Any], rows: list[Any], as_dicts: bool
) -> None:
    columns: dict[str, type] = {"i": int, "t": str, "r": float, "b": bytes, "o": bool}
    cursor.execute("DROP TABLE IF EXISTS t")
    writer = opened(cursor, TableWriter("t", columns))
    by_name = [dict(zip(columns, row, strict=True)) for row in rows]
    writer.write(cursor, by_name if as_dicts else rows, chunk())
    assert content(cursor, "t") == rows


def test_an_existing_table_with_narrower_types_is_used(
    cursor: psycopg.Cursor[Any],
) -> None:
    cursor.execute(
        "CREATE TABLE trades (extra date, amount double precision, id integer, "
        "name varchar(3))"
    )
    writer = opened(cursor, TableWriter("trades", TRADES))
    writer.write(cursor, [[1, "Ada", 2.5]], chunk())
    assert content(cursor) == [(None, 2.5, 1, "Ada")]
    error = refusal(cursor, writer, [[1, "Ada", 2.5], [2**31, "Bob", 1]], 7)
    assert str(error) == (
        "table 'trades', column 'id': the number is out of range for the type integer "
        "(row 2 of the chunk that begins with item 8)"
    )
    error = refusal(cursor, writer, [[1, "Adam", 2.5]])
    assert "column 'name': the text is too long for" in str(error)


def test_without_declared_columns_those_of_the_table_are_taken(
    cursor: psycopg.Cursor[Any],
) -> None:
    cursor.execute(
        "CREATE TABLE trades (id bigint GENERATED ALWAYS AS IDENTITY, day date, "
        "sum numeric(9, 2), twice numeric GENERATED ALWAYS AS (sum * 2) STORED, "
        "tags text[], gone text)"
    )
    cursor.execute("ALTER TABLE trades DROP COLUMN gone")
    writer = opened(cursor, TableWriter("trades"))
    day = date(2026, 11, 30)
    writer.write(cursor, [[7, day, Decimal("1.25"), ["a"]]], chunk())
    assert content(cursor) == [(7, day, Decimal("1.25"), Decimal("2.50"), ["a"])]


@pytest.mark.parametrize(
    ("body", "column", "reason"),
    [
        ("id bigint, name text", "amount", "only has 'id' and 'name'"),
        ('"ID" bigint', "id", "only has 'ID'"),
        ("id bigint, name text, amount real", "amount",
         "declared as float (double precision), but the table has real;"),
        ("id numeric, name text, amount real", "id", "the table has numeric;"),
    ],
)  # fmt: skip
def test_a_table_with_other_columns_is_refused(
    cursor: psycopg.Cursor[Any], body: str, column: str, reason: str
) -> None:
    cursor.execute(f"CREATE TABLE trades ({body})")
    with pytest.raises(TableMismatch) as caught:
        TableWriter("trades", TRADES).open(cursor)
    assert caught.value.column == column
    assert reason in str(caught.value)


def test_a_missing_table_is_refused_when_it_must_exist(
    cursor: psycopg.Cursor[Any],
) -> None:
    for writer in (TableWriter("trades"), TableWriter("trades", TRADES, create=False)):
        with pytest.raises(TableMissing, match="there is no such table"):
            writer.open(cursor)


def test_a_view_is_no_table_to_write_to(cursor: psycopg.Cursor[Any]) -> None:
    cursor.execute("CREATE VIEW trades AS SELECT 1 AS id")
    with pytest.raises(TableMismatch, match="not a table"):
        TableWriter("trades").open(cursor)


@pytest.mark.parametrize(
    ("schema", "table", "owner"),
    [("triolet", "step", "Triolet"), ("pg_catalog", "pg_class", "PostgreSQL")],
)
def test_the_stores_own_tables_are_refused(
    cursor: psycopg.Cursor[Any], schema: str, table: str, owner: str
) -> None:
    cursor.execute("CREATE SCHEMA triolet")
    cursor.execute("CREATE TABLE triolet.step (id bigint)")
    cursor.execute("SET LOCAL search_path = triolet, public")
    with pytest.raises(TableMismatch, match=f"{schema} it would be {owner}'s own"):
        TableWriter(table, {"id": int}).open(cursor)


def test_no_table_is_made_among_the_stores_own(cursor: psycopg.Cursor[Any]) -> None:
    cursor.execute("CREATE SCHEMA triolet")
    cursor.execute("SET LOCAL search_path = triolet, public")
    with pytest.raises(TableMismatch, match="Triolet's own"):
        TableWriter("trades", TRADES).open(cursor)


def test_a_table_that_cannot_be_created_is_reported(
    cursor: psycopg.Cursor[Any],
) -> None:
    cursor.execute("SET LOCAL search_path = nowhere")
    with pytest.raises(TableMissing, match="cannot be created"):
        TableWriter("trades", TRADES).open(cursor)


def test_a_name_that_the_server_would_cut_off_is_refused(
    cursor: psycopg.Cursor[Any],
) -> None:
    with pytest.raises(TableMissing, match="63 bytes"):
        TableWriter("ü" * 32, TRADES).open(cursor)
    with pytest.raises(TableMismatch, match="63 bytes"):
        TableWriter("trades", {"x" * 64: int}).open(cursor)


def test_a_table_that_is_there_needs_no_right_to_create(
    cursor: psycopg.Cursor[Any],
) -> None:
    cursor.execute("CREATE TABLE trades (id bigint, name text, amount float8)")
    cursor.execute("CREATE ROLE loader")
    cursor.execute("REVOKE CREATE ON SCHEMA public FROM public")
    cursor.execute("GRANT INSERT ON trades TO loader")
    cursor.execute("SET LOCAL ROLE loader")
    opened(cursor, TableWriter("trades", TRADES)).write(
        cursor, [[1, "Ada", 2.5]], chunk()
    )
    with pytest.raises(TableMissing, match="permission denied"):
        TableWriter("others", TRADES).open(cursor)


def test_a_value_of_the_wrong_type_is_named_by_column_and_record(
    cursor: psycopg.Cursor[Any],
) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    rows = [[1, "Ada", 2.5], [2, "Bob", "secret"], [3, "Eve", 4]]
    error = refusal(cursor, writer, rows, ordinal=1_000)
    assert (error.column, error.index, error.ordinal) == ("amount", 1, 1_001)
    assert str(error) == (
        "table 'trades', column 'amount': the value does not fit the type double "
        "precision; convert it in the processor (row 2 of the chunk that begins with item 1001)"
    )


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        ([1, "Ada"], None, "2 values for 3 columns"),
        ([1, "Ada", 2.5, 6], None, "4 values for 3 columns"),
        ("Adam", None, "type str"),
        ("Ada", None, "type str"),
        (b"Adam", None, "type bytes"),
        (5, None, "type int"),
        ({1, 2, 3}, None, "type set"),
        ({"id": 1}, None, "type dict, but the first of its chunk is a list"),
        ([1, "Ada", object()], "amount", "type object cannot be stored"),
        ([1, ["Ada"], 2.5], "name", "type list cannot be stored"),
        ([1, b"Ada", 2.5], "name", "type bytes cannot be stored"),
        ([2**63, "Ada", 2.5], "id", "bigint"),
        ([1.5, "Ada", 2.5], "id", "bigint"),
        ([1, "\ud800", 2.5], "name", "lone surrogate"),
        ([1, "A\0da", 2.5], "name", "U+0000"),
    ],
)
def test_a_row_that_does_not_fit_is_explained(
    cursor: psycopg.Cursor[Any], row: Any, column: str | None, reason: str
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
    ],
)
def test_a_dict_that_does_not_fit_is_explained(
    cursor: psycopg.Cursor[Any], row: Any, column: str | None, reason: str
) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    good = {"id": 1, "name": "Ada", "amount": 2.5}
    error = refusal(cursor, writer, [good, row, good])
    assert (error.column, error.index) == (column, 1)
    assert reason in str(error)


def test_bytes_never_become_the_digits_of_a_text(cursor: psycopg.Cursor[Any]) -> None:
    columns: dict[str, type] = {"raw": bytes, "text": str}
    writer = opened(cursor, TableWriter("both", columns))
    error = refusal(cursor, writer, [[b"x", "x"], [b"x", b"x"]])
    assert (error.column, error.index) == ("text", 1)
    assert "does not fit the type text" in str(error)


@pytest.mark.parametrize(
    ("rule", "row", "column", "reason"),
    [
        ("id bigint NOT NULL, name text", [None, "x"], "id", "NULL is not allowed"),
        ("id bigint UNIQUE, name text", [7, "x"], None, "(constraint 'trades_id_key')"),
        ("id bigint, name text, CONSTRAINT small CHECK (id < 9)", [9, "x"], None,
         "the check 'small'"),
    ],
)  # fmt: skip
def test_a_row_that_breaks_a_rule_of_the_table_is_explained(
    cursor: psycopg.Cursor[Any],
    rule: str,
    row: list[Any],
    column: str | None,
    reason: str,
) -> None:
    cursor.execute(f"CREATE TABLE trades ({rule})")
    writer = opened(cursor, TableWriter("trades", {"id": int, "name": str}))
    error = refusal(cursor, writer, [[7, "a"], row])
    assert (error.column, error.index) == (column, 1)
    assert reason in str(error)


def test_a_rule_that_is_checked_at_the_end_is_told_without_a_row(
    cursor: psycopg.Cursor[Any],
) -> None:
    cursor.execute("CREATE TABLE parents (id bigint PRIMARY KEY)")
    cursor.execute("CREATE TABLE trades (id bigint REFERENCES parents)")
    writer = opened(cursor, TableWriter("trades", {"id": int}))
    with pytest.raises(TableError) as caught:
        writer.write(cursor, [[1], [2]], chunk(10))
    assert str(caught.value) == (
        "table 'trades': a foreign key refers to a row that does not exist "
        "('trades_id_fkey') (one of the 2 rows from item 11 on)"
    )


def test_what_a_trigger_says_is_not_repeated(cursor: psycopg.Cursor[Any]) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    cursor.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'secret'; END $$"
    )
    cursor.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON trades "
        "FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    message = str(refusal(cursor, writer, [[1, "Ada", 2.5]]))
    assert "constraint or trigger" in message
    assert "secret" not in message


def test_no_message_repeats_a_value_of_a_row(cursor: psycopg.Cursor[Any]) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    bad: list[list[Any]] = [["secret", "x", 1], [1, b"secret", 1], [1, "x", {"secret"}]]
    for row in bad:
        assert "secret" not in str(refusal(cursor, writer, [row]))


def test_a_failure_of_the_database_is_not_blamed_on_a_row(
    cursor: psycopg.Cursor[Any],
) -> None:
    writer = opened(cursor, TableWriter("trades", TRADES))
    cursor.execute("DROP TABLE trades")
    with pytest.raises(psycopg.errors.UndefinedTable):
        writer.write(cursor, [[1, "Ada", 2.5]], chunk())


async def test_rows_and_checkpoint_are_one_atom_over_a_failure(
    postgres_url: str,
) -> None:
    mended: list[bool] = []

    def convert(item: int) -> list[object]:
        return [item if mended or item != 7 else "seven", str(item), item / 2]

    def job() -> Job:
        work = Chunk(
            ListReader(range(10)), TableWriter("trades", TRADES), convert, size=3
        )
        return Job("load", [Step("copy", work)])

    async with open_runtime(postgres_url) as runtime:
        report = await runtime.launch(job())
        assert report.status is BatchStatus.FAILED
        assert report.failure is not None
        assert "column 'id'" in (report.failure.message or "")
        assert "begins with item 7" in (report.failure.message or "")
        mended.append(True)
        report = await runtime.launch(job())
        assert report.status is BatchStatus.COMPLETED
    with psycopg.connect(postgres_url) as look:
        found = look.execute("SELECT id, amount FROM trades ORDER BY id").fetchall()
    assert found == [(number, number / 2) for number in range(10)]
