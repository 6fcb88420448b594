"""Two results side by side: the source rows they share, and those that only one is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clew import show
from clew.ask.row import Content, Rows
from clew.ask.trace import one_of
from clew.store.records import worst

if TYPE_CHECKING:
    from clew.ask.row import Row
    from clew.ask.trace import Trace
    from clew.model import Exactness, RowId

_SHOWN = 20


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """What two rows of a stream were made from, compared.

    Attributes:
        stream: The stream of both.
        left: The one row.
        right: The other.
        common: The source rows that both were made from.
        only_left: Those of the one alone.
        only_right: Those of the other alone.
        exactness: How far the answers behind it can be trusted.
        complete: No missing batch could add to either.
    """

    stream: str
    left: Row
    right: Row
    common: Rows
    only_left: Rows
    only_right: Rows
    exactness: Exactness
    complete: bool

    def to_dict(self, limit: int | None = None) -> dict[str, Any]:
        """Return the comparison as plain data that JSON can hold.

        Args:
            limit: At most so many rows of each part; None for all. `counts` has all.
        """
        parts = self._parts()
        return {
            "stream": self.stream,
            "left": self.left.to_dict(),
            "right": self.right.to_dict(),
            **{name: [row.to_dict() for row in rows[:limit]] for name, rows in parts.items()},
            "counts": {name: len(rows) for name, rows in parts.items()},
            "exactness": self.exactness,
            "complete": self.complete,
        }

    def lines(self, limit: int | None = _SHOWN, hint: str = "") -> list[show.Line]:
        """Show the comparison: a sentence, then the rows of each part.

        Args:
            limit: At most so many rows of each part; None for all.
            hint: What to say behind the number of rows left out.
        """
        one, other = self.left.label, self.right.label
        counts = [show.count(len(rows), "source row") for rows in self._parts().values()]
        text = (
            f"Rows {one} and {other} of `{self.stream}`: {counts[0]} in common, {counts[1]} only "
            f"behind the first, {counts[2]} only behind the second."
        )
        lines = [show.Line("headline", show.escape(text))]
        titles = ("in common", f"only behind {one}", f"only behind {other}")
        for title, rows in zip(titles, self._parts().values(), strict=True):
            if len(rows):
                lines += [show.Line("note", ""), show.Line("note", show.escape(f"{title}:"))]
                lines += rows.lines(limit, hint)
        lines += [show.Line("note", ""), show.Line("note", f"exactness: {self.exactness}")]
        if not self.complete:
            text = "incomplete: the provenance of some batches is missing"
            lines.append(show.Line("warning", text))
        return lines

    def __repr__(self) -> str:
        return show.join(self.lines())

    def _parts(self) -> dict[str, Rows]:
        return {
            "common": self.common,
            "only_left": self.only_left,
            "only_right": self.only_right,
        }


def compare(left: Trace, right: Trace) -> Comparison:
    """Compare what two rows were made from.

    Raises:
        QueryError: A trace is of several rows.
    """
    behind_left, behind_right = _ids(left), _ids(right)
    return Comparison(
        stream=left.stream,
        left=one_of(left),
        right=one_of(right),
        common=_kept(left, behind_right, inside=True),
        only_left=_kept(left, behind_right, inside=False),
        only_right=_kept(right, behind_left, inside=False),
        exactness=worst([left.exactness, right.exactness]),
        complete=left.complete and right.complete,
    )


def _ids(trace: Trace) -> set[RowId]:
    return {each for content in trace.rows.contents for each in content.ids()}


def _kept(trace: Trace, others: set[RowId], *, inside: bool) -> Rows:
    """Keep the rows of a trace that are, or are not, among others."""
    contents = []
    for each in trace.rows.contents:
        mask = pa.array([(row in others) == inside for row in each.ids()], pa.bool_())
        contents.append(Content(each.stream, each.table.filter(mask), each.numbered))
    return Rows(contents)
