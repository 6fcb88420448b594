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
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

RESULTS = Path(__file__).parent / "results" / "live.json"
PAGE = Path(__file__).parent.parent / "docs" / "reference" / "live.md"
_MARKS = ("<!-- measured -->", "<!-- /measured -->")
_PICTURE = "![Rate of queries with a live graph, where plain Spark is 1](live.svg)"

Row = dict[str, Any]

# The picture, in pixels.
_WIDTH, _LEFT, _RIGHT, _TOP = 840, 190, 230, 74
_ROW, _HEADING = 18, 26
_MOST = 1.25
_TITLE = "Rate of queries with a live graph, where plain Spark is 1"

_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 15px; }
.query { font-weight: 600; }
.faint { fill: #59636e; }
.grid { stroke: #d1d9e0; }
.one { stroke: #59636e; stroke-dasharray: 3 3; }
.spread { stroke: #1f2328; }
.operator { fill: #2a78d6; } .native { fill: #1a9e6e; }
.sqlite { fill: #dd5f2c; } .postgres { fill: #8a63d2; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .faint { fill: #9198a1; }
  .grid { stroke: #3d444d; }
  .one { stroke: #9198a1; }
  .spread { stroke: #f0f6fc; }
  .operator { fill: #4493f8; } .native { fill: #2eb67d; }
  .sqlite { fill: #f0793f; } .postgres { fill: #ab7df8; }
}
"""
_KINDS = ("operator", "native", "sqlite", "postgres")

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
    y, use_case = _TOP, None
    for row in rows:
        if row["use_case"] != use_case:
            use_case = row["use_case"]
            y += _HEADING
            parts.append(_text(12, y - 7, use_case.replace("_", " "), "query"))
        parts += _bar(row, y)
        y += _ROW
    height = y + 34
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
                f'width="{_WIDTH}" height="{height}" role="img" aria-labelledby="t">'
            ),
            f'<title id="t">{_TITLE}</title>',
            f"<style>{_STYLE}</style>",
            _text(12, 24, _TITLE, "title"),
            *_legend(),
            *_grid(y),
            *parts,
            "</svg>",
            "",
        ]
    )


def _bar(row: Row, y: float) -> list[str]:
    engine = row["engine"]
    said = f"{_number(row['ratio'])}, CPU {_number(row['cpu_ratio'])}"
    said += f", delivered after {_number(row['delivery_latency_s'])} s"
    low, high = _x(row["ratio_low"]), _x(row["ratio_high"])
    width = round(_x(row["ratio"]) - _LEFT, 1)
    size = f'x="{_LEFT}" y="{y + 2}" width="{width}" height="11" rx="1.5"'
    kind = engine.partition("_")[0]
    title = escape(f"{row['use_case']}, {engine}: {said}")
    return [
        _text(24, y + 12, engine.replace("_", ", "), "faint"),
        f'<rect class="{kind}" {size}><title>{title}</title></rect>',
        f'<line class="spread" x1="{low}" x2="{high}" y1="{y + 7.5}" y2="{y + 7.5}"/>',
        _text(high + 8, y + 12, said, "faint"),
    ]


def _legend() -> list[str]:
    out, x = [], 12
    for name in _KINDS:
        out.append(f'<rect class="{name}" x="{x}" y="40" width="12" height="12" rx="1.5"/>')
        out.append(_text(x + 17, 50, name, ""))
        x += 90
    return [*out, _text(x, 50, "line: smallest to largest", "faint")]


def _grid(bottom: float) -> list[str]:
    out = []
    for value in (0, 0.25, 0.5, 0.75, 1, 1.25):
        kind = "one" if value == 1 else "grid"
        x = _x(value)
        out.append(f'<line class="{kind}" x1="{x}" x2="{x}" y1="{_TOP}" y2="{bottom + 6}"/>')
        out.append(_text(x - 8, bottom + 22, f"{value:g}", "faint"))
    return out


def _x(value: float) -> float:
    return round(_LEFT + min(value, _MOST) / _MOST * (_WIDTH - _LEFT - _RIGHT), 1)


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(words)}</text>'


def tables(result: dict[str, Any]) -> str:
    """Write all tables in Markdown."""
    rows = result["rows"]
    machine = result["machine"]
    where = (
        f"{machine['cores']} cores ({machine['cpu']}), {machine['memory_gb']} GB, Spark "
        f"{machine['spark']}, Java {machine['java']}, Python {machine['python']}. State store: "
        f"{result['state_store']}. Other processes used {machine['cores_used_by_others']} cores."
    )
    asked = [row for row in rows if row["ratio"] is not None]
    sizes = [row for row in rows if row["use_case"] == "synthetic_size"]
    several = [row for row in rows if row["use_case"] == "synthetic_queries"]
    parts = (
        _PICTURE,
        where,
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
    return _table(
        head,
        (
            (
                row["use_case"],
                row["engine"],
                _count(row["input_rows"]),
                _count(row["plain_rows_per_s"]),
                _count(row["live_rows_per_s"]),
                _number(row["ratio"]),
                f"{_number(row['ratio_low'])} - {_number(row['ratio_high'])}",
                _number(row["cpu_ratio"]),
                _number(row["peak_rss_ratio"]),
                *(_count(row[name]) for name in ("sink_rows", "vertices", "edges", "labels")),
            )
            for row in rows
            if row["engine"] in _KINDS
        ),
    )


def _beside_paper(rows: Sequence[Row]) -> str:
    found = {(row["use_case"], row["engine"]): row["ratio"] for row in rows}
    head = ("rate, plain = 1 (Figures 10, 11, 13, 14)", "clew, operator", "clew, native")
    made = (
        (use_case, *(_number(found.get((use_case, e))) for e in ("operator", "native")), *said)
        for use_case, said in _PAPER.items()
        if (use_case, "operator") in found
    )
    return _table((*head, "GeneaLog", "ANK-1", "ANK-N"), made)


def _latencies(rows: Sequence[Row]) -> str:
    kinds = ("sink", "source", "edge", "sink_label", "source_label")
    head = ("provenance latency, in U (Figure 15)", "engine", *(k.replace("_", " ") for k in kinds))
    return _table(
        head,
        (
            (
                row["use_case"],
                row["engine"],
                *(_number(row["provenance_latency_u"][kind]) for kind in kinds),
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
    made = ((name, *(_count(found.get((name, each))) for each in columns)) for name in lines)
    return _table((title, *map(str, columns)), made)


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
                *(_number(row[name]) for name in fields),
                *(_number(row[name] / base[name]) for name in fields),
            )
            for row in own
        ]
    return _table(head, made) if made else ""


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
            made.append((engine, _count(round(means[0])), *map(_number, means[1:]), *said))
    return _table(head, made) if made else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: float | None) -> str:
    # Adding 0 turns a rounded -0.0 into 0.0.
    return "" if value is None else f"{round(value, 2) + 0:.2f}"


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--results", type=Path, default=RESULTS, help="what `live` wrote")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to bring up to date")
    options = parser.parse_args()
    result = json.loads(options.results.read_text())
    picture = draw([row for row in result["rows"] if row["ratio"] is not None])
    options.page.with_suffix(".svg").write_text(picture)
    before, _, rest = options.page.read_text().partition(_MARKS[0])
    _, _, after = rest.partition(_MARKS[1])
    options.page.write_text(f"{before}{_MARKS[0]}\n{tables(result)}\n{_MARKS[1]}{after}")


if __name__ == "__main__":
    main()
