"""The nouns of an answer: row ids, edges and when those come, in plain Python.

A row id is a stream's name and two signed 64-bit integers, whatever the row is: for a source
row the segment and the position in it, for a derived row a hash of what it was derived from.
Everything that stores, compares or prints ids goes through here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Exactness = Literal["exact", "superset", "coarse"]
"""How an answer relates to the rows that really contributed.

`exact`: just those. `superset`: those and perhaps more. `coarse`: a declared unit such as a
whole group or partition, because a function hides what happens inside it.
"""

Status = Literal["alive", "expired"]
"""Whether a row may still take part in results that do not exist yet."""


class EdgesCome(Enum):
    """When the edges of a batch's rows are in the store."""

    WITH_THE_BATCH = "with the batch"
    BEHIND_IT = "behind it"
    WHEN_ASKED = "when asked"


EDGES_COME: Mapping[str, EdgesCome] = MappingProxyType(
    {
        "sets": EdgesCome.WITH_THE_BATCH,
        "pointers": EdgesCome.BEHIND_IT,
        "intervals": EdgesCome.WHEN_ASKED,
        "keys": EdgesCome.WHEN_ASKED,
        "reduced": EdgesCome.WITH_THE_BATCH,
    }
)
"""The captures that a store's files may name: a file that names another is refused."""

UNNAMED = "sets"
"""The capture of a batch whose file names none: its edges came with it."""


class GapKind(Enum):
    """Why the store lacks edges of a batch, for programs; `Gap.reason` says it to people."""

    NOT_COMMITTED = "not committed"
    NOT_HERE = "not here"
    NOT_ENDED = "not ended"
    NOT_WRITTEN = "not written"
    PRUNED = "pruned"
    NOT_UNFOLDED = "not unfolded"
    WHEN_ASKED = "when asked"
    NOT_COMPUTED = "not computed"
    ONE_ID = "one id"

    @property
    def is_pending(self) -> bool:
        """Whether nothing is wrong: the edges are still to be computed, and can be."""
        return self in (GapKind.NOT_UNFOLDED, GapKind.WHEN_ASKED)


_HEX_ID = re.compile(r"[0-9a-f]{32}")
_WRAP = 1 << 64
_SIGN = 1 << 63


def _signed(value: int) -> int:
    return value - _WRAP if value >= _SIGN else value


@dataclass(frozen=True, order=True, slots=True)
class RowId:
    """The identity of one row, the same on every read.

    Examples:
        >>> RowId("stopped", 255, -1).text
        '00000000000000ffffffffffffffffff'
        >>> RowId.from_text("stopped", "00000000000000ffffffffffffffffff").b
        -1
    """

    stream: str
    a: int
    b: int

    @property
    def text(self) -> str:
        """The id as 32 hexadecimal digits, without the stream."""
        return f"{self.a % _WRAP:016x}{self.b % _WRAP:016x}"

    @classmethod
    def from_text(cls, stream: str, text: str) -> RowId:
        """Read an id from 32 hexadecimal digits.

        Raises:
            ValueError: The text is not an id.
        """
        if not _HEX_ID.fullmatch(text):
            msg = f"a row id is 32 hexadecimal digits; got {text!r}"
            raise ValueError(msg)
        return cls(stream, _signed(int(text[:16], 16)), _signed(int(text[16:], 16)))

    def __str__(self) -> str:
        return f"{self.stream}/{self.text}"


@dataclass(frozen=True, order=True, slots=True)
class Edge:
    """One contribution: the source row is part of what made the sink row."""

    sink: RowId
    source: RowId
