"""Windows over rows in order, each with the model of what it gives, for tests and proofs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

import clew
from clew.testing import all_traces, read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, at
from windows import model
from windows.model import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from clew.frame.ordered_rows import OrderedRows
    from clew.testing import Traced

    Frame = clew.TracedFrame

Answer = tuple[str | None, int, frozenset[int]]
"""The key, the moment in seconds after noon, and the ids behind a result."""

DELAY = 10
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_END = 999


@dataclass(frozen=True, slots=True)
class Case:
    """A pipeline over readings in order, and what it gives for the rows of each meter."""

    name: str
    build: Callable[[Frame], Frame]
    expected: Callable[[dict[str, list[Row]]], set[Answer]]
    moment: str = "ts"


def _each(of_one: Callable[[list[Row]], list[model.Result]]) -> Any:
    def expected(rows: dict[str, list[Row]]) -> set[Answer]:
        return {
            (meter, moment, frozenset(ids))
            for meter, own in rows.items()
            for moment, ids in of_one(own)
        }

    return expected


def _of_a_and_b(
    back: Callable[[Sequence[Row], int], Sequence[Row]],
    on: Callable[[Row, Row], bool],
    *,
    new: bool,
) -> Any:
    def expected(rows: dict[str, list[Row]]) -> set[Answer]:
        pairs = model.window_join(rows.get("a", []), rows.get("b", []), back, on, new=new)
        return {(None, at, frozenset(i for p in found for i in p)) for at, found in pairs}

    return expected


def _sides(frame: Frame) -> list[OrderedRows]:
    # Spark moves a filter that does not look at the event time to before the watermark, where it
    # would take the row away that closes everything.
    only = [F.col("ts").isNull() | (F.col("meter") == m) for m in "ab"]
    return [frame.filter(each).inOrder(time="ts") for each in only]


def _joined_in_time(frame: Frame) -> Frame:
    left, right = _sides(frame)
    return left.join(right, "15 seconds", on=lambda a, b: a["kwh"] >= b["kwh"])


def _joined_by_number(frame: Frame) -> Frame:
    left, right = _sides(frame)
    return left.join(right, rows=2, pairs="all")


CASES = [
    Case(
        "count window",
        lambda f: f.inOrder("meter", time="ts").countWindow(3, 2),
        _each(lambda rows: model.count_window(rows, 3, 2)),
    ),
    Case(
        "count window from the first row",
        lambda f: f.inOrder("meter", time="ts").countWindow(3, partial=True),
        _each(lambda rows: model.count_window(rows, 3, partial=True)),
    ),
    Case(
        "time window with each row",
        lambda f: f.inOrder("meter", time="ts").timeWindow("15 seconds"),
        _each(lambda rows: model.time_window(rows, 15)),
    ),
    Case(
        "time window with each tick",
        lambda f: f.inOrder("meter", time="ts").timeWindow("15 seconds", every="10 seconds"),
        _each(lambda rows: model.clock_window(rows, 15, 10)),
    ),
    Case(
        "value window",
        lambda f: f.inOrder("meter", time="ts").valueWindow("kwh", 2, 1),
        _each(lambda rows: model.value_window(rows, 2, 1)),
    ),
    Case(
        "bounded sort",
        lambda f: f.inOrder("meter", time="ts").boundedSort("kwh", 2),
        _each(lambda rows: model.bounded_sort(rows, 2)),
        moment="sorted_at",
    ),
    Case(
        "join in time",
        _joined_in_time,
        _of_a_and_b(
            model.last_seconds(15),
            lambda a, b: a.value is not None and b.value is not None and a.value >= b.value,
            new=True,
        ),
    ),
    Case(
        "join by number",
        _joined_by_number,
        _of_a_and_b(model.last_rows(2), lambda a, b: True, new=False),
    ),
]


def readings(seed: int, batches: int, rows: int = 8) -> list[list[dict[str, Any]]]:
    """Make readings that come out of order, some too late, some at one time, some without value."""
    chosen = random.Random(seed)
    made = []
    for batch in range(batches):
        times = [max(0, 20 * batch + chosen.randint(-25, 20)) for _ in range(rows)]
        made.append(
            [
                {
                    "rid": 100 + rows * batch + i,
                    "ts": at(f"12:{t // 60:02d}:{t % 60:02d}"),
                    "meter": chosen.choice("ab"),
                    "kwh": chosen.choice([None, 0, 1, 2, 3, 4]),
                }
                for i, t in enumerate(times)
            ]
        )
    return made


def end() -> dict[str, Any]:
    """Make the row that moves the watermark beyond all others."""
    return {"rid": _END, "ts": at("13:00:00"), "meter": "z", "kwh": 0}


def as_rows(batch: Sequence[dict[str, Any]]) -> list[Row]:
    """Write readings the way the model has them."""
    noon = at("12:00:00")
    return [Row(int((r["ts"] - noon).total_seconds()), r["rid"], r["kwh"]) for r in batch]


def expected_of(
    case: Case, runs: Sequence[Sequence[Sequence[dict[str, Any]]]], *, stream: bool = True
) -> set[Answer]:
    """Return what a case gives for readings that come in batches, of one run after the other."""
    flat = [r for run in runs for batch in run for r in batch]
    taken = {r["rid"] for r in flat}
    if stream:
        taken = model.kept([[as_rows(batch) for batch in run] for run in runs], DELAY)
    by_meter: dict[str, list[Row]] = {}
    for reading in flat:
        if reading["rid"] in taken and reading["rid"] != _END:
            by_meter.setdefault(reading["meter"], []).extend(as_rows([reading]))
    for own in by_meter.values():
        own.sort(key=lambda r: (r.time, r.rid))
    return case.expected(by_meter)


def found_in(case: Case, traces: Sequence[Traced]) -> set[Answer]:
    """Return what the traces of a case say; each result once."""
    noon = at("12:00:00").replace(tzinfo=None)
    found = [
        (
            trace.values.get("meter"),
            int((trace.values[case.moment].replace(tzinfo=None) - noon).total_seconds()),
            frozenset(rid for _, rid in trace.refs("rid")),
        )
        for trace in traces
    ]
    assert len(set(found)) == len(found), "a result is there twice"
    return set(found)


def run_case(
    spark: SparkSession,
    folder: Path,
    case: Case,
    runs: Sequence[Sequence[Sequence[dict[str, Any]]]],
    capture: str,
) -> set[Answer]:
    """Run a case as a stream that is stopped after each run and goes on, and read its traces."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    try:
        for batches in runs:
            write_batches(folder / "in", READINGS, batches)
            source = clew.trace(
                read_batches(spark, folder / "in", READINGS_DDL), "readings", event_time="ts"
            )
            frame = case.build(source.withWatermark("ts", f"{DELAY} seconds"))
            run_stream(frame, folder / "prov", "out", checkpoint=folder / "chk", capture=capture)
            if capture in ("intervals", "keys"):
                clew.open(folder / "prov", pipelines={"out": frame}).unfold("out")
    finally:
        spark.conf.unset("spark.sql.streaming.stateStore.providerClass")
    return found_in(case, all_traces(folder / "prov", "out"))
