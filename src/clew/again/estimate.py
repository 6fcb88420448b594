"""Predict what recording and on-the-fly queries will cost a pipeline, before it runs.

The sizes in the formulas depend on the data: how well times and positions compress, how many rows
a filter passes. So they are read off a sample of the source, which goes through the same steps and
the same encoding as in earnest, at two sizes: the difference is what a row costs, and what is left
is what a file costs. The content of a source in Parquet files is kept as it is, so the files
themselves tell its size.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from clew.again.cost import memory_cost
from clew.again.event_keys import Batches, keys_of
from clew.again.recorded_streams import recorded_streams
from clew.again.tables import local_path
from clew.capture.properties import PROPERTIES, Properties
from clew.expiry.between import between
from clew.expiry.lead import lead
from clew.operators.keep import shown
from clew.operators.source import Source
from clew.plan.facts import For, UntilMet, UntilPassed
from clew.plan.node import interpret, rebuilt, with_secret
from clew.plan.secret import UNKEYED
from clew.sources.identity import ParquetIdentity
from clew.sources.reread import Again
from clew.store.short_keys import put_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import types as T

    from clew.again.cost import Form
    from clew.again.recorded_streams import Recorded
    from clew.plan.node import Node

_SAMPLE = 20_000
_OBJECT = 64
"""Bytes that Spark's state takes for a value of no fixed size, such as a set of few names."""


@dataclass(frozen=True, slots=True)
class StreamCost:
    """What one stream costs for each source row.

    Attributes:
        name: The stream.
        kind: The step that makes it.
        rows: How many rows it has for each source row.
        key_bytes: What the key of a row takes; 0 where the keys are those of another stream.
        content_bytes: What a row's content takes.
        is_first: It is a source.
        file_bytes: What a file takes beside its rows.
    """

    name: str
    kind: str
    rows: float
    key_bytes: float
    content_bytes: float
    is_first: bool
    file_bytes: float = 0.0

    def stored(self, source_rows: float, form: Form) -> float:
        """Return what is stored of the stream, in bytes."""
        if form == "optimised" and self.key_bytes == 0 and not self.is_first:
            return 0.0
        content = self.content_bytes if self.is_first or form == "unoptimised" else 0.0
        return self.rows * source_rows * (self.key_bytes + content) + self.file_bytes


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a pipeline will cost.

    Attributes:
        rows: How many source rows the estimate is for.
        streams: What each stream costs.
        memory_bytes: How much more Spark's state holds for the pipeline's properties, between
            batches; within one it also holds what the batch has not closed yet.
        marginal_memory_bytes: The same for one step that keeps state.
    """

    rows: int
    streams: tuple[StreamCost, ...]
    memory_bytes: float | None = None
    marginal_memory_bytes: float | None = None

    def storage(self, form: Form) -> float:
        """Return what is stored in all, in bytes."""
        return sum(each.stored(self.rows, form) for each in self.streams)

    def marginal_storage(self, form: Form) -> float:
        """Return what a step stores, on average over all steps behind the sources, in bytes."""
        steps = [each for each in self.streams if not each.is_first]
        stored = sum(each.stored(self.rows, form) for each in steps)
        return stored / len(steps) if steps else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as plain data that JSON can hold."""
        return {
            "rows": self.rows,
            "storage_bytes": {f: round(self.storage(f)) for f in ("optimised", "unoptimised")},
            "marginal_storage_bytes": {
                f: round(self.marginal_storage(f)) for f in ("optimised", "unoptimised")
            },
            "memory_bytes": _rounded(self.memory_bytes),
            "marginal_memory_bytes": _rounded(self.marginal_memory_bytes),
            "streams": [
                {
                    "name": each.name,
                    "kind": each.kind,
                    "rows": round(each.rows * self.rows),
                    "key_bytes": round(each.key_bytes, 2),
                    "content_bytes": round(each.content_bytes, 2),
                }
                for each in self.streams
            ],
        }


def estimate(
    node: Node, rows: int, *, rate: float | None = None, sample: int = _SAMPLE, name: str = "out"
) -> Estimate:
    """Predict storage and memory of a pipeline.

    Args:
        node: The pipeline; its sources are read.
        rows: How many source rows to predict for.
        rate: Source rows a second, for the memory of on-the-fly queries.
        sample: How many rows of each source to look at.
        name: What the results will be called.

    Raises:
        AssertionsRefusedError: Rows of a step cannot be computed again.
    """
    found = tuple(_costs(node, name, sample))
    memory = marginal = None
    if rate is not None:
        windows = [rate * seconds for seconds in _kept_seconds(node)]
        size = _property_size(node)
        # A batch of results waits while its properties are delivered; its size is not known here.
        sizes = {"initial": 0.0, "engine": 0.0, "queue": 0.0, "assertion": size}
        memory = memory_cost(**sizes, windows=windows)
        marginal = memory / len(windows) if windows else 0.0
    return Estimate(rows, found, memory, marginal)


