"""Draw and tabulate what `overhead` measured, next to what the papers report.

Reads `benchmarks/results/overhead.json`, draws `docs/reference/overhead.svg` and puts the tables
into `docs/reference/overhead.md`, between two marks. The picture is plain SVG; its colours follow
the reader's light or dark setting.

Run: python -m benchmarks.plot [--results FILE]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.page import TOP, Chart, bring_up_to_date, count, measured_on, number, table, text

if TYPE_CHECKING:
    from collections.abc import Sequence

RESULTS = Path(__file__).parent / "results" / "overhead.json"
PAGE = Path(__file__).parent.parent / "docs" / "reference" / "overhead.md"

_ROW, _HEADING = 20, 26
_CHART = Chart(
    title="Rate of traced queries, where plain Spark is 1",
    left=300,
    right=150,
    colours={
        "pointers": ("#2a78d6", "#4493f8"),
        "intervals": ("#1a9e6e", "#2eb67d"),
        "sets": ("#dd5f2c", "#f0793f"),
    },
    legend=(
        "thick: the query itself; pale: until the last edge is stored; line: smallest to largest"
    ),
    style=".complete { fill-opacity: 0.45; }\n",
)

# Ariadne, Figure 14: seconds for 100,000 rows, by the number of nested aggregations.
_ARIADNE = {
    "no provenance": (3.1, 3.9, 4.8, 5.7),
    "instrumentation, generation": (3.9, 7.4, 14.7, 48.6),
    "covering interval": (3.1, 4.4, 5.2, 6.3),
}
# Rate and CPU, plain = 1, on 12 M Linear Road reports: Ananke's own programs on Flink 1.10, and the
# prototype that clew began with; both on a machine like this.
_PEERS = (
    ("GeneaLog (Flink)", 0.89, 1.4),
    ("Ananke, ANK-1 (Flink)", 0.71, 2.0),
    ("Ananke, ANK-N (Flink)", 0.36, 4.0),
    ("clew's prototype: plain, then one unfolding", 0.85, 1.17),
)


def draw(rows: Sequence[dict[str, Any]]) -> str:
    """Draw bars: the rate of the traced query, and until the last edge is stored; plain is 1."""
    parts: list[str] = []
    y, query = TOP, None
    for row in rows:
        if row["query"] != query:
            query = row["query"]
            y += _HEADING
            parts.append(text(12, y - 7, query, "query"))
        parts += _bars(row, y)
        y += _ROW
    return _CHART.draw(parts, y)


def _bars(row: dict[str, Any], y: float) -> list[str]:
    capture = row["capture"]
    said = f"{row['query']}, {capture}: {number(row['ratio'])}"
    values = number(row["ratio"])
    whole = row["ratio_complete"]
    out = [text(24, y + 13, capture, "faint")]
    out.append(_CHART.bar(row["ratio"], y + 3, 7, capture, said))
    if whole is not None:
        until = f"{said}; until the last edge is stored: {number(whole)}"
        out.append(_CHART.bar(whole, y + 11, 5, f"{capture} complete", until))
        values += f", stored {number(whole)}"
    out.append(_CHART.spread(row["ratio_low"], row["ratio_high"], y + 6.5))
    end = max(_CHART.x(row["ratio_high"]), _CHART.x(whole or 0)) + 8
    out.append(text(end, y + 13, values, "faint"))
    return out


def tables(result: dict[str, Any]) -> str:
    """Write all tables in Markdown."""
    rows = result["rows"]
    parts = [measured_on(result), _measured(rows)]
    parts += [
        each for each in (_retrieved(rows), _beside_ariadne(rows), _beside_peers(rows)) if each
    ]
    return "\n\n".join(parts)


def _measured(rows: Sequence[dict[str, Any]]) -> str:
    head = ["query", "capture", "rows", "plain rows/s", "rate", "lowest - highest", "until stored"]
    head += ["CPU", "state", "results", "edges", "bytes per edge"]
    return table(
        head,
        (
            (
                row["query"],
                row["capture"],
                count(row["input_rows"]),
                count(row["plain_rows_per_s"]),
                number(row["ratio"]),
                f"{number(row['ratio_low'])} - {number(row['ratio_high'])}",
                number(row["ratio_complete"]),
                number(row["cpu_ratio"]),
                number(row["state_bytes_ratio"]),
                count(row["sink_rows"]),
                count(row["edges"]),
                number(row["bytes_per_edge"]),
            )
            for row in rows
            if row["ratio"] is not None
        ),
    )


def _retrieved(rows: Sequence[dict[str, Any]]) -> str:
    asked = [row for row in rows if row.get("seconds_median") is not None]
    head = ("asked afterwards", "rows of the source", "results", "of which asked", "median seconds")
    made = (
        (
            row["query"],
            count(row["input_rows"]),
            count(row["sink_rows"]),
            count(row.get("sink_rows_asked", 1)),
            number(row["seconds_median"]),
        )
        for row in asked
    )
    return table(head, made) if asked else ""


def _beside_ariadne(rows: Sequence[dict[str, Any]]) -> str:
    found = {(row["query"], row["capture"]): row["ratio"] for row in rows}
    levels = range(1, 5)
    if not any((f"nested_{level}", "pointers") in found for level in levels):
        return ""
    plain = _ARIADNE["no provenance"]
    papers = [
        (f"Ariadne, {name}", *[number(p / s) for p, s in zip(plain, seconds, strict=True)])
        for name, seconds in _ARIADNE.items()
        if name != "no provenance"
    ]
    ours = [
        (f"clew, {name}", *[number(found.get((f"nested_{level}", name))) for level in levels])
        for name in ("pointers", "intervals", "sets")
    ]
    return table(("rate, plain = 1, by nested aggregations", "1", "2", "3", "4"), papers + ours)


def _beside_peers(rows: Sequence[dict[str, Any]]) -> str:
    ours = [
        (f"clew, {row['query']}, {row['capture']}", row["ratio_complete"], row["cpu_ratio"])
        for row in rows
        if row["query"].startswith("linear_road") and row["ratio_complete"] is not None
    ]
    head = ("Linear Road, all edges stored", "rate, plain = 1", "CPU, plain = 1")
    made = ((name, number(rate), number(cpu)) for name, rate, cpu in (*_PEERS, *ours))
    return table(head, made) if ours else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--results", type=Path, default=RESULTS, help="what `overhead` wrote")
    options = parser.parse_args()
    result = json.loads(options.results.read_text())
    picture = draw([row for row in result["rows"] if row["ratio"] is not None])
    bring_up_to_date(PAGE, picture, tables(result))


if __name__ == "__main__":
    main()
