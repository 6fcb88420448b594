"""Which rows are seen and which are counted.

Rows are grouped by the row next to them, on the side of the rows asked about: those of one window,
say. Of each group the first five are seen, by time and id, so rows that are added later do not push
others around. Rows behind rows that are not seen are not seen either.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clew.model import RowId

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from clew.show.drawing.network import Network, Numbers, Part

FIRST = 5
"""How many rows of a group are seen unless it is expanded."""

_ASKED = -1
_LOOSE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Slot:
    """One node of rows: a row that is seen, or several that are counted.

    Attributes:
        key: The node's key, the same in every drawing.
        part: The stream's rows.
        row: The row; of a group, the first that is not seen.
        count: How many rows it stands for.
        is_group: Whether it stands for rows that are not seen.
        is_asked: Whether it was asked about.
        last: Of a group, the last of its rows.
        is_rest: Of a group, whether others of it are seen.
    """

    key: str
    part: Part
    row: int
    count: int = 1
    is_group: bool = False
    is_asked: bool = False
    last: int = -1
    is_rest: bool = False


@dataclass
class Shown:
    """The nodes of rows, and which of them each row belongs to.

    Attributes:
        slots: The nodes, those nearest to the rows asked about first.
        of: For each stream, the place in `slots` of each of its rows.
    """

    slots: list[Slot] = field(default_factory=list)
    of: dict[str, Numbers] = field(default_factory=dict)


def choose(
    network: Network,
    streams: Sequence[str],
    near: int,
    most: int,
    expand: Collection[str],
) -> Shown:
    """Choose the rows to be seen.

    Args:
        network: All rows and edges.
        streams: The streams, those nearest to the rows asked about first.
        near: Which side of an edge is nearer to them: 0 the sink row, 1 the source row.
        most: At most so many nodes, at least one for each stream.
        expand: The keys of groups to show more of.
    """
    shown = Shown()
    for done, stream in enumerate(streams):
        allowed = (most - len(shown.slots)) // (len(streams) - done)
        parents = _parents(network, shown, stream, near)
        if done == 0:
            parents[network.asked] = _ASKED
        _add(shown, network.parts[stream], parents, allowed, expand)
    return shown


def _parents(network: Network, shown: Shown, stream: str, near: int) -> Numbers:
    """Find for each row of a stream the nearest node that it is connected with."""
    parents = np.full(len(network.parts[stream]), _LOOSE)
    for pair, sides in network.edges.items():
        if pair[1 - near] == stream and pair[near] in shown.of:
            np.minimum.at(parents, sides[1 - near], shown.of[pair[near]][sides[near]])
    return parents


def _add(shown: Shown, part: Part, parents: Numbers, allowed: int, expand: Collection[str]) -> None:
    order = np.lexsort((part.rank, parents))
    groups, starts, counts = np.unique(parents[order], return_index=True, return_counts=True)
    keys = [_group_key(shown, part.stream, int(each)) for each in groups]
    quotas = _quotas(shown, groups, counts, allowed, [key in expand for key in keys])
    if quotas is None:  # not even one node for each group: all are one
        order, keys = np.argsort(part.rank), [f"group:{part.stream}/"]
        groups, starts, counts = np.array([_LOOSE]), np.array([0]), np.array([len(part)])
        quotas = np.minimum(counts, max(allowed - 1, 0))
    first = len(shown.slots)
    of = np.empty(len(part), np.int64)
    asked = groups == _ASKED
    for start, quota, is_asked in zip(starts, quotas, asked, strict=True):
        for row in order[start : start + quota].tolist():
            key = f"row:{RowId(part.stream, int(part.a[row]), int(part.b[row]))}"
            of[row] = len(shown.slots)
            shown.slots.append(Slot(key, part, row, is_asked=bool(is_asked)))
    _settle(shown, first, part, of)
    for i, key in enumerate(keys):
        hidden = order[starts[i] + quotas[i] : starts[i] + counts[i]]
        if len(hidden):
            of[hidden] = len(shown.slots)
            ends = int(hidden[0]), int(hidden[-1])
            is_rest = bool(quotas[i])
            slot = Slot(key, part, ends[0], len(hidden), True, bool(asked[i]), ends[1], is_rest)
            shown.slots.append(slot)
    shown.of[part.stream] = of


def _settle(shown: Shown, first: int, part: Part, of: Numbers) -> None:
    """Put the rows that are seen in the order of times and ids, whatever group they are of."""
    shown.slots[first:] = sorted(shown.slots[first:], key=lambda slot: int(part.rank[slot.row]))
    for place, slot in enumerate(shown.slots[first:], first):
        of[slot.row] = place


def _group_key(shown: Shown, stream: str, parent: int) -> str:
    if parent in (_ASKED, _LOOSE):
        return f"group:{stream}/" + ("asked" if parent == _ASKED else "")
    return f"group:{stream}/{shown.slots[parent].key}"


def _quotas(
    shown: Shown, groups: Numbers, counts: Numbers, allowed: int, expanded: list[bool]
) -> Numbers | None:
    """Say how many rows of each group are seen; None if the groups alone are too many."""
    is_open = np.array(
        [each in (_ASKED, _LOOSE) or not shown.slots[each].is_group for each in groups.tolist()]
    )
    for quota in range(FIRST, -1, -1):
        quotas = np.minimum(counts, np.where(is_open, quota, 0))
        left = allowed - int(quotas.sum() + (counts > quotas).sum())
        if left >= 0:
            return _expand(quotas, counts, left, expanded)
    return None


def _expand(quotas: Numbers, counts: Numbers, left: int, expanded: list[bool]) -> Numbers:
    """Give expanded groups what is left, in equal shares."""
    wanting = [i for i, each in enumerate(expanded) if each and counts[i] > quotas[i]]
    while left > 0 and wanting:
        share = max(left // len(wanting), 1)
        for i in list(wanting)[: max(left, 1)]:
            more = min(share, int(counts[i] - quotas[i]))
            quotas[i] += more
            left -= more
        wanting = [i for i in wanting if counts[i] > quotas[i]]
    return quotas
