"""No text that Triolet writes holds a secret, however user code spelled it."""

import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triolet.actors import Job, Parameter, Step, StepContext, open_runtime
from triolet.actors.job.masking import masked, spellings

WAYS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "repr": repr,
    "ascii": ascii,
    "key error": lambda text: str(KeyError(text)),
    "repr of an error": lambda text: repr(ValueError(f"wrong: {text}")),
    "repr of a quoting error": lambda text: repr(ValueError(f'wrong: "{text}"')),
    "in a dict": lambda text: str({"password": text}),
    "bytes": lambda text: repr(text.encode()),
    "json": json.dumps,
    "json, not escaped": lambda text: json.dumps({"p": text}, ensure_ascii=False),
    "json in a repr": lambda text: repr(json.dumps({"p": text})),
    "url": quote,
    "a part of a url": lambda text: quote(text, safe=""),
    "a query": lambda text: urlencode({"p": text}),
    "a form": quote_plus,
}
HARD = "hunter2 \"q'uo\\te" + "é⚙/&"
FRAGMENTS = ("hunter2", "uo", "⚙", "u2699")


@pytest.mark.parametrize("way", WAYS)
def test_every_usual_spelling_is_masked(way: str) -> None:
    shown = masked(f"before {WAYS[way](HARD)} after", spellings([HARD]))

    assert shown.startswith("before ")
    assert shown.endswith(" after")
    assert "***" in shown
    assert not [one for one in FRAGMENTS if one in shown]


@given(st.text(min_size=1), st.sampled_from(sorted(WAYS)))
def test_any_secret_is_masked(secret: str, way: str) -> None:
    try:
        text = WAYS[way](secret)
    except UnicodeEncodeError:
        return
    assert "***" in masked(text, spellings([secret]))


def test_an_empty_secret_masks_nothing() -> None:
    assert masked("all of it", spellings([""])) == "all of it"


async def test_a_key_error_over_a_secret_does_not_show_it() -> None:
    def look_up(ctx: StepContext) -> None:
        accounts: dict[object, int] = {}
        accounts[ctx.parameters["password"]]

    secret = Parameter("password", str, identifying=False, secret=True)
    job = Job("login", [Step("look", look_up)], parameters=[secret])
    async with open_runtime("memory:") as runtime:
        report = await runtime.launch(job, password=HARD)

    assert report.failure is not None
    assert report.failure.message == "'***'"
