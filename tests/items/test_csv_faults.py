"""What is wrong with a CSV file is said exactly."""

import csv
import pickle
from pathlib import Path
from typing import Any

import pytest

from triolet.actors.items import (
    CsvCharacterIllegal,
    CsvColumnAmbiguous,
    CsvColumnMissing,
    CsvEncodingWrong,
    CsvError,
    CsvFieldTooLarge,
    CsvHeaderMissing,
    CsvQuoteMisplaced,
    CsvQuoteUnclosed,
    CsvReader,
    CsvRecordRagged,
)
from triolet.actors.items.csv_faults import (
    line_of,
    parse_fault,
    ragged,
    text_fault,
    wrong_byte,
)
from triolet.actors.items.csv_source import CsvSource

from .files import (
    TRADES,
    put,
    read_all,
    resumed,
    state_after,
    stored,
)


def test_a_wrong_byte_is_named_with_its_line_and_offset(file: Path) -> None:
    put(file, "Gemeinde;Fläche\nKöniz;51\n".encode("latin-1"))
    with pytest.raises(CsvEncodingWrong) as caught:
        read_all(file, delimiter=";")
    wrong = caught.value
    assert (wrong.line, wrong.offset, wrong.byte) == (1, 11, 0xE4)
    assert "line 1: byte 0xE4 at offset 11 is not valid utf-8" in str(wrong)
    rows = read_all(file, delimiter=";", encoding="latin-1")
    assert rows == [["Köniz", "51"]]


def test_a_wrong_byte_far_in_harms_no_record_before_it(file: Path) -> None:
    lines = [f"{i};Ort {i}".encode() for i in range(1, 1_000)]
    lines[499] = b"500;K\xf6niz"
    content = b"\n".join(lines)
    put(file, content)
    reader = CsvReader(file, header=False, delimiter=";")
    reader.open(None)
    assert len(reader.read(499)) == 499
    state = stored(reader.state())
    with pytest.raises(CsvEncodingWrong) as caught:
        reader.read(10)
    reader.close()
    assert (caught.value.line, caught.value.byte) == (500, 0xF6)
    assert caught.value.offset == content.index(b"\xf6")
    assert stored(reader.state()) == state
    put(file, content.replace(b"\xf6", "ö".encode()))
    assert len(resumed(file, state, header=False, delimiter=";")) == 500


def test_a_wrong_byte_is_found_beyond_the_first_block(file: Path) -> None:
    good = "".join(f"{i},é\r\n" for i in range(30_000)).encode()
    put(file, good + b"\xe9,\r\n")
    with pytest.raises(CsvEncodingWrong) as caught:
        read_all(file, header=False)
    assert (caught.value.line, caught.value.offset) == (30_001, len(good))


def test_the_line_of_a_wrong_byte_is_its_own_not_the_records(file: Path) -> None:
    put(file, b'id,note\r\n1,"a\r\nb\rc\n\xff"\r\n')
    with pytest.raises(CsvEncodingWrong) as caught:
        read_all(file)
    assert (caught.value.line, caught.value.offset) == (5, 19)


def test_a_character_cut_off_at_the_end_is_a_wrong_byte(file: Path) -> None:
    put(file, b"name\nGr\xc3")
    with pytest.raises(CsvEncodingWrong) as caught:
        read_all(file)
    assert (caught.value.line, caught.value.offset, caught.value.byte) == (2, 7, 0xC3)


def test_wrong_utf_16_is_named_with_its_offset(file: Path) -> None:
    put(file, "id\n1\n".encode("utf-16-le") + b"\x00\xd8" + "\n".encode("utf-16-le"))
    with pytest.raises(CsvEncodingWrong) as caught:
        read_all(file, encoding="utf-16-le")
    assert (caught.value.line, caught.value.offset) == (3, 10)


def test_the_line_is_known_even_beside_a_wrong_byte(file: Path) -> None:
    text = "id\n1\n2,b\n"
    put(file, text.encode("utf-16-le") + b"\x00\xd8" + "\n".encode("utf-16-le"))
    with pytest.raises(CsvEncodingWrong, match="line 4"):
        read_all(file, encoding="utf-16-le")
    put(file, b"id\n1\n2,b\n\xff\n")
    with pytest.raises(CsvRecordRagged, match="line 3"):
        read_all(file)


def test_a_nul_character_is_refused_with_its_line(file: Path) -> None:
    put(file, b'id,name\n1,"A\nb"\n2,B\x00\n')
    with pytest.raises(CsvCharacterIllegal, match=r"line 4: .*U\+0000"):
        read_all(file)


def test_a_lone_surrogate_is_refused_with_its_line(file: Path) -> None:
    put(file, b"name\nAda\n+2AA-\xff\n")
    with pytest.raises(CsvError, match="line 3"):
        read_all(file, encoding="utf-7")


def test_an_unclosed_quote_is_named_with_the_line_where_its_record_begins(
    file: Path,
) -> None:
    put(file, 'id,note\n1,"a\nb"\n\n2,"c\n3,d\n')
    with pytest.raises(CsvQuoteUnclosed, match="line 5: a quote is opened"):
        read_all(file)


def test_text_after_a_closing_quote_is_refused(file: Path) -> None:
    put(file, 'id,note\n1,a\n2,"b"c\n')
    with pytest.raises(CsvQuoteMisplaced, match="line 3: a closing quote"):
        read_all(file)


