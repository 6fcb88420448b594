"""What a case of the proof is: a name, and what is wrong with it if anything."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from clew.testing import Traced


@dataclass(frozen=True)
class Outcome:
    """One checked case; `wrong` is empty if it holds."""

    name: str
    wrong: str = ""


@dataclass(frozen=True)
class Setting:
    """What every part of the proof gets."""

    spark: SparkSession
    folder: Path
    quick: bool
    seed: int


def check(name: str, test: Callable[..., str], *args: Any) -> Outcome:
    """Run one check; an exception is a wrong answer too."""
    try:
        return Outcome(name, test(*args))
    except Exception:
        return Outcome(name, traceback.format_exc())


def frozen(value: Any) -> Any:
    """Make a value comparable whatever it is: structs as tuples of pairs, lists as tuples."""
    if isinstance(value, dict):
        return tuple((k, frozen(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(frozen(v) for v in value)
    return value


def difference(expected: Iterable[Any], found: Iterable[Any]) -> str:
    """Say what is missing and what is too much; empty if nothing is."""
    left, right = Counter(expected), Counter(found)
    if left == right:
        return ""
    missing, extra = list((left - right).elements()), list((right - left).elements())
    shown = [f"missing: {m}" for m in missing[:5]] + [f"too much: {e}" for e in extra[:5]]
    return "\n".join([f"{left.total()} expected, {right.total()} found", *shown])


def labelled(traces: Iterable[Traced], label: str) -> Iterator[tuple[Any, frozenset[Any]]]:
    """Pair each result with the labels of its source rows."""
    for trace in traces:
        yield frozen(trace.values), frozenset(ref for _, ref in trace.refs(label))
