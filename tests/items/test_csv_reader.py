"""The CSV reader: what it delivers, and where it goes on."""

import os
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from triolet.actors.items import (
    CsvColumnMissing,
    CsvError,
    CsvFileChanged,
    CsvReader,
    CsvRecordRagged,
    JsonObject,
    SizedReader,
)
from triolet.storage.model.errors import InvalidValue

from .files import TRADES, chunks, drain, put, read_all, resumed, state_after


def test_records_come_as_lists_in_the_order_of_the_file(file: Path) -> None:
    assert read_all(put(file, TRADES)) == [
        ["1", "Ada", "2.50"],
        ["2", "Bob", "3"],
        ["3", "Eve", "4"],
    ]


def test_selected_columns_come_as_tuples_in_the_order_asked_for(file: Path) -> None:
    put(file, TRADES)
    assert read_all(file, columns=["amount", "id"])[0] == ("2.50", "1")
    assert read_all(file, columns=["name"]) == [("Ada",), ("Bob",), ("Eve",)]


def test_dicts_hold_all_or_the_selected_columns(file: Path) -> None:
    put(file, TRADES)
    everything = {"id": "1", "name": "Ada", "amount": "2.50"}
    assert read_all(file, as_dicts=True)[0] == everything
    chosen = read_all(file, as_dicts=True, columns=["amount", "id"])[0]
    assert chosen == {"amount": "2.50", "id": "1"}


def test_without_a_header_columns_name_the_fields_by_position(file: Path) -> None:
    put(file, "1,Ada\n2,Bob\n")
    assert read_all(file, header=False) == [["1", "Ada"], ["2", "Bob"]]
    assert read_all(file, header=False, columns=["id", "name"])[0] == ("1", "Ada")
    dicts = read_all(file, header=False, columns=["id", "name"], as_dicts=True)
    assert dicts[1] == {"id": "2", "name": "Bob"}


def test_a_byte_order_mark_belongs_to_no_name_and_no_field(file: Path) -> None:
    put(file, b'\xef\xbb\xbf"id",name\n1,Ada\n')
    assert read_all(file, as_dicts=True) == [{"id": "1", "name": "Ada"}]
    assert read_all(file, header=False)[0] == ["id", "name"]


def test_blank_lines_are_skipped_and_not_counted(file: Path) -> None:
    put(file, "\n\nid,name\n\n1,Ada\n\r\n\n2,Bob\n\n")
    assert read_all(file) == [["1", "Ada"], ["2", "Bob"]]
    assert state_after(file, 2)["record"] == 2
    assert resumed(file, state_after(file, 1)) == [["2", "Bob"]]


def test_a_line_that_begins_with_a_hash_is_a_record(file: Path) -> None:
    put(file, "tag\none\n#two\nthree\n# four\nfive\n")
    words = [row[0] for row in read_all(file)]
    assert words == ["one", "#two", "three", "# four", "five"]


def test_every_usual_line_end_ends_a_record(file: Path) -> None:
    for end in ("\n", "\r\n", "\r"):
        put(file, TRADES.replace("\n", end))
        assert len(read_all(file)) == 3


def test_the_last_line_needs_no_end(file: Path) -> None:
    assert read_all(put(file, "id\n1\n2")) == [["1"], ["2"]]


def test_a_file_with_a_header_only_has_no_records(file: Path) -> None:
    assert read_all(put(file, "id,name\n")) == []


def test_an_empty_file_without_a_header_has_no_records(file: Path) -> None:
    assert read_all(put(file, ""), header=False) == []


def test_a_limit_bounds_the_records_of_the_whole_input(file: Path) -> None:
    put(file, TRADES)
    assert len(read_all(file, limit=2)) == 2
    assert len(read_all(file, limit=9)) == 3
    assert len(resumed(file, state_after(file, 1, limit=2), limit=2)) == 1
    assert resumed(file, state_after(file, 2, limit=2), limit=2) == []


def test_what_lies_beyond_the_limit_may_be_broken(file: Path) -> None:
    put(file, b'id\n1\n2\n\xff\n"unclosed')
    assert read_all(file, limit=2) == [["1"], ["2"]]


