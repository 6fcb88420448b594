"""Answers over random stores agree with a plain-Python model of them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.ask.provenance import open_store
from clew.model import RowId
from store.build import StoreBuilder
from store.build import row as make_row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STREAMS = ["r0", "r1", "s0", "s1", "s2"]
SINKS = STREAMS[2:]
Pair = tuple[tuple[str, int], tuple[str, int]]

rows_of_streams = st.tuples(st.sampled_from(STREAMS), st.integers(-2, 2))
rows_of_sinks = st.tuples(st.sampled_from(SINKS), st.integers(-2, 2))
edge_sets = st.sets(st.tuples(rows_of_sinks, rows_of_streams), max_size=25)


def build(root: Path, edges: set[Pair], batches: int) -> None:
    """Put edges into a store, spread over batches; the streams may feed each other in circles."""
    builder = StoreBuilder(root)
    for sink in SINKS:
        own = sorted(each for each in edges if each[0][0] == sink)
        builder.sink(sink, sorted({source[0] for _, source in own}))
        for number in range(batches):
            part = own[number::batches]
            builder.batch(
                sink,
                number,
                edges=[(a[0], a[1], 0, b[0], b[1], 0) for a, b in part],
                rows={sink: [make_row(i, 0, n=i) for i in range(-2, 3)]},
            )


def reach(edges: set[Pair], start: tuple[str, int], near: int) -> set[tuple[str, int]]:
    """Follow edges from a row to everything behind it, the plain way."""
    found: set[tuple[str, int]] = set()
    todo = [start]
    while todo:
        here = todo.pop()
        new = {edge[1 - near] for edge in edges if edge[near] == here} - found
        found |= new
        todo.extend(new)
    return found


def names(ids: list[RowId]) -> set[tuple[str, int]]:
    return {(each.stream, each.a) for each in ids}


slow_is_fine = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)


@slow_is_fine
@given(edges=edge_sets, start=rows_of_sinks, batches=st.integers(1, 3))
def test_backward_is_every_row_behind_that_nothing_lies_behind(
    edges: set[Pair], start: tuple[str, int], batches: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), edges, batches)
        with open_store(folder) as provenance:
            row = RowId(start[0], start[1], 0)
            trace = provenance.backward(start[0], row)
            # Asked again, the answer comes from memory.
            assert provenance.backward(start[0], row).edges == trace.edges

    behind = reach(edges, start, near=0)
    assert names(trace.rows.ids()) == {each for each in behind if not reach(edges, each, near=0)}
    passed = {start, *behind}
    assert {((e.sink.stream, e.sink.a), (e.source.stream, e.source.a)) for e in trace.edges} == {
        each for each in edges if each[0] in passed
    }


@slow_is_fine
@given(edges=edge_sets, start=rows_of_streams, batches=st.integers(1, 3))
def test_forward_is_every_sink_row_ahead(
    edges: set[Pair], start: tuple[str, int], batches: int
) -> None:
    if not any(each[1][0] == start[0] for each in edges):
        return  # the store does not know the stream
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), edges, batches)
        with open_store(folder) as provenance:
            known = {each.name for each in provenance.streams()}
            if start[0] not in known:
                return
            row = RowId(start[0], start[1], 0)
            trace = provenance.forward(start[0], row)
            assert provenance.forward(start[0], row).to_arrow() == trace.to_arrow()

    assert names(trace.rows.ids()) == reach(edges, start, near=1)


values = st.fixed_dictionaries(
    {
        "n": st.one_of(st.none(), st.integers(-3, 3)),
        "t": st.one_of(st.none(), st.sampled_from(["", "a", "b'\"", "\x00"])),
        "w": st.one_of(st.none(), st.fixed_dictionaries({"lo": st.integers(0, 3)})),
    }
)
CONDITIONS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "n > 0": lambda v: v["n"] is not None and v["n"] > 0,
    "n IS NULL OR t = 'a'": lambda v: v["n"] is None or v["t"] == "a",
    "w.lo >= 2": lambda v: v["w"] is not None and v["w"]["lo"] >= 2,
    "w.lo = 1 AND n < 2": lambda v: (
        v["w"] is not None and v["w"]["lo"] == 1 and v["n"] is not None and v["n"] < 2
    ),
    "t LIKE 'b%' AND w IS NOT NULL": lambda v: (
        v["t"] is not None and v["t"].startswith("b") and v["w"] is not None
    ),
}


@slow_is_fine
@given(
    batches=st.lists(st.lists(values, min_size=1, max_size=6), min_size=1, max_size=3),
    condition=st.sampled_from(sorted(CONDITIONS)),
    order_by=st.sampled_from([None, "n", "w.lo DESC, t"]),
)
def test_a_condition_keeps_the_rows_that_meet_it(
    batches: list[list[dict[str, object]]], condition: str, order_by: str | None
) -> None:
    import pyarrow as pa

    dtype = pa.struct(
        [("n", pa.int64()), ("t", pa.string()), ("w", pa.struct([("lo", pa.int64())]))]
    )
    with tempfile.TemporaryDirectory() as folder:
        builder = StoreBuilder(Path(folder))
        for number, content in enumerate(batches):
            rows = [{**make_row(number, i), "row": each} for i, each in enumerate(content)]
            builder.batch("s", number, rows={"s": rows}, types={"s": dtype})
        with open_store(folder) as provenance:
            found = provenance.rows("s", where=condition, order_by=order_by)

    kept = {
        (a, b)
        for a, content in enumerate(batches)
        for b, each in enumerate(content)
        if CONDITIONS[condition](each)
    }
    assert {(each.a, each.b) for each in found.ids()} == kept
    assert found.total == len(kept)
    assert all(CONDITIONS[condition](dict(each)) for each in found)
