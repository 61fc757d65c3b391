"""House rules on size and tidiness for actors/ and storage/."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

LONGEST_MODULE = 400
LONGEST_FUNCTION = 60
MOST_METHODS = 10
VAGUE = {"base", "common", "helpers", "manager", "misc", "utils"}
UNTIDY = re.compile(r"\b(TODO|FIXME)\b|#\s*([-=#*~_+])\2\2")

FIXED_ARTICLE = re.compile(r"""\b[Aa]n? \{(?!\w+!r|what\})""")

# Class name to the reason why it needs more public methods than the others.
BIG_CLASSES: dict[str, str] = {}

ROOT = Path(__file__).parents[1]
SOURCES = {
    path.relative_to(ROOT): path.read_text(encoding="utf-8")
    for top in ("actors", "storage")
    for path in sorted((ROOT / top).rglob("*.py"))
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def fail_on(offences: Iterable[str]) -> None:
    if report := "\n".join(offences):
        pytest.fail(report, pytrace=False)


def syntax() -> Iterator[tuple[Path, ast.AST]]:
    for path, source in SOURCES.items():
        for node in ast.walk(ast.parse(source)):
            yield path, node


def comments() -> Iterator[tuple[Path, int, str]]:
    for path, source in SOURCES.items():
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield path, token.start[0], token.string


def length(function: Function) -> int:
    """Count the lines of *function*, its docstring left out."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or 0) - docstring.lineno + 1
    return lines


def public_methods(node: ast.ClassDef) -> int:
    names = {part.name for part in node.body if isinstance(part, Function)}
    return sum(not name.startswith("_") for name in names)


def test_a_module_fits_in_the_head() -> None:
    fail_on(
        f"{path}: {lines} lines, at most {LONGEST_MODULE}"
        for path, source in SOURCES.items()
        if (lines := len(source.splitlines())) > LONGEST_MODULE
    )


def test_a_function_fits_on_a_screen() -> None:
    fail_on(
        f"{path}:{node.lineno}: {node.name} has {lines} lines without its docstring, "
        f"at most {LONGEST_FUNCTION}"
        for path, node in syntax()
        if isinstance(node, Function) and (lines := length(node)) > LONGEST_FUNCTION
    )


def test_a_class_has_few_public_methods() -> None:
    fail_on(
        f"{path}:{node.lineno}: {node.name} has {methods} public methods, "
        f"at most {MOST_METHODS}"
        for path, node in syntax()
        if isinstance(node, ast.ClassDef)
        and node.name not in BIG_CLASSES
        and (methods := public_methods(node)) > MOST_METHODS
    )


def test_a_module_name_says_what_lives_there() -> None:
    fail_on(
        f"{path}: the name says nothing"
        for path in SOURCES
        if VAGUE & {part.strip("_") for part in path.with_suffix("").parts}
    )


def test_comments_are_finished_and_plain() -> None:
    fail_on(
        f"{path}:{line}: {comment}"
        for path, line, comment in comments()
        if UNTIDY.search(comment)
    )


def test_no_sentence_guesses_an_article() -> None:
    fail_on(
        f"{path}:{number}: {line.strip()}"
        for path, source in SOURCES.items()
        for number, line in enumerate(source.splitlines(), 1)
        if FIXED_ARTICLE.search(line)
    )
