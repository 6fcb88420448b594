"""Each machine against the model, over random rows, cut anywhere, its state through JSON."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from clew.operators.machines import (
    BoundedSort,
    ClockWindow,
    CountWindow,
    Lookback,
    Machine,
    Member,
    TimeWindow,
    ValueWindow,
    WindowJoin,
    in_order,
)
from windows import model
from windows.model import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

SEED = 5
SECOND = 1_000_000


def random_rows(chosen: random.Random, count: int) -> list[Row]:
    times = sorted(chosen.randint(0, 40) for _ in range(count))
    values = [chosen.choice([None, *range(8)]) for _ in times]
    return [Row(t, 100 + i, v) for i, (t, v) in enumerate(zip(times, values, strict=True))]


def member(row: Row, lane: int = 0) -> Member:
    value = None if row.value is None else str(row.value)
    return Member(row.time * SECOND, str(row.rid), lane=lane, value=value)


def run(machine: Machine, members: Sequence[Member], chosen: random.Random) -> list[Any]:
    """Feed a machine in pieces, as a stream would: the watermark is somewhere behind each piece."""
    state: dict[str, Any] = {}
    found: list[Any] = []
    rest = list(members)
    while rest:
        until = rest[0].time + chosen.randint(0, 12) * SECOND
        ready = [m for m in rest if m.time <= until]
        rest = rest[len(ready) :]
        found += machine.take(state, ready, until)
        due = machine.next_due(state)
        assert due is None or due > until
        state = {} if machine.is_over(state) else json.loads(json.dumps(state))
    found += machine.take(state, [], None)
    return found


def shown(found: Sequence[Any]) -> list[model.Result]:
    return [(due.at // SECOND, tuple(int(m.row) for m in due.members)) for due in found]


@pytest.mark.parametrize("seed", range(SEED, SEED + 40))
def test_a_machine_gives_what_the_definition_says(seed: int) -> None:
    print(f"seed {seed}")
    chosen = random.Random(seed)
    rows = random_rows(chosen, chosen.randint(0, 25))
    members = [member(r) for r in rows]
    size, slide, every = chosen.randint(1, 6), chosen.randint(1, 6), chosen.randint(1, 9)
    partial = chosen.random() < 0.5
    cases: list[tuple[Machine, list[model.Result]]] = [
        (CountWindow(size, slide, partial), model.count_window(rows, size, slide, partial=partial)),
        (TimeWindow(size * SECOND), model.time_window(rows, size)),
        (ClockWindow(size * SECOND, every * SECOND), model.clock_window(rows, size, every)),
        (ValueWindow(Decimal(size), Decimal(slide)), model.value_window(rows, size, slide)),
        (BoundedSort(slide, is_number=True), model.bounded_sort(rows, slide)),
    ]
    for machine, expected in cases:
        found = shown(run(machine, members, chosen))
        # Windows that one row closes are due together.
        put = sorted if isinstance(machine, ValueWindow) else list
        assert put(found) == put(expected), machine


@pytest.mark.parametrize("seed", range(SEED, SEED + 20))
def test_a_join_looks_back_on_what_the_definition_says(seed: int) -> None:
    print(f"seed {seed}")
    chosen = random.Random(seed)
    left, right = (random_rows(chosen, chosen.randint(0, 15)) for _ in range(2))
    right = [r._replace(rid=r.rid + 100) for r in right]
    together = in_order([*[member(r, 0) for r in left], *[member(r, 1) for r in right]])
    size = chosen.randint(1, 9)
    for back, look in (
        (Lookback(rows=size), model.last_rows(size)),
        (Lookback(time=size * SECOND), model.last_seconds(size)),
    ):
        found = run(WindowJoin(back, back), together, chosen)
        pairs = [
            (
                due.at // SECOND,
                tuple(
                    (int(a.row), int(b.row))
                    for a in due.members
                    for b in due.members
                    if (a.lane, b.lane) == (0, 1)
                ),
            )
            for due in found
        ]
        assert pairs == model.window_join(left, right, look, lambda a, b: True, new=False)


@pytest.mark.parametrize(
    ("machine", "over"),
    [
        (TimeWindow(10), 15),
        (ClockWindow(10, 4), 16),
        (WindowJoin(Lookback(time=10), Lookback(time=3)), 15),
        (WindowJoin(Lookback(rows=2), Lookback(rows=2)), None),
        (CountWindow(2), None),
    ],
)
def test_what_can_matter_no_more_is_forgotten(machine: Machine, over: int | None) -> None:
    """Nobody remembers a key for ever that has no more rows, if a window is one of time."""
    state: dict[str, Any] = {}
    list(machine.take(state, [Member(0, "a"), Member(5, "b")], 5))
    moments = []
    while not machine.is_over(state) and (due := machine.next_due(state)) is not None:
        moments.append(due)
        list(machine.take(state, [], due))

    assert machine.is_over(state) is (over is not None)
    assert (moments[-1] if moments else None) == over


def test_rows_are_in_order_by_time_then_content_then_id() -> None:
    later = Member(2, "a", "1")
    same_time = Member(1, "b", "1")
    same_content = [Member(1, "a", "2"), Member(1, "a", "1")]

    assert in_order([later, same_time, *same_content]) == [
        Member(1, "a", "1"),
        Member(1, "a", "2"),
        same_time,
        later,
    ]


def test_numbers_that_are_not_numbers() -> None:
    values = ["3", "NaN", None, "Infinity", "-Infinity", "Infinity"]
    members = [Member(i, str(i), value=v) for i, v in enumerate(values)]

    sorts = BoundedSort(0, is_number=True).take({}, members, None)
    whole = BoundedSort(5, is_number=True).take({}, members, None)
    assert [due.members[0].row for due in sorts] == ["0", "1", "2", "3", "4", "5"]
    assert [due.members[0].value for due in whole] == [None]
    windows = ValueWindow(Decimal(1), Decimal(1)).take({}, members, None)
    assert [[m.row for m in due.members] for due in windows] == [["0"], ["3"], ["4"]]
