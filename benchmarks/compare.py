"""Compare traced runs with plain ones: one row per query and capture.

Runs are compared within a turn only, and the median is over turns. What a row says of edges, and of
the time and CPU until they are stored, is about the turns in which edges were made.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.measure import Run
    from benchmarks.queries import Case
    from benchmarks.streams import Stream

Turn = dict[str, "Run"]
"""One run of each variant of a query, `plain` among them."""

FIELDS = (
    "query",
    "capture",
    "input_rows",
    "plain_rows_per_s",
    "traced_rows_per_s",
    "ratio",
    "ratio_low",
    "ratio_high",
    "ratio_complete",
    "cpu_ratio",
    "state_bytes_ratio",
    "bytes_per_edge",
    "edges",
    "sink_rows",
    "repetitions",
)
"""The fields of every row."""


def compared(case: Case, stream: Stream, capture: str, turns: Sequence[Turn]) -> dict[str, Any]:
    """Compare the runs with one capture with the plain runs of the same turns."""
    pairs = [(turn["plain"], turn[capture]) for turn in turns]
    whole = [(plain, run) for plain, run in pairs if run.complete is not None]
    last = (whole or pairs)[-1][1]
    said = {
        **_rates(stream, pairs),
        "ratio_complete": _median(plain.seconds / (run.complete or 0) for plain, run in whole),
        "cpu_ratio": _median(run.cpu / plain.cpu for plain, run in whole or pairs),
        "state_bytes_ratio": _median(
            run.state_bytes / max(1, plain.state_bytes) for plain, run in pairs
        ),
        "bytes_per_edge": _rounded(last.edge_bytes / last.edges) if last.edges else None,
        "edges": last.edges,
    }
    return _row(case.query, capture, stream.rows, {**said, "sink_rows": last.sink_rows})


def retrieved(case: Case, stream: Stream, share: float, turns: Sequence[Turn]) -> dict[str, Any]:
    """Compare a query with intervals, and the retrieval of a share of its rows, with plain."""
    pairs = [(turn["plain"], turn["intervals"]) for turn in turns]
    asked = [(plain, run, run.asked[share]) for plain, run in pairs if share in run.asked]
    last = asked[-1][2]
    said = {
        "ratio_complete": _median(p.seconds / (run.seconds + a.seconds) for p, run, a in asked),
        "cpu_ratio": _median((run.cpu + a.cpu) / p.cpu for p, run, a in asked),
        "bytes_per_edge": _rounded(last.edge_bytes / last.edges) if last.edges else None,
        "edges": last.edges,
        "seconds_median": _median(a.seconds for _, _, a in asked),
        "sink_rows_asked": last.rows,
    }
    row = compared(case, stream, "intervals", turns)
    return {**row, **said, "query": f"{case.query}_{share:g}"}


def single_rows(
    case: Case, stream: Stream, sink_rows: int, times: Sequence[float]
) -> dict[str, Any]:
    """Say how long it took to trace single results."""
    said = {"sink_rows": sink_rows, "repetitions": len(times)}
    row = _row(case.query, "intervals", stream.rows, said)
    spread = {"seconds_low": _rounded(min(times)), "seconds_high": _rounded(max(times))}
    return {**row, "seconds_median": _median(times), **spread}


def _rates(stream: Stream, pairs: Sequence[tuple[Run, Run]]) -> dict[str, Any]:
    ratios = [plain.seconds / run.seconds for plain, run in pairs]
    return {
        "plain_rows_per_s": round(stream.rows / statistics.median(p.seconds for p, _ in pairs)),
        "traced_rows_per_s": round(stream.rows / statistics.median(r.seconds for _, r in pairs)),
        "ratio": _median(ratios),
        "ratio_low": _rounded(min(ratios)),
        "ratio_high": _rounded(max(ratios)),
        "repetitions": len(pairs),
    }


def _row(query: str, capture: str, rows: int, said: dict[str, Any]) -> dict[str, Any]:
    known = {"query": query, "capture": capture, "input_rows": rows, **said}
    return {name: known.get(name) for name in FIELDS}


def _median(values: Iterable[float]) -> float | None:
    found = list(values)
    return _rounded(statistics.median(found)) if found else None


def _rounded(value: float) -> float:
    return round(value, 3)
