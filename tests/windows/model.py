"""What windows over rows in order should give, said by definition rather than step by step.

Each function is given the rows of one key, in order, as (time in seconds, id, value), and returns
(moment, ids) of each result. `kept` says which rows of a stream are in time.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Row(NamedTuple):
    time: int
    rid: int
    value: int | None = None


Result = tuple[int, tuple[int, ...]]


def _ids(rows: Iterable[Row]) -> tuple[int, ...]:
    return tuple(row.rid for row in rows)


def count_window(
    rows: Sequence[Row], size: int, slide: int = 1, *, partial: bool = False
) -> list[Result]:
    ends = range(slide if partial else size, len(rows) + 1, slide)
    return [(rows[end - 1].time, _ids(rows[max(0, end - size) : end])) for end in ends]


def time_window(rows: Sequence[Row], size: int) -> list[Result]:
    return [
        (last.time, _ids(r for r in rows[: i + 1] if r.time >= last.time - size))
        for i, last in enumerate(rows)
    ]


def clock_window(rows: Sequence[Row], size: int, every: int) -> list[Result]:
    if not rows:
        return []
    ticks = range(0, rows[-1].time + size + every, every)
    held = [(tick, [r for r in rows if tick - size <= r.time <= tick]) for tick in ticks]
    return [(tick, _ids(inside)) for tick, inside in held if inside]


def value_window(rows: Sequence[Row], size: int, slide: int) -> list[Result]:
    having = [(r, r.value) for r in rows if r.value is not None]
    heads: list[int] = []
    for i, (_, value) in enumerate(having):
        if not heads or abs(value - having[heads[-1]][1]) >= slide:
            heads.append(i)
    found = []
    for i in heads:
        head = having[i][1]
        apart = [abs(value - head) < size for _, value in having[i:]]
        inside = having[i : i + sum(takewhile(bool, apart))]
        if i + len(inside) < len(having):
            closing = having[i + len(inside)][0]
            found.append((closing.time, _ids(row for row, _ in inside)))
    return found


def bounded_sort(rows: Sequence[Row], slack: int) -> list[Result]:
    found: list[Result] = []
    gone: set[int] = set()
    for i in range(slack, len(rows)):
        left = [(r, n) for n, r in enumerate(rows[: i + 1]) if n not in gone]
        row, at = min(left, key=lambda e: (e[0].value is not None, e[0].value or 0, e[1]))
        gone.add(at)
        found.append((rows[i].time, (row.rid,)))
    return found


def window_join(
    left: Sequence[Row],
    right: Sequence[Row],
    back: Callable[[Sequence[Row], int], Sequence[Row]],
    on: Callable[[Row, Row], bool],
    *,
    new: bool,
) -> list[tuple[int, tuple[tuple[int, int], ...]]]:
    """Return, for each moment, the pairs of ids.

    Args:
        left: The rows of one side.
        right: The rows of the other.
        back: What a side looks back on at a moment, of its rows until then.
        on: Whether two rows belong together.
        new: Only pairs with a row of that moment.
    """
    found = []
    for now in sorted({r.time for r in (*left, *right)}):
        sides = [back([r for r in side if r.time <= now], now) for side in (left, right)]
        pairs = [
            (a.rid, b.rid)
            for a in sides[0]
            for b in sides[1]
            if on(a, b) and (not new or now in (a.time, b.time))
        ]
        if pairs:
            found.append((now, tuple(pairs)))
    return found


def last_rows(count: int) -> Callable[[Sequence[Row], int], Sequence[Row]]:
    return lambda rows, now: rows[-count:]


def last_seconds(size: int) -> Callable[[Sequence[Row], int], Sequence[Row]]:
    return lambda rows, now: [r for r in rows if r.time >= now - size]


def kept(runs: Sequence[Sequence[Sequence[Row]]], delay: int) -> set[int]:
    """Return the ids of rows that come in time.

    A batch leaves out what is not after the watermark that the batch before it closed windows
    with, and that is the watermark of all batches before that one. At its end, a run has a batch
    without rows.
    """
    closing: list[float] = [float("-inf")]
    highest = float("-inf")
    found: set[int] = set()
    for run in runs:
        for batch in [*run, []]:
            late = closing[-1]
            closing.append(highest - delay)
            found.update(r.rid for r in batch if r.time > late)
            highest = max([highest, *[r.time for r in batch]])
    return found