def test_a_field_beyond_the_limit_is_refused(file: Path) -> None:
    put(file, f"id,note\n1,a\n2,{'x' * (csv.field_size_limit() + 1)}\n")
    with pytest.raises(CsvFieldTooLarge, match="line 3: a field is longer") as caught:
        read_all(file)
    assert "never closed" not in str(caught.value)


def test_an_unclosed_quote_in_a_long_file_is_suspected(file: Path) -> None:
    put(file, 'id,note\n1,"a\n' + "2,b\n" * csv.field_size_limit())
    with pytest.raises(CsvFieldTooLarge, match=r"line 2: .*never closed"):
        read_all(file)


def test_a_record_with_another_number_of_fields_is_named_with_its_line(
    file: Path,
) -> None:
    put(file, 'id,note\n1,"a\nb"\n\n2,c,d\n')
    with pytest.raises(CsvRecordRagged) as caught:
        read_all(file)
    message = str(caught.value)
    assert "line 5: the record has 3 fields, expected 2 as in the header" in message


def test_without_a_header_the_first_record_or_columns_set_the_number_of_fields(
    file: Path,
) -> None:
    put(file, "1,a\n2\n")
    with pytest.raises(
        CsvRecordRagged, match=r"line 2: .*1 field, expected 2 as in the"
    ):
        read_all(file, header=False)
    with pytest.raises(CsvRecordRagged, match=r"line 1: .*expected 3 as in columns"):
        read_all(file, header=False, columns=["a", "b", "c"])


def test_the_number_of_fields_is_known_again_after_a_restart(file: Path) -> None:
    put(file, "1,a\n2,b\n3\n")
    with pytest.raises(CsvRecordRagged, match="line 3"):
        resumed(file, state_after(file, 2, header=False), header=False)


def test_the_earlier_of_two_faults_is_reported(file: Path) -> None:
    put(file, b'id,note\n1\n2,"b"c\n3,\xff\n')
    reader = CsvReader(file)
    reader.open(None)
    with pytest.raises(CsvRecordRagged, match="line 2"):
        reader.read(10)
    reader.close()


def test_an_empty_file_lacks_its_header(file: Path) -> None:
    with pytest.raises(CsvHeaderMissing, match="header=False"):
        read_all(put(file, "\n\n"))


def test_a_missing_column_is_named_with_those_that_are_there(file: Path) -> None:
    put(file, TRADES)
    with pytest.raises(
        CsvColumnMissing, match="'price'; the header has 'id', 'name' a"
    ):
        read_all(file, columns=["id", "price"])


def test_a_long_header_is_not_listed_to_its_end(file: Path) -> None:
    put(file, ",".join(f"c{index}" for index in range(50)))
    with pytest.raises(CsvColumnMissing, match="'c19' and 30 more"):
        read_all(file, columns=["id"])


def test_a_column_name_that_occurs_twice_is_refused_where_it_is_needed(
    file: Path,
) -> None:
    put(file, "id,name,name\n1,a,b\n")
    for options in ({"as_dicts": True}, {"columns": ["name"]}):
        with pytest.raises(CsvColumnAmbiguous, match="'name' more than once"):
            read_all(file, **options)
    assert read_all(file, columns=["id"]) == [("1",)]
    assert read_all(file) == [["1", "a", "b"]]


def test_errors_about_columns_give_the_line_of_the_header(file: Path) -> None:
    put(file, "\n\nid,id\n")
    with pytest.raises(CsvColumnMissing, match="line 3"):
        read_all(file, columns=["name"])
    with pytest.raises(CsvColumnAmbiguous, match="line 3"):
        read_all(file, as_dicts=True)


def test_a_fault_that_is_gone_when_looked_for_has_no_line(file: Path) -> None:
    source = CsvSource(
        path=put(file, "id\n1\n"),
        member=None,
        encoding="utf-8",
        delimiter=",",
        quotechar='"',
    )
    assert line_of(source, 2) is None
    assert wrong_byte(source) is None
    assert parse_fault(source, csv.Error("unexpected end of data")).line is None
    assert ragged(source, 9, 1, 2, "in the header").line is None
    surrogate = text_fault(source, 1, ["\udc80"])
    assert isinstance(surrogate, CsvCharacterIllegal)
    put(file, 'id\n"1\n')
    assert line_of(source, 2) is None


def test_a_problem_that_csv_may_report_one_day_is_passed_on(file: Path) -> None:
    source = CsvSource(
        path=put(file, 'id\n"1\n'),
        member=None,
        encoding="utf-8",
        delimiter=",",
        quotechar='"',
    )
    error = parse_fault(source, csv.Error("something new"))
    assert str(error).endswith("line 2: the record cannot be parsed (something new)")


def test_every_error_survives_pickling_and_has_its_own_code() -> None:
    kinds: list[Any] = [CsvError, *CsvError.__subclasses__()]
    codes = set()
    for kind in kinds:
        extra = (7, 0xE4) if kind is CsvEncodingWrong else ()
        error = kind("trades.csv", 3, "why", *extra)
        assert pickle.loads(pickle.dumps(error)) == error
        assert str(error) == "trades.csv, line 3: why"
        codes.add(error.code)
    assert len(codes) == len(kinds)
