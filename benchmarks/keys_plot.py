"""Draw and tabulate what `keys` measured, next to what the thesis reports.

Reads `benchmarks/results/keys.json`, draws `docs/reference/keys.svg` and puts the tables into
`docs/reference/keys.md`, between two marks.

Run: python -m benchmarks.keys_plot [--results FILE]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.page import TOP, Chart, bring_up_to_date, count, measured_on, number, table, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RESULTS = Path(__file__).parent / "results" / "keys.json"
PAGE = Path(__file__).parent.parent / "docs" / "reference" / "keys.md"

_ROW, _HEADING = 20, 26
_CHART = Chart(
    title="Rate of a chain in each mode, where the plain chain is 1",
    left=300,
    right=150,
    colours={
        "receive": ("#7a7a7a", "#9a9a9a"),
        "store": ("#2a78d6", "#4493f8"),
        "on-the-fly": ("#1a9e6e", "#2eb67d"),
    },
    legend="until the last key is recorded, or the last property delivered; line: least to most",
)
_THESIS = {"store": 0.30, "on-the-fly": 0.25}
"""Rates that the thesis reports where operators have no delay of their own (Figure 6.13)."""


def draw(rows: Sequence[dict[str, Any]]) -> str:
    """Draw a bar for each mode of each chain."""
    parts: list[str] = []
    y, chain = TOP, None
    for row in rows:
        if _chain(row) != chain:
            chain = _chain(row)
            y += _HEADING
            parts.append(text(12, y - 7, chain, "query"))
        said = f"{chain}, {row['mode']}: {number(row['ratio'])}"
        parts.append(text(24, y + 13, row["mode"], "faint"))
        parts.append(_CHART.bar(row["ratio"], y + 5, 9, row["mode"], said))
        parts.append(_CHART.spread(row["ratio_low"], row["ratio_high"], y + 9.5))
        y += _ROW
    return _CHART.draw(parts, y)


def _chain(row: dict[str, Any]) -> str:
    kind = row["experiment"].split(", ")[1]
    return f"{row['operators']} {kind}, payload of {row['payload_bytes']} bytes"


def tables(result: dict[str, Any]) -> str:
    """Write all tables of the page."""
    rows = result["rows"]
    rates = [row for row in rows if row["experiment"].startswith("throughput")]
    stored = [row for row in rows if row["experiment"].startswith("storage")]
    memory = [row for row in rows if row["experiment"].startswith("memory")]
    parts = [measured_on(result), "## Rate", table(_RATE_HEAD, _rates(rates))]
    parts += ["## Storage", table(_STORAGE_HEAD, _storage(stored))]
    parts += ["## Memory and latency on the fly", table(_MEMORY_HEAD, _memory(memory))]
    return "\n\n".join(parts)


_RATE_HEAD = ("chain", "mode", "rows", "plain rows/s", "rate", "least - most", "thesis")
_STORAGE_HEAD = (
    "chain",
    "form",
    "steps",
    "payload B",
    "stored B",
    "predicted B",
    "prediction / stored",
    "one more step B",
)
_MEMORY_HEAD = ("chain", "steps", "state plain B", "more on the fly B", "formula B", "rate", "ms")


def _rates(rows: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    for row in rows:
        spread = f"{number(row['ratio_low'])} - {number(row['ratio_high'])}"
        thesis = _THESIS.get(row["mode"]) if row["operators"] == 10 else None
        yield [
            _chain(row),
            row["mode"],
            count(row["rows"]),
            count(row["plain_rows_per_s"]),
            number(row["ratio"]),
            spread,
            number(thesis),
        ]


def _storage(rows: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    for row in rows:
        yield [
            row["experiment"].split(", ")[1],
            row["form"],
            str(row["operators"]),
            str(row["payload_bytes"]),
            count(row["storage_bytes"]),
            count(row["predicted_bytes"]),
            f"{row['predicted_bytes'] / row['storage_bytes']:.3f}",
            count(row["marginal_storage_bytes"]),
        ]


def _memory(rows: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    for row in rows:
        yield [
            row["experiment"].split(", ")[1],
            str(row["operators"]),
            count(row["plain_memory_bytes"]),
            count(row["memory_bytes"]),
            count(row["predicted_bytes"]),
            number(row["ratio"]),
            number(row["latency_ms"]),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--results", type=Path, default=RESULTS, help="what was measured")
    options = parser.parse_args()
    result = json.loads(options.results.read_text())
    rates = [row for row in result["rows"] if row["experiment"].startswith("throughput")]
    bring_up_to_date(PAGE, draw(rates), tables(result))


if __name__ == "__main__":
    main()
