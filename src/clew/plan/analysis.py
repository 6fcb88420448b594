"""What Spark's analyser made of an expression.

Whether an expression looks beyond its own row cannot be read off a `Column` through public API,
and SQL text or Spark Connect hide it further. But Spark's analyser must know: a window function
becomes a `Window` node, an aggregate an `Aggregate`, a generator a `Generate`, and a subquery
brings leaves of its own. So the plan of a frame is compared with the plan of its inputs, and what
is new tells what the verb did, in any spelling.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from clew.exceptions import GraphError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

_NODE = re.compile(r"^(?:[:\s]*[+:]- )?[~'!*]*(?P<name>[A-Za-z][A-Za-z0-9]*)")
_FIELDS = "spark.sql.debug.maxToStringFields"
_LOCAL = frozenset({"Project", "SubqueryAlias"})

# Each step is compared with its input, which was the step before, and a join of streams takes Spark
# a sixth of a second to explain: explain every frame once.
_texts: WeakKeyDictionary[DataFrame, str] = WeakKeyDictionary()
_known: WeakKeyDictionary[DataFrame, Counter[str]] = WeakKeyDictionary()


def explain(df: DataFrame) -> str:
    """Return what `df.explain(extended=True)` prints."""
    known = _texts.get(df)
    if known is None:
        text = io.StringIO()
        with contextlib.redirect_stdout(text), _in_full(df):
            df.explain(extended=True)
        known = _texts[df] = text.getvalue()
    return known


@contextlib.contextmanager
def _in_full(df: DataFrame) -> Iterator[None]:
    """Have Spark print all columns of a step, of which it leaves out all but 25."""
    conf = df.sparkSession.conf
    before = conf.get(_FIELDS, None)
    conf.set(_FIELDS, str(2**31 - 1))
    try:
        yield
    finally:
        if before is None:
            conf.unset(_FIELDS)
        else:
            conf.set(_FIELDS, before)


def analysed(text: str) -> list[str]:
    """Cut the lines of the analysed plan out of what `explain` returned."""
    _, _, rest = text.partition("== Analyzed Logical Plan ==\n")
    plan, _, _ = rest.partition("\n== Optimized Logical Plan ==")
    lines = plan.split("\n")
    # The first line is the schema; a schema may break lines only inside odd column names.
    return [line for line in lines[1:] if line.strip()]


def optimized(text: str) -> list[str]:
    """Cut the lines of the optimized plan out of what `explain` returned."""
    _, _, rest = text.partition("== Optimized Logical Plan ==\n")
    plan, _, _ = rest.partition("\n== Physical Plan ==")
    return [line for line in plan.split("\n") if line.strip()]


def operators(df: DataFrame) -> Counter[str]:
    """Count the operators in a frame's analysed plan."""
    known = _known.get(df)
    if known is None:
        matches = (_NODE.match(line) for line in analysed(explain(df)))
        known = _known[df] = Counter(match["name"] for match in matches if match)
    return known


@dataclass(frozen=True, slots=True)
class Change:
    """What a verb added to the plan."""

    added: Counter[str]

    @property
    def is_row_wise(self) -> bool:
        """Each output row comes from its own input row, one to one."""
        return set(self.added) <= _LOCAL

    @property
    def multiplies(self) -> bool:
        """One input row may give several output rows, or none, and nothing else happens."""
        # `window` drops rows without an event time; if windows are side by side, it does no more.
        kinds = {"Generate", "Expand", "Filter"}
        return bool(kinds & set(self.added)) and set(self.added) <= _LOCAL | kinds

    def beyond(self, allowed: Sequence[str] = ()) -> list[str]:
        """List the new operators that are neither row-wise nor allowed, by name."""
        return sorted(set(self.added) - _LOCAL - set(allowed))


def change(df: DataFrame, *inputs: DataFrame) -> Change:
    """Compare a frame's plan with the plans of its inputs.

    Raises:
        GraphError: The plan text was cut, so it cannot be trusted.
    """
    after = operators(df)
    before: Counter[str] = Counter()
    for each in inputs:
        before += operators(each)
    if before - after:
        msg = (
            "cannot read the plan that Spark made of this step: its text is shorter than that of "
            "its input. This happens when `spark.sql.maxPlanStringLength` is set low.\n\n"
            'Write `spark.conf.unset("spark.sql.maxPlanStringLength")` before the pipeline is '
            "built."
        )
        raise GraphError(msg)
    return Change(after - before)


_DESCRIPTIONS = {
    "Window": "a window function (`over`)",
    "WithWindowDefinition": "a window function (`over`)",
    "Aggregate": "an aggregate outside `agg`",
    "Generate": "a generator such as `explode`",
    "Expand": "an expression that makes several rows of one",
}


def describe(names: Sequence[str]) -> str:
    """Say in words what the plan shows."""
    known = [_DESCRIPTIONS[name] for name in names if name in _DESCRIPTIONS]
    return known[0] if known else f"a subquery (`{names[0]}` in Spark's plan)"
