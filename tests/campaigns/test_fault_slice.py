"""A short campaign with a fixed seed; the long one is a command."""

from tests.campaigns.postgres_faults import report


def test_a_dozen_random_faults_over_concurrent_jobs_change_nothing() -> None:
    assert "0 different" in report(faults=12, seed=11)
