"""Draw and tabulate what `overhead` measured, next to what the papers report.

Reads `benchmarks/results/overhead.json`, draws `docs/reference/overhead.svg` and puts the tables
into `docs/reference/overhead.md`, between two marks. The picture is plain SVG; its colours follow
the reader's light or dark setting.

Run: python -m benchmarks.plot [--results FILE]
"""

from __future__ import annotations

import argparse
import json
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RESULTS = Path(__file__).parent / "results" / "overhead.json"
PAGE = Path(__file__).parent.parent / "docs" / "reference" / "overhead.md"
_MARKS = ("<!-- measured -->", "<!-- /measured -->")

# The picture, in pixels.
_WIDTH, _LEFT, _RIGHT, _TOP = 840, 300, 150, 74
_ROW, _HEADING = 20, 26
_MOST = 1.25

_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 15px; }
.query { font-weight: 600; }
.faint { fill: #59636e; }
.grid { stroke: #d1d9e0; }
.one { stroke: #59636e; stroke-dasharray: 3 3; }
.spread { stroke: #1f2328; }
.pointers { fill: #2a78d6; } .intervals { fill: #1a9e6e; } .sets { fill: #dd5f2c; }
.complete { fill-opacity: 0.45; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .faint { fill: #9198a1; }
  .grid { stroke: #3d444d; }
  .one { stroke: #9198a1; }
  .spread { stroke: #f0f6fc; }
  .pointers { fill: #4493f8; } .intervals { fill: #2eb67d; } .sets { fill: #f0793f; }
}
"""

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
    y, query = _TOP, None
    for row in rows:
        if row["query"] != query:
            query = row["query"]
            y += _HEADING
            parts.append(_text(12, y - 7, query, "query"))
        parts += _bars(row, y)
        y += _ROW
    height = y + 34
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
                f'width="{_WIDTH}" height="{height}" role="img" aria-labelledby="t">'
            ),
            '<title id="t">Rate of traced queries, where plain Spark is 1</title>',
            f"<style>{_STYLE}</style>",
            _text(12, 24, "Rate of traced queries, where plain Spark is 1", "title"),
            *_legend(),
            *_grid(y),
            *parts,
            "</svg>",
            "",
        ]
    )


def _bars(row: dict[str, Any], y: float) -> list[str]:
    capture = escape(row["capture"])
    said = f"{row['query']}, {row['capture']}: {_number(row['ratio'])}"
    values = _number(row["ratio"])
    whole = row["ratio_complete"]
    out = [_text(24, y + 13, row["capture"], "faint")]
    out.append(_bar(row["ratio"], y + 3, 7, capture, said))
    if whole is not None:
        until = f"{said}; until the last edge is stored: {_number(whole)}"
        out.append(_bar(whole, y + 11, 5, f"{capture} complete", until))
        values += f", stored {_number(whole)}"
    low, high = (_x(row[name]) for name in ("ratio_low", "ratio_high"))
    out.append(f'<line class="spread" x1="{low}" x2="{high}" y1="{y + 6.5}" y2="{y + 6.5}"/>')
    end = max(_x(row["ratio_high"]), _x(whole or 0)) + 8
    out.append(_text(end, y + 13, values, "faint"))
    return out


def _bar(value: float, y: float, height: float, kind: str, said: str) -> str:
    width = round(_x(value) - _LEFT, 1)
    return (
        f'<rect class="{kind}" x="{_LEFT}" y="{y}" width="{width}" height="{height}" rx="1.5">'
        f"<title>{escape(said)}</title></rect>"
    )


def _legend() -> list[str]:
    out, x = [], 12
    for name in ("pointers", "intervals", "sets"):
        out.append(f'<rect class="{name}" x="{x}" y="40" width="12" height="12" rx="1.5"/>')
        out.append(_text(x + 17, 50, name, ""))
        x += 90
    said = "thick: the query itself; pale: until the last edge is stored; line: smallest to largest"
    return [*out, _text(x, 50, said, "faint")]


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
    parts = [where, _measured(rows)]
    parts += [
        each for each in (_retrieved(rows), _beside_ariadne(rows), _beside_peers(rows)) if each
    ]
    return "\n\n".join(parts)


def _measured(rows: Sequence[dict[str, Any]]) -> str:
    head = ["query", "capture", "rows", "plain rows/s", "rate", "lowest - highest", "until stored"]
    head += ["CPU", "state", "results", "edges", "bytes per edge"]
    return _table(
        head,
        (
            (
                row["query"],
                row["capture"],
                _count(row["input_rows"]),
                _count(row["plain_rows_per_s"]),
                _number(row["ratio"]),
                f"{_number(row['ratio_low'])} - {_number(row['ratio_high'])}",
                _number(row["ratio_complete"]),
                _number(row["cpu_ratio"]),
                _number(row["state_bytes_ratio"]),
                _count(row["sink_rows"]),
                _count(row["edges"]),
                _number(row["bytes_per_edge"]),
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
            _count(row["input_rows"]),
            _count(row["sink_rows"]),
            _count(row.get("sink_rows_asked", 1)),
            _number(row["seconds_median"]),
        )
        for row in asked
    )
    return _table(head, made) if asked else ""


def _beside_ariadne(rows: Sequence[dict[str, Any]]) -> str:
    found = {(row["query"], row["capture"]): row["ratio"] for row in rows}
    levels = range(1, 5)
    if not any((f"nested_{level}", "pointers") in found for level in levels):
        return ""
    plain = _ARIADNE["no provenance"]
    papers = [
        (f"Ariadne, {name}", *[_number(p / s) for p, s in zip(plain, seconds, strict=True)])
        for name, seconds in _ARIADNE.items()
        if name != "no provenance"
    ]
    ours = [
        (f"clew, {name}", *[_number(found.get((f"nested_{level}", name))) for level in levels])
        for name in ("pointers", "intervals", "sets")
    ]
    return _table(("rate, plain = 1, by nested aggregations", "1", "2", "3", "4"), papers + ours)


def _beside_peers(rows: Sequence[dict[str, Any]]) -> str:
    ours = [
        (f"clew, {row['query']}, {row['capture']}", row["ratio_complete"], row["cpu_ratio"])
        for row in rows
        if row["query"].startswith("linear_road") and row["ratio_complete"] is not None
    ]
    head = ("Linear Road, all edges stored", "rate, plain = 1", "CPU, plain = 1")
    made = ((name, _number(rate), _number(cpu)) for name, rate, cpu in (*_PEERS, *ours))
    return _table(head, made) if ours else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--results", type=Path, default=RESULTS, help="what `overhead` wrote")
    options = parser.parse_args()
    result = json.loads(options.results.read_text())
    picture = draw([row for row in result["rows"] if row["ratio"] is not None])
    PAGE.with_suffix(".svg").write_text(picture)
    before, _, rest = PAGE.read_text().partition(_MARKS[0])
    _, _, after = rest.partition(_MARKS[1])
    PAGE.write_text(f"{before}{_MARKS[0]}\n{tables(result)}\n{_MARKS[1]}{after}")


if __name__ == "__main__":
    main()
