"""No row is called expired while it may still take part in a result.

Random streams are planned, not run: the model says what their results are and clew for how long it
holds a row. A few run with a store, which must say the same of their rows.

More seeds: `CLEW_EXPIRY_SEEDS=2000 pytest tests/properties/test_last_use.py`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

import clew
from clew.exceptions import GraphError
from clew.expiry.bound import Bound, bounds
from clew.testing import run_stream as run_traced
from properties.building import build
from properties.last_use import expired_in_the_end, last_uses, too_early
from properties.operator_tree import (
    Agg,
    Aggregate,
    DropDuplicates,
    Join,
    Read,
    Spec,
    Watermark,
    Window,
)
from properties.random_rows import random_data
from properties.random_specs import random_spec
from properties.row_files import read_frames, write_data
from properties.row_form import BASE, SECOND, Row
from properties.stream_model import run_stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SEEDS = int(os.environ.get("CLEW_EXPIRY_SEEDS", "40"))


def holds(spark: SparkSession, folder: Path, spec: Spec) -> dict[str, Bound] | None:
    """Ask clew how a pipeline holds rows; `None` where it refuses the pipeline."""
    names = (*spec.sources, *spec.statics)
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
    frames = read_frames(spark, spec, {name: folder / name for name in names})
    try:
        traced = {name: clew.trace(df, name, event_time="ts") for name, df in frames.items()}
        return bounds(build(spec, traced).node)
    except GraphError as refused:
        print(f"refused: {str(refused).splitlines()[0]}")
        return None


@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_no_row_of_a_random_stream_expires_before_its_last_result(
    spark: SparkSession, tmp_path: Path, first: int
) -> None:
    expired, rows = 0, 0
    for seed in range(first, first + 20):
        spec = random_spec(seed, streaming=True)
        print(f"seed {seed}: {spec}")
        data: Any = random_data(seed, spec)
        found = holds(spark, tmp_path, spec)
        if found is None:
            continue
        model = run_stream(spec, data)

        assert too_early(spec, data, model, found) == []
        expired += len(expired_in_the_end(spec, data, model, found))
        rows += sum(len(batch) for name in spec.sources for batch in data[name])

    assert expired > rows // 10  # or there was nothing to be wrong about


def stream(*batches: list[int]) -> list[list[Row]]:
    """Number rows at some seconds through micro-batches."""
    numbers = iter(range(100))
    return [
        [
            {"rid": next(numbers), "ts": BASE + s * SECOND, "k": "a", "g": 0, "v": 0, "tags": ()}
            for s in batch
        ]
        for batch in batches
    ]


def counted(window: Window) -> Spec:
    count = (Agg("count_all", "*", "n"),)
    return Spec(Aggregate(Watermark(Read("a"), 0), window, ("k",), count), streaming=True)


def test_a_row_is_used_until_its_last_window_closes() -> None:
    spec, data = counted(Window("ts", 10, 5)), {"a": stream([7], [11], [16], [100])}
    model = run_stream(spec, data)
    just_enough = {"a": Bound(10 * SECOND, waits=True, by_arrival=False)}
    too_little = {"a": Bound(1 * SECOND, waits=True, by_arrival=False)}

    assert [batch.watermark_ms - BASE // 1000 for batch in model.batches[1:]] == [
        7_000,
        11_000,
        16_000,
        100_000,
    ]
    assert last_uses(model) == {("a", 0): 3, ("a", 1): 4, ("a", 2): 4}
    assert too_early(spec, data, model, just_enough) == []
    first, second = too_early(spec, data, model, too_little)
    assert first.startswith(f"('a', 0) at {BASE + 7 * SECOND} is expired after batch 2 ")
    assert second.startswith(f"('a', 1) at {BASE + 11 * SECOND} is expired after batch 3 ")
    assert len(expired_in_the_end(spec, data, model, just_enough)) == 3


def test_a_row_that_comes_late_is_used_if_nothing_drops_it() -> None:
    spec = Spec(DropDuplicates(Read("a"), ("k",)), streaming=True)
    late = Spec(Watermark(Read("a"), 0), streaming=True)
    data = {"a": stream([50], [100], [20])}
    model = run_stream(late, data)
    by_time, by_arrival = (Bound(0, waits=True, by_arrival=by) for by in (False, True))

    assert last_uses(run_stream(spec, data)) == {("a", 0): 0}
    assert last_uses(model) == {("a", 0): 0, ("a", 1): 1, ("a", 2): 2}
    assert len(too_early(late, data, model, {"a": by_time})) == 1
    assert too_early(late, data, model, {"a": by_arrival}) == []


def test_a_row_that_waits_for_a_partner_is_used_when_it_comes() -> None:
    left, right = Watermark(Read("a"), 0), Watermark(Read("b"), 0)
    spec = Spec(Join(left, right, "left", ("k",), 0, 10), streaming=True)
    data = {"a": stream([5], [30]), "b": stream([0], [16], [40])}
    model = run_stream(spec, data)

    assert last_uses(model)["a", 0] == 2  # alone, once nothing within ten seconds may come
    assert too_early(spec, data, model, {n: Bound(11 * SECOND, waits=True) for n in "ab"}) == []


@pytest.mark.parametrize("seed", [3, 4])
def test_a_store_calls_the_rows_expired_that_the_bound_says(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    spec = random_spec(seed, streaming=True)
    print(f"seed {seed}: {spec}")
    data: Any = random_data(seed, spec)
    frames = read_frames(spark, spec, write_data(tmp_path / "in", spec, data))
    frame = build(
        spec, {name: clew.trace(df, name, event_time="ts") for name, df in frames.items()}
    )

    run_traced(frame, tmp_path / "prov", "results", checkpoint=tmp_path / "chk")

    model = run_stream(spec, data)
    expected = expired_in_the_end(spec, data, model, bounds(frame.node))
    with clew.open(tmp_path / "prov") as prov:
        expired = {(name, row["rid"]) for name in spec.sources for row in prov.expired(name, None)}
        alive = {(name, row["rid"]) for name in spec.sources for row in prov.alive(name, None)}
    assert expired == expected & (expired | alive)
    assert expired | alive == set(last_uses(model))
