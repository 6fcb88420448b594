"""What the HTTP interface answers with, as the OpenAPI description says it.

Answers are plain data that `clew.ask` makes; these models describe them and are not in their way.
A test holds every answer against its model.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """Plain data without fields that are not described."""

    model_config = ConfigDict(extra="forbid")


class Failure(Answer):
    """Why there is no answer."""

    code: str = Field(description="a word for programs")
    message: str = Field(description="what happened, and why")
    hint: str | None = Field(description="what to do instead")


class Failed(Answer):
    """An answer that is an error."""

    error: Failure


class StoreAnswer(Answer):
    """The store as a whole."""

    path: str
    name: str
    format: int
    version: str | None
    streams: int
    batches: int
    edges: int
    state: str = Field(description="changes with each commit, erasure or pruning")
    committed: str | None = Field(description="when something was last committed")


class GapAnswer(Answer):
    """Batches whose provenance is missing."""

    writer: str
    run: str
    first: int
    last: int
    reason: str


class StreamAnswer(Answer):
    """A stream, as `Stream.to_dict` has it."""

    name: str
    kind: Literal["source", "sink", "named"]
    writer: str | None
    exactness: str | None
    capture: str | None
    why: str | None
    identity: dict[str, Any] | None
    columns: list[str]
    sources: list[str]
    named: list[str]
    feeds: list[str]
    batches: int | None
    sink_rows: int | None
    edges: int | None
    watermark: str | None
    bounds: dict[str, Any]
    gaps: list[GapAnswer]


class StreamsAnswer(Answer):
    """All streams."""

    streams: list[StreamAnswer]


class RowAnswer(Answer):
    """A row; `row` is null if the store does not have its content."""

    stream: str
    id: str
    segment: str | None
    position: int | None
    time: str | None
    row: dict[str, Any] | None


class ColumnAnswer(Answer):
    """A column and its type, in DuckDB's words."""

    name: str
    type: str


class RowsAnswer(Answer):
    """A page of rows."""

    rows: list[RowAnswer]
    total: int
    left_out: int
    offset: int
    columns: list[ColumnAnswer]


class EdgeAnswer(Answer):
    """A result and a row that it was made from."""

    sink: str
    sink_id: str
    source: str
    source_id: str


Direction = Literal["backward", "forward"]
Exactness = Literal["exact", "superset", "coarse"]
Status = Literal["alive", "expired"]


class TraceAnswer(Answer):
    """Where rows came from or what they led to, as `Trace.to_dict` has it."""

    direction: Direction
    stream: str
    scope: list[str] | None
    start: list[RowAnswer]
    rows: list[RowAnswer]
    left_out: int
    by_stream: dict[str, int]
    edges: list[EdgeAnswer]
    path: list[str]
    exactness: Exactness
    status: Status | None
    complete: bool
    gaps: list[GapAnswer]
    seconds: float


class ReachedAnswer(RowAnswer):
    """A result, and whether it may lead to more; null for a row inside a query."""

    status: Status | None
    expires: str | None = Field(description="the event time that the watermark must pass")


class ForwardAnswer(TraceAnswer):
    """What rows led to."""

    rows: list[ReachedAnswer]  # type: ignore[assignment]


class ExpiryAnswer(Answer):
    """Whether a row may still take part in results, as `Expiry.to_dict` has it."""

    stream: str
    id: str
    status: Status
    expires: str | None = Field(description="the event time that the watermark must pass")
    watermark: str | None
    why: str
    query: str | None


class LinkAnswer(Answer):
    """A line from one node to another, in the direction in which rows travel."""

    source: str
    target: str


class NodeAnswer(Answer):
    """A row, several rows, or a step."""

    key: str
    kind: Literal["row", "group", "step"]
    layer: int
    place: int
    stream: str
    id: str | None
    label: str
    detail: str
    count: int | None
    asked: bool
    time: str | None