def _costs(node: Node, name: str, sample: int) -> Iterator[StreamCost]:
    folder = Path(tempfile.mkdtemp(prefix="clew-estimate-"))
    try:
        whole, half = (_measured(node, name, n, folder) for n in (sample, sample // 2))
        firsts = [
            each.name
            for each in recorded_streams(node, name, "all", content="all")
            if each.is_first
        ]
        most = sum(whole[first].rows for first in firsts)
        for stream in recorded_streams(node, name, "all", content="all"):
            yield _cost(stream, whole[stream.name], half[stream.name], most)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Of a stream in a sample: how many rows, and the sizes of its files."""

    rows: int
    keys: int
    with_content: int


def _measured(node: Node, name: str, sample: int, folder: Path) -> dict[str, _Sizes]:
    """Send a sample through the pipeline and see what each stream takes."""
    limited: dict[int, Any] = {}
    for each in node.walk():
        source = each.operator
        if isinstance(source, Source):
            table = source.df
            if isinstance(source.again, Again):
                table = source.again.read(source.df, source.origin.schema)
            part = table.limit(sample)
            limited[each.id] = replace(source, df=part, again=Again(table=part))
    sampled = with_secret(rebuilt(node, limited), UNKEYED)
    streams = recorded_streams(sampled, name, "all", content="all")
    batches = Batches(None, 0, 0)
    sizes = {}
    for stream in streams:
        rows = keys_of(stream, streams, batches, with_content=True).toArrow()
        bare = folder / "keys.parquet"
        full = folder / "rows.parquet"
        put_keys(rows.drop_columns(["row"]), bare)
        put_keys(rows, full)
        sizes[stream.name] = _Sizes(rows.num_rows, bare.stat().st_size, full.stat().st_size)
    return sizes


def _cost(stream: Recorded, whole: _Sizes, half: _Sizes, source_rows: int) -> StreamCost:
    more = max(1, whole.rows - half.rows)
    key = max(0.0, (whole.keys - half.keys) / more)
    content = max(0.0, (whole.with_content - half.with_content) / more - key)
    kept = None if not stream.is_first else _file_size(stream.node)
    if kept is not None:
        return StreamCost(stream.name, "source", whole.rows / source_rows, 0.0, kept, is_first=True)
    return StreamCost(
        name=stream.name,
        kind=stream.node.operator.kind,
        rows=whole.rows / max(1, source_rows),
        key_bytes=0.0 if stream.same_as is not None else key,
        content_bytes=content + (key if stream.same_as is not None else 0.0),
        is_first=stream.is_first,
        file_bytes=max(0.0, whole.keys - key * whole.rows),
    )


def _file_size(node: Node) -> float | None:
    """Return what a row takes in the files of a source; None if it is in no Parquet files."""
    source = node.operator
    assert isinstance(source, Source)
    if not isinstance(source.origin.identity, ParquetIdentity):
        return None
    again = source.again
    table = again.read(source.df, source.origin.schema) if isinstance(again, Again) else source.df
    paths = [local_path(each) for each in table.inputFiles()]
    if not paths or not all(path.exists() for path in paths):
        return None
    rows = sum(int(pq.read_metadata(path).num_rows) for path in paths)
    return sum(path.stat().st_size for path in paths) / max(1, rows)


def _kept_seconds(node: Node) -> Iterator[float]:
    """Say for how long each step that keeps state keeps a row."""
    for each in node.walk():
        micros: int | None = None
        match each.operator.facts.keeps:
            case UntilPassed(time, _):
                micros = lead(each.inputs[0], shown(time))
            case For(size, _):
                micros = size
            case UntilMet():
                micros = between(each).width
        if micros is not None:
            yield micros / 1e6


def _property_size(node: Node) -> float:
    """Return what the properties of a row take in Spark's state."""
    annotation = interpret(node, PROPERTIES).annotation
    assert isinstance(annotation, Properties)
    return float(sum(_size(kind) for kind in annotation.kinds.values()))


def _size(kind: T.DataType) -> int:
    from pyspark.sql import types

    fixed = (types.NumericType, types.BooleanType, types.DateType, types.TimestampType)
    return 8 if isinstance(kind, fixed) else _OBJECT


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)
