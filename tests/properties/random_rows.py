"""Random rows for a pipeline, few enough to read and with times that hit the bounds of windows."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from properties.row_form import BASE, SECOND, Batches, Row, Tables

if TYPE_CHECKING:
    from properties.operator_tree import Spec


def _random_row(rng: random.Random, rid: int, seconds: float) -> Row:
    ts = None if rng.random() < 0.05 else BASE + round(seconds * SECOND)
    return {
        "rid": rid,
        "ts": ts,
        "k": rng.choice(["a", "a", "b", "b", "c", None]),
        "g": rng.randint(0, 2),
        "v": None if rng.random() < 0.15 else rng.randint(0, 5),
        "tags": None
        if rng.random() < 0.1
        else tuple(rng.randint(0, 3) for _ in range(rng.randint(0, 3))),
    }


def _seconds(rng: random.Random, around: int) -> float:
    """Draw an event time: mostly whole seconds, so that window bounds are hit often."""
    whole = max(0, around + rng.randint(-10, 10) + rng.randint(-10, 10))
    return whole + rng.choice((0, 0, 0, 0, 0.25, 0.0004, -0.000001)) if whole else 0.0


def _random_rows(rng: random.Random, first: int, count: int, around: int) -> list[Row]:
    """Draw rows; now and then one repeats an earlier one but for its number."""
    rows: list[Row] = []
    for rid in range(first, first + count):
        fresh = _random_row(rng, rid, _seconds(rng, around))
        rows.append({**rng.choice(rows), "rid": rid} if rows and rng.random() < 0.15 else fresh)
    return rows


def _stream_of(rng: random.Random) -> list[list[Row]]:
    batches: list[list[Row]] = []
    count = 0
    for number in range(rng.randint(2, 3)):
        rows = _random_rows(rng, count, rng.randint(2, 8), 6 + 14 * number)
        count += len(rows)
        batches.append(rows)
    batches.append(_closing(rng, count))
    return batches


def _closing(rng: random.Random, count: int) -> list[Row]:
    """Make the last file: rows far ahead that most filters let through."""
    ahead = 1000 if rng.random() < 0.8 else rng.randint(50, 90)
    return [
        {
            "rid": count + i,
            "ts": BASE + (ahead + i) * SECOND,
            "k": "ab"[i % 2],
            "g": i % 3,
            "v": (5, 3, 2)[i],
            "tags": (1, 3),
        }
        for i in range(3)
    ]


def draw_data(rng: random.Random, spec: Spec) -> Tables | Batches:
    """Draw rows for a pipeline: tables for batch, lists of micro-batches for streams."""
    data: dict[str, Any] = {}
    for name in (*spec.sources, *spec.statics):
        if spec.streaming and name in spec.sources:
            data[name] = _stream_of(rng)
        else:
            size = rng.randint(0, 4) if name in spec.statics else rng.randint(1, 12)
            data[name] = _random_rows(rng, 0, size, 20)
    return data


def random_data(seed: int, spec: Spec) -> Tables | Batches:
    """Draw the rows of a seed for a pipeline; the same ones on every call."""
    return draw_data(random.Random(f"data {seed}"), spec)