class DrawingAnswer(Answer):
    """An answer in layers, as `Drawing.to_dict` has it."""

    direction: Direction
    nodes: list[NodeAnswer]
    links: list[LinkAnswer]
    edges: list[tuple[str, str]] = Field(description="keys of a sink row and of a source row")
    layers: int
    rows: int
    shown: int
    left_out: int
    beyond: int


class FlowNodeAnswer(Answer):
    """A stream or a step, as `FlowNode.to_dict` has it."""

    key: str
    kind: Literal["source", "step", "named", "sink"]
    stream: str | None
    writer: str | None
    label: str
    detail: str
    layer: int
    place: int
    rows: int | None
    edges: int | None
    batches: int | None
    last_batch: int | None
    committed: str | None
    watermark: str | None
    lag_seconds: float | None
    bound: float | None
    why: str | None
    capture: str | None
    exactness: str | None


class FlowAnswer(Answer):
    """All queries as one flow."""

    nodes: list[FlowNodeAnswer]
    links: list[LinkAnswer]


class CountsAnswer(Answer):
    """How many source rows are shared and apart."""

    common: int
    only_left: int
    only_right: int


class ComparisonAnswer(Answer):
    """Two results side by side, as `Comparison.to_dict` has it."""

    stream: str
    left: RowAnswer
    right: RowAnswer
    common: list[RowAnswer]
    only_left: list[RowAnswer]
    only_right: list[RowAnswer]
    counts: CountsAnswer
    exactness: Exactness
    complete: bool


class MomentAnswer(Answer):
    """A row at a point in time."""

    key: str
    id: str
    time: str
    label: str


class BinAnswer(Answer):
    """A piece of the time axis, and how many rows lie in it."""

    begin: str = Field(alias="from")
    end: str = Field(alias="to")
    count: int


class LaneAnswer(Answer):
    """The rows of one stream."""

    stream: str
    rows: list[MomentAnswer]
    left_out: int
    bins: list[BinAnswer]


class WindowAnswer(Answer):
    """A window of a result."""

    begin: str = Field(alias="from")
    end: str = Field(alias="to")
    label: str
    stream: str


class TimelineAnswer(Answer):
    """Rows on a time axis, as `Timeline.to_dict` has it."""

    begin: str | None = Field(alias="from")
    end: str | None = Field(alias="to")
    lanes: list[LaneAnswer]
    windows: list[WindowAnswer]
    untimed: int


class InfluencedAnswer(RowAnswer):
    """A source row, and what it does to the result."""

    amount: int | float | str | None = Field(description="the value that it brings")
    influence: int | float | str | None = Field(description="the result less the one without it")
    share: float | None


class InfluenceAnswer(Answer):
    """Source rows by how much of a result they carry, as `Influence.to_dict` has it."""

    stream: str
    id: str
    column: str | None
    function: str | None
    value: str | None
    result: Any
    rows: list[InfluencedAnswer]
    left_out: int
    why: str | None
    columns: list[str]


class MinimizeQuestion(BaseModel):
    """A result, and what it has to meet."""

    model_config = ConfigDict(extra="forbid")

    stream: str = Field(max_length=1_000)
    row: str = Field(min_length=1, max_length=4_000)
    condition: str | None = Field(
        default=None, max_length=4_000, description="comparisons of the result's columns"
    )


class BegunAnswer(Answer):
    """A search that was begun."""

    job: str


class MinimalAnswer(Answer):
    """The fewest rows that still produce a result, as `Minimal.to_dict` has it."""

    stream: str
    id: str
    condition: str | None
    rows: list[RowAnswer]
    left_out: int
    of: int
    tests: int
    seconds: float
    complete: bool
    smallest: bool
    result: dict[str, Any]


class JobAnswer(Answer):
    """How far a search is."""

    job: str
    state: Literal["running", "done", "stopped", "failed"]
    done: int = Field(description="tests done")
    tests: int = Field(description="tests known to be needed")
    of: int | None = Field(description="source rows at the start")
    size: int | None = Field(description="rows of the smallest set so far")
    answer: MinimalAnswer | None
    error: Failure | None