def test_the_locale_does_not_decide_about_the_encoding(file: Path) -> None:
    put(file, "name\nGrün\n")
    script = (
        "import sys; from triolet.actors.items import CsvReader\n"
        "reader = CsvReader(sys.argv[1]); reader.open(None)\n"
        "print(ascii(reader.read(9))); reader.close()"
    )
    root = str(Path(__file__).parents[2] / ".src")
    for name in ("C", "POSIX", "de_DE.ISO-8859-1"):
        told = {"LC_ALL": name, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        env = {**os.environ, **told, "PYTHONPATH": root}
        command = [sys.executable, "-c", script, str(file)]
        done = subprocess.run(command, env=env, capture_output=True, check=True)
        assert done.stdout.decode("ascii").strip() == "[['Gr\\xfcn']]"


def test_utf_16_is_read_when_it_is_declared(file: Path) -> None:
    put(file, "name\nGrün\n".encode("utf-16"))
    assert read_all(file, encoding="utf-16") == [["Grün"]]


def test_no_more_is_held_than_was_asked_for(file: Path) -> None:
    put(file, "id,name\n" + "".join(f"{i},{'x' * 90}\n" for i in range(40_000)))
    reader = CsvReader(file)
    tracemalloc.start()
    try:
        reader.open(None)
        for _ in chunks(reader, 100):
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        reader.close()
    assert peak < file.stat().st_size / 10


def test_a_quote_inside_a_field_is_an_ordinary_character(file: Path) -> None:
    lines = [f"{i};Fundo {i} S/A d'Ouro;ação" for i in range(20_000)]
    lines[76] = '76;Fundo "76 S/A;ação'
    lines[8_999] = '8999;Fundo 8999" S/A;ação'
    put(file, "\r\n".join(lines).encode("latin-1"))
    options = {"header": False, "delimiter": ";", "encoding": "latin-1"}
    for quotechar in ('"', None):
        rows = read_all(file, quotechar=quotechar, **options)
        assert [";".join(row) for row in rows] == lines


def test_an_unclosed_quote_harms_no_record_before_it(file: Path) -> None:
    lines = [f"{i};name {i}" for i in range(20_000)]
    lines[76] = '76;"name'
    put(file, "\n".join(lines))
    reader = CsvReader(file, header=False, delimiter=";")
    reader.open(None)
    assert len(reader.read(76)) == 76
    with pytest.raises(CsvError, match="line 77") as caught:
        reader.read(1)
    reader.close()
    assert caught.value.line == 77
    assert len(read_all(file, header=False, delimiter=";", quotechar=None)) == 20_000


def test_quoting_can_be_switched_off(file: Path) -> None:
    put(file, 'name\n"Ada"\n"Bob\n')
    assert read_all(file, quotechar=None) == [['"Ada"'], ['"Bob']]


def test_line_breaks_in_quoted_fields_are_kept(file: Path) -> None:
    put(file, 'id,note\n1,"a\nb"\n2,"c\r\nd\n\ne"\n3,"f\rg"\n')
    notes = [row[1] for row in read_all(file)]
    assert notes == ["a\nb", "c\r\nd\n\ne", "f\rg"]


def test_a_restart_at_any_record_gives_the_rest_of_an_undisturbed_run(
    file: Path,
) -> None:
    put(file, 'id,note\n1,"a\n\nb"\n\n2,"c\r\nd"\n3,plain\n4,"""\n,"\n5,end')
    whole = read_all(file)
    for records in range(len(whole) + 1):
        assert resumed(file, state_after(file, records)) == whole[records:]


def test_a_restart_before_the_first_read_begins_at_the_first_record(
    file: Path,
) -> None:
    assert len(resumed(put(file, TRADES), state_after(file, 0))) == 3


def test_a_file_that_became_shorter_is_refused(file: Path) -> None:
    state = state_after(put(file, TRADES), 3)
    put(file, "id,name,amount\n1,Ada,2.50\n")
    with pytest.raises(CsvFileChanged, match="fewer than the 3 records"):
        resumed(file, state)
    put(file, "id,name,amount\n")
    with pytest.raises(CsvFileChanged, match="fewer than the 3 records"):
        resumed(file, state)


def test_a_file_with_another_header_is_refused(file: Path) -> None:
    state = state_after(put(file, TRADES), 1)
    put(file, "\n" + TRADES.replace("amount", "price"))
    with pytest.raises(CsvFileChanged, match="line 2: the header"):
        resumed(file, state)


def test_a_reader_that_sees_the_header_otherwise_than_before_is_refused(
    file: Path,
) -> None:
    put(file, TRADES)
    for before in (True, False):
        state = state_after(file, 1, header=before)
        with pytest.raises(CsvFileChanged, match="line 1: the header"):
            resumed(file, state, header=not before)


def test_a_file_whose_last_record_read_changed_is_refused(file: Path) -> None:
    state = state_after(put(file, TRADES), 2)
    put(file, TRADES.replace("Bob", "Rob"))
    with pytest.raises(CsvFileChanged, match="line 3: record 2"):
        resumed(file, state)


def test_a_fault_before_the_checkpoint_is_reported(file: Path) -> None:
    state = state_after(put(file, TRADES), 3)
    put(file, TRADES.replace("2,Bob", '2,"Bob'))
    with pytest.raises(CsvError, match="line 3"):
        resumed(file, state)


def test_what_follows_the_checkpoint_may_change(file: Path) -> None:
    state = state_after(put(file, TRADES), 2)
    put(file, TRADES.replace("Eve", "Eva") + "4,Joe,5\n")
    assert resumed(file, state) == [["3", "Eva", "4"], ["4", "Joe", "5"]]


def test_a_checkpoint_of_something_else_is_refused(file: Path) -> None:
    put(file, TRADES)
    broken: list[JsonObject] = [
        {},
        {"record": -1},
        {"record": 1 << 63},
        {"record": True},
        {"record": "1"},
        {"record": 1, "header": 5},
        {"record": 1, "header": None, "last": []},
    ]
    for state in broken:
        with pytest.raises(InvalidValue, match="checkpoint"):
            resumed(file, state)


def test_a_failed_read_leaves_the_position_and_may_be_repeated(file: Path) -> None:
    put(file, TRADES + "4\n")
    reader = CsvReader(file)
    reader.open(None)
    assert len(reader.read(2)) == 2
    before = reader.state()
    for _ in range(2):
        with pytest.raises(CsvRecordRagged, match="line 5"):
            reader.read(5)
    assert reader.state() == before
    put(file, TRADES + "4,Joe,5\n")
    assert [row[0] for row in reader.read(5)] == ["3", "4"]
    reader.close()


def test_a_reader_can_be_opened_again_after_it_was_closed(file: Path) -> None:
    put(file, TRADES)
    reader = CsvReader(file)
    for _ in range(2):
        reader.open(None)
        assert len(drain(reader)) == 3
        assert reader.read(1) == []
        reader.close()
        reader.close()


def test_a_reader_that_could_not_be_opened_does_not_read(file: Path) -> None:
    reader = CsvReader(put(file, TRADES), columns=["id"])
    reader.open(None)
    reader.close()
    put(file, "name\nAda\n")
    with pytest.raises(CsvColumnMissing):
        reader.open(None)
    with pytest.raises(InvalidValue, match="not open"):
        reader.read(1)
    state = state_after(put(file, TRADES), 3)
    put(file, TRADES.replace("Eve", "Eva"))
    with pytest.raises(CsvFileChanged):
        reader.open(state)
    with pytest.raises(InvalidValue, match="not open"):
        reader.read(1)
    reader.close()


def test_reading_needs_an_open_reader_and_a_positive_number(file: Path) -> None:
    reader = CsvReader(put(file, TRADES))
    with pytest.raises(InvalidValue, match="not open"):
        reader.read(1)
    reader.open(None)
    with pytest.raises(InvalidValue, match="at least 1"):
        reader.read(0)
    reader.close()


def test_the_fraction_grows_with_what_was_read_and_ends_at_one(file: Path) -> None:
    put(file, "id,name\n" + "".join(f"{i:05},abc\n" for i in range(1_000)))
    archive = file.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        target.write(file, "trades.csv")
    for path in (file, archive):
        reader = CsvReader(path)
        assert isinstance(reader, SizedReader)
        assert reader.fraction() is None
        reader.open(None)
        for done in range(1, 11):
            reader.read(100)
            assert reader.fraction() == pytest.approx(done / 10, abs=0.02)
        assert reader.read(1) == []
        assert reader.fraction() == 1.0
        reader.close()


def test_the_fraction_follows_the_limit_when_that_ends_the_input(file: Path) -> None:
    put(file, "id\n" + "".join(f"{i}\n" for i in range(1_000)))
    reader = CsvReader(file, limit=10)
    reader.open(None)
    reader.read(5)
    assert reader.fraction() == 0.5
    reader.close()


def test_the_fraction_of_an_empty_file_is_unknown_until_the_end_is_seen(
    file: Path,
) -> None:
    reader = CsvReader(put(file, ""), header=False)
    reader.open(None)
    assert reader.fraction() is None
    assert reader.read(1) == []
    assert reader.fraction() == 1.0
    reader.close()


def test_the_fraction_of_a_long_file_counts_its_bytes(file: Path) -> None:
    put(file, "id\n" + "".join(f"{i:099}\n" for i in range(20_000)))
    reader = CsvReader(file)
    reader.open(None)
    reader.read(10_000)
    assert reader.fraction() == pytest.approx(0.5, abs=0.01)
    reader.close()
