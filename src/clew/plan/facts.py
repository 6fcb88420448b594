"""What a step says of itself: what becomes of rows, how long it keeps them, what it rests on.

Each operator states its facts in one object, and whoever needs to know something of a step asks for
them and names no operator: the bound U, how far around a result one must read, what can be computed
again, which trials may share a job. So a new operator touches its own file, and what it does not
say is taken as the worst: it keeps rows for ever, chooses anew each time, and rests on everything.
Facts are asked for again and again, so nothing in them asks Spark: columns stand there as given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column


class Rows(Enum):
    """What becomes of the rows that a step is given."""

    EACH = "each"
    """Each is looked at by itself: it is handed on, dropped, or made into one row or several."""
    PAIRED = "paired"
    """Each is put beside rows of the other input."""
    CHOSEN = "chosen"
    """Some are handed on, by what other rows there are."""
    GATHERED = "gathered"
    """Of a number of them, that only the data decides, comes one."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AtOnce:
    """A stream's row is handed on when it comes, or never."""


@dataclass(frozen=True, slots=True)
class UntilPassed:
    """A row is kept until the watermark has passed a time of it, and refused from then on.

    Attributes:
        time: The time, or the window, over the columns of the input, as the user gave it.
        column: The column that holds it afterwards.
    """

    time: Column | str
    column: str


@dataclass(frozen=True, slots=True)
class For:
    """A row is kept until the watermark is so far beyond it, and refused from then on.

    Attributes:
        micros: How far.
        column: The column that holds the moment of a result.
    """

    micros: int
    column: str


@dataclass(frozen=True, slots=True)
class UntilMet:
    """A row is kept for as long as a row of the other stream may meet it.

    Attributes:
        times: The column of each input that is compared; None where there is none.
    """

    times: tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class WithTables:
    """A stream's row is handed on at once; a row of a table meets whatever comes."""


@dataclass(frozen=True, slots=True)
class WithoutWindow:
    """Rows are kept for ever, since nothing closes a group."""


@dataclass(frozen=True, slots=True)
class WithoutEnd:
    """Rows are kept for ever, or nobody knows how long.

    Attributes:
        why: What makes it so; None if the step does not say.
    """

    why: str | None = None


Keeps = AtOnce | UntilPassed | For | UntilMet | WithTables | WithoutWindow | WithoutEnd


@dataclass(frozen=True, slots=True)
class Pairing:
    """How the rows of two inputs are put beside each other.

    Attributes:
        how: Which rows without a partner are there as well, in Spark's word.
        times: The column of each input that a join of two streams compares; None for other joins.
        names: The columns that both inputs have, where the condition is that they are equal.
        on: The condition, or the names, as the user gave it.
    """

    how: str
    times: tuple[str | None, str | None] | None
    names: tuple[str, ...]
    on: Any

    @property
    def waits(self) -> bool:
        """Whether rows of two streams wait for each other."""
        return self.times is not None

    @property
    def drops_partners(self) -> bool:
        """Whether rows without a partner, or without their partner, may come out."""
        return self.how not in ("inner", "cross")


@dataclass(frozen=True, slots=True)
class Watermark:
    """A watermark that a step puts on a column, and how long it waits for late rows."""

    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of one step; what is left out is the careful answer.

    Attributes:
        rows: What becomes of rows.
        keeps: For how long a step of a stream keeps a row.
        has_state: A step of a stream knows in a batch what came in those before.
        every: Each row comes out again, as one row.
        closes: With state, it waits for the watermark to pass rows, and drops those that are late.
        repeats: The same rows give the same rows once more.
        first_come: Why rows of a stream that are computed again may be others, if arrival decides.
        rests_on_others: Rows that are behind no result may decide what results there are.
        hands_over_groups: A function of the user's gets whole groups, in any order of their rows.
        evaluates: It may hold expressions of the user's, and functions in them.
        aggregates: Aggregate functions make its columns.
        of_nothing: In batch it may give a row that comes from no row.
        breaks_ties: Which of two rows comes first may be another the next time, and shows.
        grows: How long it keeps a row depends on the rows that come after.
        keeps_apart: Rows with other numbers are told apart by it, so that trials can share a job.
        rests_on_past: Which rows make a row may depend on all that came before them.
        by_condition: Only a condition says which rows made which; nothing can be carried through.
        watermark: The watermark that it puts on a column.
        pairing: How it pairs rows.
    """

    rows: Rows = Rows.UNKNOWN
    keeps: Keeps = WithoutEnd()
    has_state: bool = True
    every: bool = False
    closes: bool = False
    repeats: bool = False
    first_come: str | None = "which of its rows come first is not known"
    rests_on_others: bool = True
    hands_over_groups: bool = True
    evaluates: bool = True
    aggregates: bool = False
    of_nothing: bool = False
    breaks_ties: bool = True
    grows: bool = True
    keeps_apart: bool = False
    rests_on_past: bool = True
    by_condition: bool = False
    watermark: Watermark | None = None
    pairing: Pairing | None = None


def stated(rows: Rows, keeps: Keeps, **facts: Any) -> Facts:
    """State the facts of a step that is well known: what is left out does not hold for it.

    Args:
        rows: What becomes of rows.
        keeps: For how long it keeps them.
        facts: What else is to be said of it.
    """
    known: dict[str, Any] = {
        "repeats": True,
        "first_come": None,
        "rests_on_others": False,
        "hands_over_groups": False,
        "evaluates": False,
        "breaks_ties": False,
        "grows": False,
        "rests_on_past": False,
    }
    return Facts(rows, keeps, **{**known, **facts})


EACH = stated(Rows.EACH, AtOnce(), has_state=False, keeps_apart=True)
"""A step that looks at each row by itself, and at nothing else."""

ONE_FOR_ONE = replace(EACH, every=True)
"""One that hands on each row, as one."""
