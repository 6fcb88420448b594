"""The examples of the how-to page, run on the road store."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from clew.ask.provenance import Provenance

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "ask-questions.md"
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE.read_text(), re.DOTALL)


def words(text: str) -> list[str]:
    return text.replace("[", "[ ").split()


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_gives_what_stands_below_it(road: Provenance, number: int) -> None:
    code, shown = EXAMPLES[number]
    code = re.sub(r"import clew\n|prov = .*\n", "", code)
    *statements, last = ast.parse(code).body
    names: dict[str, object] = {"prov": road}
    exec(compile(ast.Module(statements, []), "page", "exec"), names)
    assert isinstance(last, ast.Expr)

    found = words(repr(eval(compile(ast.Expression(last.value), "page", "eval"), names)))

    expected = words(shown)
    if expected[-1] == "...":
        expected = expected[:-1]
        found = found[: len(expected)]
    assert found == expected


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 5
