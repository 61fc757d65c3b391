"""The limits of PostgreSQL, at a tiny size: they do the work that they are timed for."""

from pathlib import Path

import psycopg
import pytest

from benchmarks import flights
from benchmarks.postgres_limit import STATEMENTS, bare_copy, bare_steps
from benchmarks.rows import WrongResult


@pytest.mark.parametrize("group", [1, 3])
def test_bare_steps_are_ended_and_started(postgres_url: str, group: int) -> None:
    assert bare_steps(postgres_url, transactions=4, group=group) > 0
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute(
            "SELECT status, count(*)::int, max(version), max(decision_sequence) "
            "FROM limit_step GROUP BY status ORDER BY status"
        ).fetchall()
    assert found == [("COMPLETED", 4 * group, 3, 4), ("STARTED", group, 1, None)]


def test_bare_steps_that_are_fenced_have_no_figure(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fenced = STATEMENTS["finish"].replace("owner_id = $3", "owner_id = $3 + 1")
    monkeypatch.setitem(STATEMENTS, "finish", fenced)
    with pytest.raises(WrongResult, match="steps ended"):
        bare_steps(postgres_url, transactions=1)


def test_a_file_is_copied_in_chunks(postgres_url: str, tmp_path: Path) -> None:
    source = tmp_path / "flights.csv"
    flights.write_csv(source, flights.generated_lines(2_500), 2_500)
    assert bare_copy(postgres_url, source, flights.COLUMNS) > 0
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute(
            "SELECT count(*), count(DISTINCT xmin::text) FROM flights"
        ).fetchone()
    assert found == (2_500, 3)
