"""Worked examples of Big Provenance: counting hashtags, reductions, what goes wrong too early.

The text names vertices and what becomes of them; the tweets of Figure 2 stand in a figure that we
do not have, so there are two here, and `c` is in both, since its count is 2.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

Edge = tuple[str, str]


class Execution(NamedTuple):
    activity: str
    used: tuple[str, ...]
    generated: tuple[str, ...]


HASHTAGS = (
    Execution("M1", ("tweets/1",), ("pairs/a1", "pairs/c1")),
    Execution("M2", ("tweets/2",), ("pairs/b2", "pairs/c2")),
    Execution("R1", ("pairs/a1",), ("counts/a",)),
    Execution("R2", ("pairs/b2",), ("counts/b",)),
    Execution("R3", ("pairs/c1", "pairs/c2"), ("counts/c",)),
)
"""Figures 2 and 3: each line goes to a map function, each hashtag to a reduce function."""

REDUCED: set[Edge] = {
    ("counts/a", "tweets/1"),
    ("counts/b", "tweets/2"),
    ("counts/c", "tweets/1"),
    ("counts/c", "tweets/2"),
}
"""Figure 4: backward of `c : 2` is both tweets, forward of the first one is `a` and `c`."""

SPLIT = Execution("f", ("i1", "i2", "i3"), ("o1", "o2"))
"""Figure 8: an execution that must not be split over two partitions."""
SPLIT_PARTS = (Execution("f", ("i1", "i2"), ("o1",)), Execution("f", ("i3",), ("o2",)))

EARLY = Execution("f", ("i1",), ("o1", "o2"))
"""Figure 11: at t2 there is all for o1, and o2 comes at t3."""


class Rule(NamedTuple):
    figure: str
    before: list[Edge]
    after: set[Edge]


RULES = (
    Rule(
        "Section IV-A, a local state",
        [("v1", "v2"), ("v2", "v3"), ("v5", "v6")],
        {("v1", "v3"), ("v5", "v6")},
    ),
    Rule(
        "Figure 7, through the source vertex of a new edge",
        [("v1", "v3"), ("v2", "v3"), ("v3", "v4")],
        {("v1", "v4"), ("v2", "v4")},
    ),
    Rule(
        "lines 13 to 18 of the algorithm, through its destination",
        [("v2", "v3"), ("v2", "v4"), ("v1", "v2")],
        {("v1", "v3"), ("v1", "v4")},
    ),
)


def lines(job: Iterable[Execution], name: str) -> list[str]:
    """Publish each edge as a line: what was used, then what was generated."""
    return [
        json.dumps({"prov": prov, "activity": each.activity, "entity": thing, "job": name})
        for each in job
        for prov, things in (("used", each.used), ("wasGeneratedBy", each.generated))
        for thing in things
    ]


def derived(edges: Iterable[Edge], name: str) -> list[str]:
    """Publish edges between things as lines."""
    said = [{"prov": "wasDerivedFrom", "generatedEntity": o, "usedEntity": i} for o, i in edges]
    return [json.dumps({**each, "job": name}) for each in said]


def groups(job: Iterable[Execution], name: str) -> list[str]:
    """Publish each execution as a group."""
    return [json.dumps({"prov": "group", **each._asdict(), "job": name}) for each in job]
