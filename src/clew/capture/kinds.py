"""What the captures are, for all who must know: one object each, asked by property.

The modules beside this one say how a capture makes annotations, in moves. What its life is, from
the query to the edge, is said here: when edges come, what rows carry, what a query must give. Names
are for users and for the files of a store, and become objects at the border, by `asked_for` and
`kind_of`; nothing outside this room compares one. Spark is not needed, as a store is asked without.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Literal, get_args

from clew.exceptions import StoreError, WriterError
from clew.model import EDGES_COME, UNNAMED, EdgesCome

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.plan.algebra import Capture

CaptureName = Literal["auto", "off", "sets", "pointers", "intervals", "keys"]
"""What users write: the name of a capture, or `auto`, which leaves the choice to clew."""


class Need(Enum):
    """What a query must give to a capture; `clew.again.choose` finds out whether it does."""

    ROWS_AT_HAND = "the rows behind a result are at hand when it is made"
    STEPS_TO_POINT_AT = "a pointer at a step says which rows it means"
    SAME_GROUPS_AGAIN = "what lies below its aggregations is the same when computed again"
    SAME_ROWS_AGAIN = "all of it is the same when computed again"


def _carries_nothing() -> Capture:
    from clew.plan.off import OFF as MOVES

    return MOVES


def _carries_sets() -> Capture:
    from clew.capture.sets import SETS as MOVES

    return MOVES


def _carries_pointers() -> Capture:
    from clew.capture.pointers import PointersCapture

    return PointersCapture()


def _carries_intervals() -> Capture:
    from clew.capture.intervals import INTERVALS as MOVES

    return MOVES


def _carries_keys() -> Capture:
    from clew.capture.keys import KEYS as MOVES

    return MOVES


@dataclass(frozen=True, slots=True)
class CaptureKind:
    """A capture, as those see it who run a query, keep its provenance or ask for it.

    Attributes:
        name: What users and the files of a store call it.
        needs: What a query must give for it, in the order in which a refusal names it.
        carries_ids: Rows have ids; without them nothing can be asked.
        carries_sources: A row brings the source rows behind it, with their content, through Spark's
            state; the others bring a few numbers.
        spans_from_result: The span of a result is told by the result's own columns.
        needs_stored_rows: The store must have the results themselves for edges to be computed.
        keeps_points: A source that cannot be read again is kept by a connection point.
        of_jobs: Edges come from what jobs of other systems published, not from a query.
    """

    name: str
    needs: tuple[Need, ...] = ()
    carries_ids: bool = True
    carries_sources: bool = False
    spans_from_result: bool = False
    needs_stored_rows: bool = True
    keeps_points: bool = False
    of_jobs: bool = False
    _moves: Callable[[], Capture] = field(default=_carries_nothing, repr=False)

    @property
    def edges_come(self) -> EdgesCome | None:
        """When edges are in the store; None if none ever are."""
        return EDGES_COME.get(self.name)

    @property
    def reads_again(self) -> bool:
        """Whether sources must be readable again, since edges are computed later."""
        return self.edges_come in (EdgesCome.BEHIND_IT, EdgesCome.WHEN_ASKED)

    @property
    def fits_one_pass(self) -> bool:
        """Whether a batch can be stored as it is computed: its rows need no second look."""
        return not self.carries_sources

    def moves(self) -> Capture:
        """Return the moves that make annotations; this one needs Spark."""
        return self._moves()


OFF = CaptureKind("off", carries_ids=False, _moves=_carries_nothing)
SETS = CaptureKind("sets", needs=(Need.ROWS_AT_HAND,), carries_sources=True, _moves=_carries_sets)
POINTERS = CaptureKind(
    "pointers",
    needs=(Need.STEPS_TO_POINT_AT, Need.SAME_GROUPS_AGAIN),
    keeps_points=True,
    _moves=_carries_pointers,
)
INTERVALS = CaptureKind("intervals", needs=(Need.SAME_ROWS_AGAIN,), _moves=_carries_intervals)
KEYS = CaptureKind(
    "keys",
    needs=(Need.SAME_ROWS_AGAIN,),
    spans_from_result=True,
    needs_stored_rows=False,
    _moves=_carries_keys,
)
REDUCED = CaptureKind("reduced", of_jobs=True)

KINDS = {each.name: each for each in (OFF, SETS, POINTERS, INTERVALS, KEYS, REDUCED)}
"""Every capture, by its name."""


def asked_for(name: CaptureName) -> CaptureKind | None:
    """Return the capture that a user names; None for `auto`.

    Raises:
        WriterError: There is no such capture.
    """
    if name not in get_args(CaptureName):
        known = ", ".join(f'"{each}"' for each in get_args(CaptureName))
        msg = f"`capture` is one of {known}; got {name!r}."
        raise WriterError(msg)
    return None if name == "auto" else KINDS[name]


def kind_of(name: str | None) -> CaptureKind:
    """Return the capture that a store's file names; one that names none has its edges.

    Raises:
        StoreError: There is no such capture.
    """
    found = KINDS.get(UNNAMED if name is None else name)
    if found is None:
        known = ", ".join(f"`{each}`" for each in KINDS)
        msg = f"there is no capture `{name}`; clew knows {known}."
        raise StoreError(msg)
    return found
