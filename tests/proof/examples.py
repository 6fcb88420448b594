"""The worked examples of the papers, in batch and as streams, number for number."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

import clew
from clew.testing import (
    Traced,
    collect_traces,
    pointed_rows,
    stream_pointed_rows,
    stream_traces,
)
from proof.captures import lazy_outcomes, refusal
from proof.case import Outcome, Setting, check, difference, frozen, labelled
from seeds import ananke, ariadne, genealog, thesis
from seeds.case import SeedCase, write_batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql.streaming.query import StreamingQuery

CASES = (*ananke.CASES, *genealog.CASES, *ariadne.CASES, *thesis.CASES)


def outcomes(setting: Setting) -> Iterator[Outcome]:
    """Check every example in batch and as a stream; when quick, a part of them."""
    for case in CASES[1::6] if setting.quick else CASES:
        frames = _frames(setting, case, setting.folder / "batch", streaming=False)
        for sink, frame in case.build(frames).items():
            name = f"{case.name}, {sink}, batch"
            yield check(f"{name}, sets", _in_batch, case, sink, frame)
            run = partial(pointed_rows, cast("clew.TracedFrame", frame))
            yield from lazy_outcomes(
                name, cast("clew.TracedFrame", frame), run, partial(_wrong, case, sink)
            )
    streamed = CASES[::13] if setting.quick else CASES
    for at in range(0, len(streamed), 4):
        yield from _together(setting, streamed[at : at + 4])


def _together(setting: Setting, cases: tuple[SeedCase, ...]) -> Iterator[Outcome]:
    """Run the streams of several examples side by side: starting one costs more than running it."""
    running = []
    for case in cases:
        frames = _frames(setting, case, setting.folder / "stream", streaming=True)
        for sink, frame in case.build(frames).items():
            found: list[Traced] = []
            checkpoint = setting.folder / "checkpoints" / case.name / sink
            traced = cast("clew.TracedFrame", frame)
            query = stream_traces(traced, checkpoint, found)
            lazy = None
            pointed: list[pa.Table] = []
            places = checkpoint.with_name(f"{sink}-pointers")
            if not refusal(traced, "pointers"):
                lazy = stream_pointed_rows(traced, places, pointed)
            running.append((case, sink, found, query, traced, lazy, pointed, places))
    for case, sink, found, query, traced, lazy, pointed, places in running:
        name = f"{case.name}, {sink}, stream"
        yield check(f"{name}, sets", _as_stream, case, sink, found, query)
        run = partial(_pointed, lazy, pointed)
        yield from lazy_outcomes(name, traced, run, partial(_wrong, case, sink), places)


def _pointed(query: StreamingQuery | None, pointed: list[pa.Table]) -> pa.Table:
    assert query is not None
    query.awaitTermination()
    return pa.concat_tables(pointed)


def _in_batch(case: SeedCase, sink: str, frame: clew.TracedFrame) -> str:
    return _wrong(case, sink, collect_traces(frame))


def _as_stream(case: SeedCase, sink: str, found: list[Traced], query: StreamingQuery) -> str:
    query.awaitTermination()
    return _wrong(case, sink, found)


def _frames(
    setting: Setting, case: SeedCase, folder: Path, *, streaming: bool
) -> Mapping[str, Any]:
    frames = {}
    for name, source in case.sources.items():
        path = folder / case.name / name
        write_batches(source, path, closed=streaming)
        spark = setting.spark
        reader: Any = spark.readStream.option("maxFilesPerTrigger", 1) if streaming else spark.read
        df = reader.schema(source.schema).parquet(str(path))
        frames[name] = clew.trace(df, name, event_time=source.event_time)
    return frames


def _wrong(case: SeedCase, sink: str, traces: list[Traced]) -> str:
    expected = [(_sorted(frozen(dict(r.values))), r.labels) for r in case.expected[sink]]
    found = [(_sorted(values), refs) for values, refs in labelled(traces, "label")]
    return difference(expected, found)


def _sorted(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(values, key=lambda pair: pair[0]))
