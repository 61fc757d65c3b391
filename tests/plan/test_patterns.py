"""Exit patterns, compared with exhaustive enumeration over a tiny alphabet."""

from itertools import pairwise, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from triolet.storage.model.errors import InvalidName
from triolet.storage.model.patterns import (
    Matcher,
    check_pattern,
    is_literal,
    matches,
    overlap,
    specificity,
)

CODES = ["".join(chars) for n in range(7) for chars in product("abc", repeat=n)]
patterns = st.text("ab*?", min_size=1, max_size=6)
short_patterns = st.text("ab*?", min_size=1, max_size=3)


def naive(pattern: str, code: str) -> bool:
    """Match by the definition: slow, and obviously right."""
    if not pattern:
        return not code
    if pattern[0] == "*":
        return any(naive(pattern[1:], code[n:]) for n in range(len(code) + 1))
    return bool(code) and pattern[0] in ("?", code[0]) and naive(pattern[1:], code[1:])


@given(patterns)
@example("**")
@example("*?*")
@example("*ab*")
def test_a_pattern_matches_what_its_definition_says(pattern: str) -> None:
    matcher = Matcher.of(pattern)
    expected = [code for code in CODES if naive(pattern, code)]
    assert [code for code in CODES if matcher.matches(code)] == expected


@given(short_patterns, short_patterns)
@example("*a", "b*")
@example("?", "*")
@example("a?", "?b")
def test_patterns_overlap_when_some_text_matches_both(left: str, right: str) -> None:
    # A shortest common text has at most as many characters as both patterns.
    common = any(matches(left, code) and matches(right, code) for code in CODES)
    assert overlap(left, right) == common
    assert overlap(right, left) == common


@pytest.mark.parametrize(
    ("pattern", "code", "expected"),
    [
        ("FAILED", "FAILED", True),
        ("FAILED", "failed", False),
        ("?", "é", True),
        ("?", "🙂", True),
        ("?", "e\N{COMBINING ACUTE ACCENT}", False),
        ("É*", "É2", True),
        ("a.c", "abc", False),
        ("[ab]", "a", False),
        ("*", "any thing", True),
    ],
)
def test_matching_is_literal_and_by_code_point(
    pattern: str, code: str, expected: bool
) -> None:
    assert matches(pattern, code) is expected


def test_a_pattern_full_of_stars_is_answered_at_once() -> None:
    assert not matches("*a" * 32, "a" * 63 + "b")
    assert matches("*a" * 32, "a" * 64)
    assert not overlap("*a" * 31 + "*b", "*a" * 31 + "*c")


def test_more_specific_patterns_sort_first() -> None:
    ordered = ["FAILED", "FAIL*", "FAI?", "FAI*?", "é*", "e*", "?", "**"]
    assert sorted(set(ordered), key=specificity) == ordered
    assert all(specificity(a) < specificity(b) for a, b in pairwise(ordered))
    assert specificity("a*") == specificity("?a") == specificity("b*")


@given(patterns, st.sampled_from(CODES[1:]))
def test_a_literal_pattern_wins_over_all_others_that_match_it(
    pattern: str, code: str
) -> None:
    if matches(pattern, code) and not is_literal(pattern):
        assert specificity(code) < specificity(pattern)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "must not be empty"),
        ("é" * 33, "has 66 bytes, at most 64 are allowed"),
        (" *", "must not begin or end with white space"),
        ("a\tb", "has a control character at index 1"),
        (7, "must be text, not int"),
        ("\ud800", "holds a lone surrogate at index 0"),
    ],
)
def test_an_illegal_pattern_is_refused_with_the_rule(text: object, rule: str) -> None:
    with pytest.raises(InvalidName) as caught:
        check_pattern(text)
    assert str(caught.value) == f"the exit pattern {rule}"


@pytest.mark.parametrize("text", ["*", "?", "a" * 64, "a b", "PART-?*"])
def test_a_legal_pattern_is_returned(text: str) -> None:
    assert check_pattern(text) == text
