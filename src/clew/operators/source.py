"""Where rows come in: a source row stands for itself.

Its id is computed behind the filters that follow: the path of a file goes through SHA-256, and
Spark moves no filter on the event time below its watermark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from clew.plan.facts import EACH, Facts
from clew.plan.node import Annotated
from clew.sources.identity import ClewIdentity, may_repeat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from clew.model import Exactness
    from clew.plan.algebra import Capture, Origin
    from clew.plan.made import Made
    from clew.plan.node import Node
    from clew.sources.reread import Again


@dataclass(frozen=True, slots=True)
class Source:
    """A DataFrame that the user wrapped with `clew.trace`.

    Attributes:
        origin: What a capture method sees of it.
        df: Its rows.
        again: How it is read a second time, or why it can not be.
        settings: Those of the session when it was traced, as far as results depend on them.
    """

    origin: Origin
    df: DataFrame
    again: Again | str = "nothing is known of it"
    settings: Mapping[str, str] | None = field(default=None, compare=False)
    kind: ClassVar[str] = "source"
    facts: ClassVar[Facts] = EACH

    @property
    def exactness(self) -> Exactness:
        """Without contents nobody sees that rows share an id: the answer then names all of them."""
        origin = self.origin
        if origin.keep_content or isinstance(origin.identity, ClewIdentity):
            return "exact"
        return "superset" if may_repeat(origin.identity, self.df) else "exact"

    @property
    def label(self) -> str:
        return self.origin.name

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        return ()

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        move = capture.at_source(self.origin)
        return Annotated(self.df, move.annotation, pending=move)
