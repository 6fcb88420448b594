"""Random pipelines over random data: agreement with the model, and the re-execution oracle.

Of streams also how long clew holds the rows of a source: no row may expire before its last result.
That needs a plan and no run, so many more streams are only planned.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import AnalysisException

import clew
from clew.exceptions import GraphError
from clew.expiry.bound import bounds
from clew.testing import (
    Traced,
    collect_traces,
    pointed_rows,
    stream_pointed_rows,
    stream_traces,
)
from proof.captures import lazy_outcomes, refusal
from proof.case import Outcome, Setting, check, frozen
from properties.agreement import explain
from properties.batch_model import run_batch
from properties.building import build
from properties.freedom import is_settled
from properties.last_use import too_early
from properties.operator_tree import Join, walk
from properties.random_rows import random_data
from properties.random_specs import random_spec
from properties.row_files import read_frames, write_data
from properties.stream_model import run_stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame

_SIDE_BY_SIDE = 6


def outcomes(setting: Setting) -> Iterator[Outcome]:
    """Check random pipelines in batch and as streams, at parallelism 1 and 2, in each capture."""
    batches = 12 if setting.quick else 200
    streams = 6 if setting.quick else 72
    planned = 42 if setting.quick else 600
    for number in range(batches):
        yield from _batch(setting, setting.seed + number)
    for at in range(0, streams, _SIDE_BY_SIDE):
        seeds = range(setting.seed + at, setting.seed + min(at + _SIDE_BY_SIDE, streams))
        yield from _streams(setting, list(seeds))
    for number in range(streams, streams + planned):
        yield from _planned_stream(setting, setting.seed + number)


def _batch(setting: Setting, seed: int) -> Iterator[Outcome]:
    spec = random_spec(seed, streaming=False)
    data: Any = random_data(seed, spec)
    folder = setting.folder / f"batch-{seed}"
    plain = read_frames(setting.spark, spec, write_data(folder, spec, data))
    setting.spark.conf.set("spark.sql.shuffle.partitions", str(1 + seed % 2))
    found: list[Traced] = []
    if not _is_valid(spec, plain):
        return
    frame = build(spec, {name: clew.trace(df, name) for name, df in plain.items()})
    truth = run_batch(spec, data)

    def model() -> str:
        found.extend(collect_traces(frame))
        return _explain(truth, found, spec)

    outcome = check(f"batch pipeline {seed}, sets", model)
    yield outcome
    if not outcome.wrong and found and is_settled(spec.root):
        yield check(
            f"batch pipeline {seed}, oracle", _oracle, spec, plain, found[seed % len(found)]
        )
    yield from lazy_outcomes(
        f"batch pipeline {seed}",
        frame,
        lambda: pointed_rows(frame),
        lambda traces: _explain(truth, traces, spec),
    )


def _streams(setting: Setting, seeds: list[int]) -> Iterator[Outcome]:
    setting.spark.conf.set("spark.sql.shuffle.partitions", str(1 + seeds[0] // _SIDE_BY_SIDE % 2))
    running = []
    for seed in seeds:
        spec = random_spec(seed, streaming=True)
        data: Any = random_data(seed, spec)
        folder = setting.folder / f"stream-{seed}"
        paths = write_data(folder / "in", spec, data)
        frames = read_frames(setting.spark, spec, paths)
        found: list[Traced] = []
        if not _is_valid(spec, frames):
            continue
        try:
            frame = _traced(spec, frames)
            query = stream_traces(frame, folder / "chk", found)
        except GraphError as refused:
            print(f"  stream pipeline {seed} is refused: {str(refused).splitlines()[0]}")
            continue
        pointed: list[Any] = []
        other = None
        if not refusal(frame, "pointers"):
            other = stream_pointed_rows(frame, folder / "chk-pointers", pointed)
        running.append((seed, spec, data, paths, found, query, frame, pointed, other))
    for seed, spec, data, paths, found, query, frame, pointed, other in running:
        truth = run_stream(spec, data)
        outcome = check(f"stream pipeline {seed}, sets", _finished, spec, truth, found, query)
        yield outcome
        yield check(f"stream pipeline {seed}, expiry", _expires, spec, data, truth, frame)
        if not outcome.wrong and found and _replays_in_batch(spec):
            tables = {n: setting.spark.read.parquet(str(p)) for n, p in paths.items()}
            row = found[seed % len(found)]
            yield check(f"stream pipeline {seed}, oracle", _oracle, spec, tables, row)
        yield from lazy_outcomes(
            f"stream pipeline {seed}",
            frame,
            partial(_pointed, other, pointed),
            partial(_agrees, truth, spec),
            setting.folder / f"stream-{seed}" / "chk-pointers",
        )


def _planned_stream(setting: Setting, seed: int) -> Iterator[Outcome]:
    """Check for how long the rows of a stream are held, without running it."""
    spec = random_spec(seed, streaming=True)
    data: Any = random_data(seed, spec)
    paths = {name: setting.folder / "planned" / name for name in (*spec.sources, *spec.statics)}
    for path in paths.values():
        path.mkdir(parents=True, exist_ok=True)
    frames = read_frames(setting.spark, spec, paths)
    if not _is_valid(spec, frames):
        return
    try:
        frame = _traced(spec, frames)
    except GraphError:
        return  # a stream that runs says why
    truth = run_stream(spec, data)
    yield check(f"stream pipeline {seed}, expiry", _expires, spec, data, truth, frame)


def _traced(spec: Any, frames: Mapping[str, DataFrame]) -> Any:
    return build(spec, {n: clew.trace(df, n, event_time="ts") for n, df in frames.items()})


def _expires(spec: Any, data: Any, truth: Any, frame: Any) -> str:
    wrong = too_early(spec, data, truth, bounds(frame.node))
    return "\n".join([repr(spec), *wrong]) if wrong else ""


def _pointed(query: Any, pointed: list[Any]) -> Any:
    query.awaitTermination()
    return pa.concat_tables(pointed)


def _agrees(truth: Any, spec: Any, traces: list[Traced]) -> str:
    return _explain(truth, traces, spec)


def _finished(spec: Any, truth: Any, found: list[Traced], query: Any) -> str:
    query.awaitTermination()
    return _explain(truth, found, spec)


def _is_valid(spec: Any, frames: Mapping[str, DataFrame]) -> bool:
    """Tell whether Spark itself takes the pipeline; a few random ones do not type-check."""
    try:
        build(spec, frames)
    except AnalysisException:
        return False
    return True


def _replays_in_batch(spec: Any) -> bool:
    # Where Spark may keep any of several rows, it may keep another one the next time. And a full
    # join of two streams pairs null keys, a full join in batch does not.
    return is_settled(spec.root) and not any(
        isinstance(n, Join) and n.how == "full" for n in walk(spec.root)
    )


def _explain(model: Any, found: list[Traced], spec: Any) -> str:
    names = (*spec.sources, *spec.statics)  # a named frame is not a source
    rows = [(_values(t.values), _refs(t, names)) for t in found]
    wrong = explain(model, rows)
    return f"{spec}\n{wrong}" if wrong else ""


def _refs(row: Traced, names: Iterable[str]) -> frozenset[tuple[str, Any]]:
    return frozenset((name, one["rid"]) for name in names for one in row.sources.get(name, ()))


def _values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Spell structs as the model does: as tuples."""
    return {n: tuple(v.values()) if isinstance(v, dict) else v for n, v in values.items()}


def _oracle(spec: Any, frames: Mapping[str, DataFrame], row: Traced) -> str:
    """Run the query on nothing but the traced rows: the row must come out again."""
    kept = {
        name: df.filter(df["rid"].isin([r["rid"] for r in row.sources.get(name, [])]))
        for name, df in frames.items()
    }
    again = [frozen(r) for r in build(spec, kept).toArrow().to_pylist()]
    if frozen(row.values) in again:
        return ""
    refs = {name: [r["rid"] for r in rows] for name, rows in row.sources.items()}
    return f"{spec}\n{row.values}\nfrom {refs}\nis not among\n{again}"
