"""Queries cut in two processes that hand rows over through files, as in GeneaLog's Figures 7 to 11.

Each process unfolds its own part into one store; the parts meet by row id. What must come out is
what the whole query gives, down to the rows of the first source.
"""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import clew
from clew.workloads import linear_road, write_files
from domains import smart_grid
from proof.case import Outcome, Setting, check, difference, frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.workloads import Expected, Part


def outcomes(setting: Setting) -> Iterator[Outcome]:
    """Check both workloads; each takes two processes, so the quick sample has none of them."""
    if setting.quick:
        return
    road = linear_road.reports(cars=60, minutes=15, seed=setting.seed, stopped=5, accidents=3)
    yield check(
        "Linear Road accidents in two processes",
        _cut,
        setting.folder / "road",
        "accidents",
        ("reports", road, linear_road.closing_report(road)),
        ("stopped", {"ts": None, "car": -1, "n": 1, "pos": -1}),
        linear_road.expected_accidents(road),
    )
    grid = smart_grid.readings(meters=30, seed=setting.seed)
    yield check(
        "Smart Grid anomalies in two processes",
        _cut,
        setting.folder / "grid",
        "anomalies",
        ("readings", grid, smart_grid.closing_reading(grid)),
        ("days", {"day": None, "day_time": None, "meter": -1, "total": 0}),
        smart_grid.expected_anomalies(grid),
    )


def _cut(
    folder: Path,
    workload: str,
    source: tuple[str, pa.Table, pa.Table],
    between: tuple[str, dict[str, Any]],
    expected: Sequence[Expected],
) -> str:
    name, table, closing = source
    parts = write_files(table, folder / name, files=4, closing=closing)
    said = _run(workload, folder, "first")
    if said != "finished":
        return f"the first process: {said}"
    _close(folder / between[0], between[1])
    said = _run(workload, folder, "second")
    if said != "finished":
        return f"the second process: {said}"
    prov = clew.open(folder / "prov")
    found = []
    for row in prov.rows(workload, limit=None):
        trace = prov.backward(workload, row)
        places = {(each.stream, _number(each.segment, each.position, parts)) for each in trace.rows}
        found.append((frozen(_plain(dict(row))), frozenset(places)))
    wanted = [
        (frozen(_plain(e.values)), frozenset((s, r) for s, rows in e.rows.items() for r in rows))
        for e in expected
    ]
    captures = {s.name: s.capture for s in prov.streams() if s.kind == "sink"}
    if "pointers" not in captures.values():
        return f"no part was captured with pointers: {captures}"
    return difference(wanted, found)


def _run(workload: str, folder: Path, part: str) -> str:
    program = str(Path(__file__).with_name("part.py"))
    done = subprocess.run(
        [sys.executable, program, workload, str(folder), part],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return (done.stdout.strip().splitlines()[-1:] or [done.stderr[-2000:]])[0]


def _close(folder: Path, values: dict[str, Any]) -> None:
    """Add the row that moves the second process past its last windows."""
    schema = pq.read_schema(next(folder.glob("*.parquet")))
    late = dt.datetime(2100, 1, 1, tzinfo=dt.timezone.utc)
    row = {name: late if value is None else value for name, value in values.items()}
    pq.write_table(
        pa.Table.from_pylist([{**row, "clew_id": "0" * 32}], schema), folder / "zzz.parquet"
    )


def _number(segment: str | None, position: int | None, parts: Sequence[Part]) -> int:
    """Find the number of a row in the table that the files were cut from."""
    part = next(p for p in parts if (segment or "").endswith(p.path.name))
    return part.first + (position or 0)


def _plain(values: Any) -> Any:
    if isinstance(values, dict):
        return {k: _plain(v) for k, v in sorted(values.items())}
    if isinstance(values, dt.datetime):
        return values.replace(tzinfo=None)
    return values
