"""What the model returns: rows, each with the source rows behind it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from properties.row_form import Row

Ref: TypeAlias = tuple[str, int]
"""A source row: the source's name and the row's number."""

Refs: TypeAlias = frozenset[Ref]
Path: TypeAlias = tuple[int, ...]

MILLI = 1000


@dataclass(frozen=True)
class Prov:
    """The source rows of a result row, as far as Spark leaves no choice.

    A result row comes from all of `fixed`; for each entry of `one_of`, from exactly one of its
    alternatives; for each entry of `some_of`, from at least one of its sets.
    """

    fixed: Refs = frozenset()
    one_of: frozenset[tuple[Prov, ...]] = frozenset()
    some_of: frozenset[tuple[Refs, ...]] = frozenset()

    @property
    def refs(self) -> Refs:
        """One admissible answer: the first alternatives, and all of what may be several."""
        chosen = (options[0].refs for options in self.one_of)
        several = itertools.chain.from_iterable(self.some_of)
        return self.fixed.union(*chosen, *several)

    @property
    def is_exact(self) -> bool:
        """Whether there is just one admissible answer."""
        return not self.one_of and not self.some_of

    def admits(self, found: Refs) -> bool:
        """Tell whether a set of source rows is an admissible answer."""
        return found in self._within(found)

    def _within(self, found: Refs) -> set[Refs]:
        """List the admissible answers that lie inside `found`.

        Where several rows may be named, naming all of them that were found is enough to look at:
        any smaller choice covers less of `found`.
        """
        several = [[s for s in options if s <= found] for options in self.some_of]
        if not self.fixed <= found or not all(several):
            return set()
        answers = {self.fixed.union(*itertools.chain.from_iterable(several))}
        for options in self.one_of:
            inside: set[Refs] = set().union(*(option._within(found) for option in options))
            answers = {answer | one for answer in answers for one in inside}
        return answers


def all_of(provs: Iterable[Prov]) -> Prov:
    parts = list(provs)
    return Prov(
        frozenset().union(*(p.fixed for p in parts)),
        frozenset().union(*(p.one_of for p in parts)),
        frozenset().union(*(p.some_of for p in parts)),
    )


def any_of(provs: Iterable[Prov]) -> Prov:
    options = tuple(dict.fromkeys(provs))
    return options[0] if len(options) == 1 else Prov(one_of=frozenset([options]))


@dataclass(frozen=True)
class World:
    """A row exists only if Spark's free choices went one way.

    `slot` names the place where Spark chooses; `path` the choices made there, one after the other.
    """

    slot: tuple[Any, ...]
    path: Path


@dataclass(frozen=True)
class ModelRow:
    """A row that Spark returns, or may return, and where it comes from."""

    values: Row
    prov: Prov
    world: World | None = None

    @property
    def refs(self) -> Refs:
        """One admissible answer for the row's source rows."""
        return self.prov.refs


@dataclass(frozen=True)
class MicroBatch:
    """What one micro-batch returns. `watermark_ms` is the one it evicts with."""

    number: int
    watermark_ms: int
    has_data: bool
    rows: tuple[ModelRow, ...]


@dataclass(frozen=True)
class Model:
    """Everything that a pipeline returns.

    Rows with a `world` are alternatives: for each slot in `leaves`, one of its paths was taken, and
    the rows whose own path begins that path exist.
    """

    rows: tuple[ModelRow, ...]
    leaves: Mapping[tuple[Any, ...], tuple[Path, ...]]
    batches: tuple[MicroBatch, ...] = ()
