"""With pytest, one test function is a test of each sweep, and a failure replays itself."""

import re
import shlex
import subprocess
import sys

import pytest

SAFE = """
    import trio
    from triolet.actors import Job, Step
    from triolet.actors.testing import Scenario, Sweeper, business_effect

    async def work(ctx):
        await trio.lowlevel.checkpoint()

    def test_it(triolet_sweep: Sweeper) -> None:
        triolet_sweep(Scenario(Job("safe", [Step("a", work), Step("b", work)])))
"""
UNSAFE = SAFE.replace("await trio", "business_effect('mail')\n        await trio")
IDS = ["crash", "cancel", "stop", "shutdown", "mixture"]


@pytest.fixture(autouse=True)
def alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what this project sets for its own tests from those inside."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)


def run(
    pytester: pytest.Pytester, source: str, *words: str
) -> tuple[pytest.RunResult, str]:
    pytester.makepyfile(test_job=source)
    # In this process, it would import the library a second time.
    result = pytester.runpytest_subprocess(*words)
    return result, result.stdout.str()


def test_one_function_is_a_test_of_each_sweep(pytester: pytest.Pytester) -> None:
    result, text = run(pytester, SAFE, "-v", "-rP")
    result.assert_outcomes(passed=len(IDS))
    for name in IDS:
        assert f"test_job.py::test_it[{name}] PASSED" in text
    tried = [int(points) for points in re.findall(r"seed 0: (\d+) points?[ ,]", text)]
    assert len(tried) == len(IDS)
    assert f"triolet: {sum(tried)} points of disturbance tried" in text
    assert "cancel_at_every_checkpoint: job 'safe' on memory, seed 0: " in text


def test_without_the_fixture_nothing_is_said(pytester: pytest.Pytester) -> None:
    result, text = run(pytester, "def test_it() -> None: pass")
    result.assert_outcomes(passed=1)
    assert "triolet:" not in text


def test_points_are_limited_and_drawn_by_the_seed(pytester: pytest.Pytester) -> None:
    words = ["--triolet-seed", "7", "--triolet-points", "3", "-rP"]
    result, text = run(pytester, SAFE, *words)
    result.assert_outcomes(passed=len(IDS))
    assert "triolet: seed 7, points 3" in text
    assert len(re.findall("seed 7: 3 points of [0-9]+, drawn by the seed,", text)) == 4
    assert "disturb: job 'safe' on memory, seed 7: 3 points, drawn by the seed" in text
    assert "triolet: 15 points of disturbance tried" in text


def test_one_sweep_is_chosen_as_any_parameter_is(pytester: pytest.Pytester) -> None:
    chosen = '@pytest.mark.parametrize("triolet_sweep", ["stop"], indirect=True)'
    source = SAFE.replace(
        "    def test_it", f"    import pytest\n    {chosen}\n    def test_it"
    )
    result, text = run(pytester, source, "-v")
    result.assert_outcomes(passed=1)
    assert "test_job.py::test_it[stop] PASSED" in text


def test_a_failure_is_short_and_replays_itself(pytester: pytest.Pytester) -> None:
    result, text = run(pytester, UNSAFE, "--triolet-seed", "4")
    result.assert_outcomes(failed=len(IDS))
    assert "Traceback" not in text
    assert "proof.py" not in text
    # With CI set, pytest's summary repeats the whole text of a failure.
    found = re.findall("^Or: pytest (.*)$", text, re.MULTILINE)
    commands = list(dict.fromkeys(found))
    assert len(commands) == len(IDS)
    for name, command in zip(IDS, commands, strict=True):
        words = shlex.split(command)
        assert words[:3] == [f"test_job.py::test_it[{name}]", "--triolet-seed", "4"]
    for command in commands[1], commands[-1]:
        again = pytester.runpytest_subprocess(*shlex.split(command))
        again.assert_outcomes(failed=1)
        assert f"Or: pytest {command}" in again.stdout.str()


def test_what_the_options_cannot_mean_is_said(pytester: pytest.Pytester) -> None:
    result, text = run(pytester, SAFE, "--triolet-only", "explode@3", "-k", "crash")
    result.assert_outcomes(failed=1)
    assert "--triolet-only: 'explode@3' is no disturbance: write KIND@NUMBER" in text
    result, _ = run(pytester, SAFE, "--triolet-points", "0")
    assert "must be a number from 1, not '0'" in result.stderr.str()


def test_an_exception_that_is_no_difference_is_a_traceback(
    pytester: pytest.Pytester,
) -> None:
    source = SAFE.replace('Step("a", work)', 'Step("b", work)')
    result, text = run(pytester, source, "-k", "crash")
    result.assert_outcomes(failed=1)
    assert "DefinitionError" in text


def test_starting_pytest_imports_neither_trio_nor_the_library() -> None:
    script = (
        "import sys, pytest; before = set(sys.modules); "
        "import triolet.actors.testing.plugin; print(*set(sys.modules) - before)"
    )
    output = subprocess.check_output([sys.executable, "-c", script], text=True)
    face = "triolet.actors.testing"
    faces = {"triolet", "triolet.actors", "triolet.storage", face}
    light = {"triolet.actors.homes", "triolet.storage.faces", f"{face}.plugin"}
    assert set(output.split()) == faces | light
