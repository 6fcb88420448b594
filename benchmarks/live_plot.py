"""Draw and tabulate what `live` measured, next to what Ananke's paper reports.

Reads `benchmarks/results/live.json`, draws `docs/reference/live.svg` and puts the tables into
`docs/reference/live.md`, between two marks. The picture is plain SVG; its colours follow the
reader's light or dark setting.

Run: python -m benchmarks.live_plot [--results FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.page import TOP, Chart, bring_up_to_date, count, measured_on, number, table, text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RESULTS = Path(__file__).parent / "results" / "live.json"
PAGE = Path(__file__).parent.parent / "docs" / "reference" / "live.md"

Row = dict[str, Any]

_ROW, _HEADING = 18, 26
_CHART = Chart(
    title="Rate of queries with a live graph, where plain Spark is 1",
    left=190,
    right=230,
    colours={
        "operator": ("#2a78d6", "#4493f8"),
        "native": ("#1a9e6e", "#2eb67d"),
        "sqlite": ("#dd5f2c", "#f0793f"),
        "postgres": ("#8a63d2", "#ab7df8"),
    },
    legend="line: smallest to largest",
)
_PICTURE = f"![{_CHART.title}](live.svg)"

# Rates of Ananke's Figures 10, 11, 13 and 14, plain = 1, as its text gives them; the text gives no
# rate of GeneaLog for Vehicle Tracking, so there they are by GeneaLog's.
_PAPER = {
    "linear_road": ("0.97", "0.95", "0.95"),
    "smart_grid": ("0.91", "0.89", "0.84"),
    "vehicle_tracking": ("not given", "0.96 - 0.98 of GeneaLog", "0.82 of GeneaLog, at worst"),
    "object_annotation": ("0.79", "0.74 - 0.76", "0.74 - 0.76"),
}
# Ananke's Table 2: rate in results per second, delivery latency in seconds, CPU in percent of 288
# hardware threads.
_TABLE_2 = {
    "operator": ("ANK-1", 131.3, 0.07, 1.18),
    "postgres_relaxed": ("SQL-P/R", 54.43, 2.97, 0.97),
    "postgres_aggressive": ("SQL-P/A", 54.80, 0.78, 1.30),
    "sqlite_relaxed": ("SQL-I/R", 211.4, 25.10, 1.75),
    "sqlite_aggressive": ("SQL-I/A", 209.72, 15.24, 1.97),
}


def draw(rows: Sequence[Row]) -> str:
    """Draw a bar for each use case and engine: the rate, where plain is 1."""
    parts: list[str] = []
    y, use_case = TOP, None
    for row in rows:
        if row["use_case"] != use_case:
            use_case = row["use_case"]
            y += _HEADING
            parts.append(text(12, y - 7, use_case.replace("_", " "), "query"))
        parts += _bar(row, y)
        y += _ROW
    return _CHART.draw(parts, y)


def _bar(row: Row, y: float) -> list[str]:
    engine = row["engine"]
    said = f"{number(row['ratio'])}, CPU {number(row['cpu_ratio'])}"
    said += f", delivered after {number(row['delivery_latency_s'])} s"
    kind = engine.partition("_")[0]
    return [
        text(24, y + 12, engine.replace("_", ", "), "faint"),
        _CHART.bar(row["ratio"], y + 2, 11, kind, f"{row['use_case']}, {engine}: {said}"),
        _CHART.spread(row["ratio_low"], row["ratio_high"], y + 7.5),
        text(_CHART.x(row["ratio_high"]) + 8, y + 12, said, "faint"),
    ]


def tables(result: dict[str, Any]) -> str:
    """Write all tables in Markdown."""
    rows = result["rows"]
    asked = [row for row in rows if row["ratio"] is not None]
    sizes = [row for row in rows if row["use_case"] == "synthetic_size"]
    several = [row for row in rows if row["use_case"] == "synthetic_queries"]
    parts = (
        _PICTURE,
        measured_on(result),
        _measured(asked),
        _beside_paper(asked),
        _latencies(asked),
        _by_size(sizes),
        _by_queries(several),
        _on_demand(asked),
        _table_2(sizes),
    )
    return "\n\n".join(part for part in parts if part)


def _measured(rows: Sequence[Row]) -> str:
    head = ("use case", "engine", "rows", "plain rows/s", "live rows/s", "rate")
    head += ("lowest - highest", "CPU", "memory", "results", "vertices", "edges", "labels")
    return table(
        head,
        (
            (
                row["use_case"],
                row["engine"],
                count(row["input_rows"]),
                count(row["plain_rows_per_s"]),
                count(row["live_rows_per_s"]),
                number(row["ratio"]),
                f"{number(row['ratio_low'])} - {number(row['ratio_high'])}",
                number(row["cpu_ratio"]),
                number(row["peak_rss_ratio"]),
                *(count(row[name]) for name in ("sink_rows", "vertices", "edges", "labels")),
            )
            for row in rows
            if row["engine"] in _CHART.colours
        ),
    )


def _beside_paper(rows: Sequence[Row]) -> str:
    found = {(row["use_case"], row["engine"]): row["ratio"] for row in rows}
    head = ("rate, plain = 1 (Figures 10, 11, 13, 14)", "clew, operator", "clew, native")
    made = (
        (use_case, *(number(found.get((use_case, e))) for e in ("operator", "native")), *said)
        for use_case, said in _PAPER.items()
        if (use_case, "operator") in found
    )
    return table((*head, "GeneaLog", "ANK-1", "ANK-N"), made)


def _latencies(rows: Sequence[Row]) -> str:
    kinds = ("sink", "source", "edge", "sink_label", "source_label")
    head = ("provenance latency, in U (Figure 15)", "engine", *(k.replace("_", " ") for k in kinds))
    return table(
        head,
        (
            (
                row["use_case"],
                row["engine"],
                *(number(row["provenance_latency_u"][kind]) for kind in kinds),
            )
            for row in rows
            if row["provenance_latency_u"]
        ),
    )


def _by_size(rows: Sequence[Row]) -> str:
    return _crossed(
        [row for row in rows if row["engine"] in ("operator", "native")],
        "results/s by source rows of a result (Figure 16)",
        lambda row: f"{row['engine']}, overlap {row['overlap']} %",
        "provenance_size",
    )


def _by_queries(rows: Sequence[Row]) -> str:
    return _crossed(
        rows,
        "results/s by number of queries (Figure 17)",
        lambda row: (
            f"{row['engine']}, partitions: {row['partitions']}"
            if row["engine"] == "native"
            else row["engine"]
        ),
        "queries",
    )


def _crossed(rows: Sequence[Row], title: str, line: Callable[[Row], str], column: str) -> str:
    """Put the rates of rows into a table with a column for each value of a field."""
    if not rows:
        return ""
    columns = sorted({row[column] for row in rows})
    found = {(line(row), row[column]): row["live_rows_per_s"] for row in rows}
    lines = dict.fromkeys(
        line(row) for row in sorted(rows, key=lambda row: row["engine"] == "native")
    )
    made = ((name, *(count(found.get((name, each))) for each in columns)) for name in lines)
    return table((title, *map(str, columns)), made)


def _on_demand(rows: Sequence[Row]) -> str:
    cases = dict.fromkeys(r["use_case"] for r in rows if r["engine"].startswith("sqlite"))
    head = ("databases that are polled (Figures 18, 19)", "engine", "rate", "CPU")
    head += (
        "delivery latency, s",
        "rate by operator's",
        "CPU by operator's",
        "latency by operator's",
    )
    made = []
    for case in cases:
        own = [row for row in rows if row["use_case"] == case]
        [base] = [row for row in own if row["engine"] == "operator"]
        fields = ("ratio", "cpu_ratio", "delivery_latency_s")
        made += [
            (
                case,
                row["engine"],
                *(number(row[name]) for name in fields),
                *(number(row[name] / base[name]) for name in fields),
            )
            for row in own
        ]
    return table(head, made) if made else ""


def _table_2(rows: Sequence[Row]) -> str:
    """Average over the sizes of provenance, as Ananke's Table 2 does."""
    sizes = {(r["provenance_size"], r["overlap"]) for r in rows if r["engine"].startswith("sqlite")}
    own = [row for row in rows if (row["provenance_size"], row["overlap"]) in sizes]
    fields = ("live_rows_per_s", "delivery_latency_s", "cores_used")
    head = ("synthetic provenance (Table 2)", "results/s", "delivery latency, s", "cores used")
    head += ("in the paper", "results/s", "delivery latency, s", "CPU, %")
    made = []
    for engine in ("operator", "native", *list(_TABLE_2)[1:]):
        found = [row for row in own if row["engine"] == engine]
        if found:
            means = [statistics.fmean(row[name] for row in found) for name in fields]
            paper = _TABLE_2.get(engine)
            said = (paper[0], *(f"{each:g}" for each in paper[1:])) if paper else ("", "", "", "")
            made.append((engine, count(round(means[0])), *map(number, means[1:]), *said))
    return table(head, made) if made else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--results", type=Path, default=RESULTS, help="what `live` wrote")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to bring up to date")
    options = parser.parse_args()
    result = json.loads(options.results.read_text())
    picture = draw([row for row in result["rows"] if row["ratio"] is not None])
    bring_up_to_date(options.page, picture, tables(result))


if __name__ == "__main__":
    main()
