"""Generated tables come back as they were written, from every checkpoint."""

import csv
import io
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from triolet.actors.items import (
    CsvReader,
)

from .files import (
    put,
    resumed,
    stored,
)

FIELD = st.text(
    st.one_of(
        st.sampled_from("\"',;\t|\n\r #x"),
        st.characters(exclude_categories=["Cs"], exclude_characters=["\0", "\ufeff"]),
    ),
    max_size=8,
)


@st.composite
def tables(draw: st.DrawFn) -> list[list[str]]:
    width = draw(st.integers(1, 4))
    row = st.lists(FIELD, min_size=width, max_size=width)
    return draw(st.lists(row, max_size=12))


def written(
    table: list[list[str]], delimiter: str, quotechar: str, end: str, encoding: str
) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(
        text,
        delimiter=delimiter,
        quotechar=quotechar,
        lineterminator=end,
        quoting=csv.QUOTE_MINIMAL if end == "\r\n" else csv.QUOTE_ALL,
    )
    if table:
        writer.writerow([f"c{index}" for index in range(len(table[0]))])
    writer.writerows(table)
    return text.getvalue().encode(encoding)


@given(
    table=tables(),
    delimiter=st.sampled_from(",;\t|"),
    quotechar=st.sampled_from("\"'"),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    zipped=st.booleans(),
)
def test_a_written_table_is_read_back_from_every_checkpoint(
    table: list[list[str]],
    delimiter: str,
    quotechar: str,
    end: str,
    encoding: str,
    sizes: list[int],
    zipped: bool,
) -> None:
    with TemporaryDirectory() as folder:
        path = put(
            Path(folder) / "table.csv",
            written(table, delimiter, quotechar, end, encoding),
        )
        if zipped:
            target = path.with_suffix(".zip")
            with zipfile.ZipFile(target, "w") as archive:
                archive.write(path, "table.csv")
            path = target
        options: dict[str, Any] = {
            "delimiter": delimiter,
            "quotechar": quotechar,
            "encoding": encoding,
            "header": bool(table),
        }
        reader: CsvReader[Any] = CsvReader(path, **options)
        reader.open(None)
        rows: list[Any] = []
        states = [(0, stored(reader.state()))]
        turn = 0
        while chunk := reader.read(sizes[turn % len(sizes)]):
            rows.extend(chunk)
            states.append((len(rows), stored(reader.state())))
            turn += 1
        reader.close()
        assert rows == table
        for position, state in states:
            assert resumed(path, state, **options) == table[position:]
