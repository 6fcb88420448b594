"""Random stores whose batches have an age, and what is left of them, in plain Python.

Two queries, the second over the results of the first. The first one's rows carry sets or pointers:
then its edges are in unfoldings, each over several batches, or over a choice of rows. Some results
pass a named frame. Batch `n` of all that are written is committed in second `n + 1` of 2026.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from store.build import RUN, StoreBuilder, row

if TYPE_CHECKING:
    from pathlib import Path

Id = tuple[str, int]
Pair = tuple[Id, Id]


def second(number: int) -> dt.datetime:
    return dt.datetime(2026, 1, 1, 0, 0, number, tzinfo=dt.timezone.utc)


@dataclass
class Aged:
    """What was put into a store: each result's own edges, and the batch it came with."""

    edges: dict[Id, set[Pair]] = field(default_factory=dict)
    came: dict[Id, tuple[str, int]] = field(default_factory=dict)
    at: dict[tuple[str, int], int] = field(default_factory=dict)

    def old(self, before: int) -> set[tuple[str, int]]:
        """The batches with results that go: not the last of a query."""
        last = {writer: max(n for w, n in self.at if w == writer) for writer, _ in self.at}
        full = set(self.came.values())
        return {
            (writer, n)
            for (writer, n), at in self.at.items()
            if at < before and n != last[writer] and (writer, n) in full
        }

    def left(self, before: int) -> set[Pair]:
        old = self.old(before)
        return {
            pair
            for result, pairs in self.edges.items()
            if self.came[result] not in old
            for pair in pairs
        }


def behind(edges: set[Pair], start: Id) -> set[Pair]:
    """Follow edges from a row as far as they go."""
    found: set[Pair] = set()
    todo, seen = [start], {start}
    while todo:
        here = todo.pop()
        new = {each for each in edges if each[0] == here}
        found |= new
        ahead = {source for _, source in new} - seen
        seen |= ahead
        todo.extend(ahead)
    return found


def ahead(edges: set[Pair], start: Id) -> set[Pair]:
    """Follow edges from a row to everything made of it."""
    return {(a, b) for b, a in behind({(b, a) for a, b in edges}, start)}


def build(root: Path, seed: int) -> Aged:
    chance = random.Random(seed)
    print("seed", seed)
    builder = StoreBuilder(root)
    builder.source("r")
    capture = chance.choice(["sets", "pointers", "pointers", "intervals"])
    graph = {"nodes": [], "sink": 0, "sources": ["r"], "named": {"n": 0}}
    builder.sink("s", ["r"], capture=capture, graph=graph)
    builder.stream("n", "named", writer="s", sources=["r"])
    builder.sink("t", ["s", "r"])
    aged = Aged()
    clock = 0
    for number in range(chance.randint(3, 6)):
        for writer in ("s", "t"):
            clock += 1
            aged.at[writer, number] = clock
            results = [(writer, 100 * number + i) for i in range(chance.randint(0, 3))]
            for result in results:
                aged.came[result] = (writer, number)
                aged.edges[result] = _edges(chance, result, aged)
            _batch(builder, writer, number, results, aged, capture if writer == "s" else "sets")
    if capture != "sets":
        _unfold(builder, chance, aged, capture)
    return aged


def _edges(chance: random.Random, result: Id, aged: Aged) -> set[Pair]:
    pool: list[Id] = [("r", n) for n in range(6)]
    if result[0] == "t":
        pool += [each for each in aged.came if each[0] == "s"]
    chosen = chance.sample(pool, chance.randint(1, min(3, len(pool))))
    pairs = {(result, each) for each in chosen}
    if result[0] == "s" and chance.random() < 0.5:
        middle = ("n", result[1])
        pairs |= {(result, middle), (middle, chance.choice(chosen))}
    return pairs


def _tuples(pairs: set[Pair]) -> list[tuple[str, int, int, str, int, int]]:
    return [(a[0], a[1], 1, b[0], b[1], 1) for a, b in sorted(pairs)]


def _content(pairs: set[Pair], results: list[Id]) -> dict[str, list[dict[str, Any]]]:
    ids = {each for pair in pairs for each in pair} - set(results)
    found: dict[str, list[dict[str, Any]]] = {}
    for stream, a in [*results, *sorted(ids)]:
        found.setdefault(stream, []).append(row(a, 1, segment="f", time=second(a % 60), n=a))
    return found


def _batch(
    builder: StoreBuilder, writer: str, number: int, results: list[Id], aged: Aged, capture: str
) -> None:
    pairs = {pair for each in results for pair in aged.edges[each]}
    rows = _content(pairs, results)
    if capture != "sets":
        pairs, rows = set(), {w: each for w, each in rows.items() if w == writer}
    builder.batch(writer, number, edges=_tuples(pairs), rows=rows, capture=capture)


def _unfold(builder: StoreBuilder, chance: random.Random, aged: Aged, capture: str) -> None:
    last = max(n for w, n in aged.at if w == "s")
    first = 0
    while first <= last:
        end = min(last, first + chance.randint(0, 2))
        part = f"{first:08x}" if capture == "intervals" else None
        results = [r for r, (w, n) in aged.came.items() if w == "s" and first <= n <= end]
        if results:
            unfolding(builder, first, end, part, {p for r in results for p in aged.edges[r]})
        first = end + 1


def unfolding(
    builder: StoreBuilder, first: int, last: int, part: str | None, pairs: set[Pair]
) -> None:
    name = f"{RUN}-{first:010d}-{part or f'{last:010d}'}"
    path = f"edges/s/{name}/part-0.parquet"
    builder._put_table(path, edge_table(pairs))
    files = [path]
    results = [each for each in {a for a, _ in pairs} if each[0] == "s"]
    for stream, rows in _content(pairs, []).items():
        if stream != "s" or not results:
            file = f"rows/s/{name}/{stream}/part-0.parquet"
            builder._put_table(file, row_table(rows))
            files.append(file)
    said = {"writer": "s", "run": RUN, "first": first, "last": last, "part": part, "gap": None}
    said |= {"committed": "2026-01-01T00:00:59.000000Z", "edges": len(pairs), "files": files}
    builder.put(f"unfolded/s/{name}.json", {**said, "sink_rows": None})


def edge_table(pairs: set[Pair]) -> Any:
    from store.build import _edge_table

    return _edge_table(_tuples(pairs))


def row_table(rows: list[dict[str, Any]]) -> Any:
    from store.build import _row_table

    return _row_table(rows, None)
