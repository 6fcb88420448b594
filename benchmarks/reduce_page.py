"""Write the tables of `docs/reference/reduce.md` from what was measured.

Run: python -m benchmarks.reduce_page
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.reduce import RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "reduce.md"
Row = dict[str, Any]


def table(head: list[str], rows: list[list[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def accuracy(rows: list[Row]) -> str:
    shares = sorted({row["disorder"] for row in rows})
    found = {(row["method"], row["disorder"]): row["accuracy"] for row in rows}
    methods = ("grouping", "watermark", "window")
    body = [[m, *(f"{100 * found[m, s]:.1f} %" for s in shares)] for m in methods]
    return table(["method", *(f"{100 * s:.0f} % late" for s in shares)], body)


def partitioning(rows: list[Row]) -> str:
    sizes = sorted({row["local_batch"] for row in rows})
    found = {(row["partitioning"], row["local_batch"]): row["edges_local"] for row in rows}
    names = list(dict.fromkeys(row["partitioning"] for row in rows))
    body = [[name, *(f"{found[name, size]:,}" for size in sizes)] for name in names]
    return table(["partitioning", *(f"batch {size:,}" for size in sizes)], body)


def size(rows: list[Row]) -> str:
    body = [
        [
            row["form"],
            *(f"{row[name]:,}" for name in ("edges_in", "edges_local", "edges_out")),
            row["edge_ratio"],
            *(f"{row[name] / 1e6:.1f}" for name in ("bytes_in", "bytes_stored", "bytes_out")),
            row["size_ratio"],
            row["size_ratio_text"],
        ]
        for row in rows
    ]
    head = ["published as", "edges in", "after local", "after global", "ratio", "MB in"]
    return table([*head, "MB stored", "MB as text", "ratio stored", "ratio as text"], body)


def speed(rows: list[Row]) -> str:
    names = ("form", "method", "reducers", "seconds", "speedup", "mb_per_s_per_core")
    more = ("edges_per_s_per_core", "mb_per_cpu_s")
    body = [[*(row[n] for n in names), f"{row[more[0]]:,}", row[more[1]]] for row in rows]
    head = ["published as", "mode", "cores", "seconds", "speed-up", "MB/s per core"]
    return table([*head, "edges/s per core", "MB per CPU second"], body)


def memory(rows: list[Row]) -> str:
    some = rows[:: max(1, len(rows) // 5)]
    some = some if some[-1] is rows[-1] else [*some, rows[-1]]
    names = ("edges_in", "edges_open", "edges_out", "workers_mb", "heap_mb", "resident_mb")
    body = [[f"{row[name]:,}" for name in names] for row in some]
    head = ["statements so far", "open edges", "edges out", "workers, MB"]
    return table([*head, "alive on the heap, MB", "all processes, MB"], body)


def main() -> None:
    measured = json.loads(RESULTS.read_text())
    text = PAGE.read_text()
    for name, show in (
        ("accuracy", accuracy),
        ("partitioning", partitioning),
        ("size", size),
        ("speed", speed),
        ("memory", memory),
    ):
        rows = [row for row in measured["rows"] if row["experiment"] == name]
        begin, end = f"<!-- {name} -->\n", f"<!-- end {name} -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{show(rows)}\n{end}{rest.partition(end)[2]}"
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
