"""Columns whose values the store does not get.

A mask says by name which columns of a query are kept otherwise than they are: `drop` leaves a
column out, `redact` keeps `***`, `hash` keeps a hash with a key of the store, so that equal values
can still be told to be equal. It holds for every frame of the query: sources, named frames, steps
that are recorded, results. Only what is kept of rows changes; ids, edges, times and the user's own
sink are made from the values themselves. The sources of a pipeline know the mask, as they know the
secret; whatever packs content asks `current_mask`.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from clew.exceptions import WriterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from clew.plan.secret import Secret

Way = Literal["drop", "hash", "redact"]
REDACTED = "***"


@dataclass(frozen=True, slots=True)
class Mask:
    """What is not kept as it is.

    Attributes:
        columns: Names in lower case, each with what becomes of the column.
        literals: Leave the literals of expressions out of what is stored of the pipeline.
        key: What values are hashed with; empty until the pipeline belongs to a store.
    """

    columns: tuple[tuple[str, Way], ...] = ()
    literals: bool = False
    key: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.columns) or self.literals

    def way(self, name: str) -> Way | None:
        """Say what becomes of a column; names that differ only in case are one."""
        return dict(self.columns).get(name.lower())

    def hides(self, names: Iterable[str]) -> list[str]:
        """List the columns that are not kept as they are."""
        return [name for name in names if self.way(name) is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return it as the store has it."""
        return {"columns": dict(self.columns), "literals": self.literals}

    def keyed(self, secret: Secret) -> Mask:
        """Return the same mask with the key of a store."""
        key = hashlib.sha256(f"mask {secret.to_hex()}".encode()).hexdigest()
        return replace(self, key=key)


NOTHING = Mask()


def mask_from(said: Mapping[str, Any] | None) -> Mask:
    """Read what `to_dict` wrote; nothing is masked where nothing is said."""
    if not said:
        return NOTHING
    return Mask(tuple(sorted(said["columns"].items())), bool(said["literals"]))


def read_mask(columns: Iterable[str] | Mapping[str, str] | None, *, literals: bool) -> Mask:
    """Read the settings `mask` and `mask_literals` of `.provenance(...)`.

    Raises:
        WriterError: A column is to become something that it cannot become.

    Examples:
        >>> read_mask(["ssn"], literals=False).columns
        (('ssn', 'drop'),)
    """
    if isinstance(columns, str):
        columns = [columns]
    ways = columns if hasattr(columns, "items") else dict.fromkeys(columns or (), "drop")
    for name, way in cast("Mapping[str, str]", ways).items():
        if way not in get_args(Way) or not isinstance(name, str) or not name:
            allowed = ", ".join(f'"{each}"' for each in get_args(Way))
            msg = f"`mask` says of each column one of {allowed}; got {way!r} for {name!r}."
            raise WriterError(msg)
    found = {name.lower(): cast("Way", way) for name, way in ways.items()}  # type: ignore[union-attr]
    return Mask(tuple(sorted(found.items())), literals)


_current: ContextVar[Mask] = ContextVar("clew_mask", default=NOTHING)


@contextmanager
def masking_with(mask: Mask) -> Iterator[None]:
    """Pack content without what a mask hides."""
    token = _current.set(mask)
    try:
        yield
    finally:
        _current.reset(token)


def current_mask() -> Mask:
    """Return the mask that content is packed under here."""
    return _current.get()
