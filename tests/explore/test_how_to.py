"""The examples of the page about exploring run and print what stands below them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from clew.ask.provenance import Provenance

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "explore.md"
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(2))
def test_an_example_prints_what_stands_below_it(
    road: Provenance, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    code, shown = EXAMPLES[number]
    exec(re.sub(r"import clew\n|prov = .*\n", "", code), {"prov": road})

    assert capsys.readouterr().out == shown
