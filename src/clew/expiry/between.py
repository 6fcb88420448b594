"""How far apart in time the two rows of a stream join may be.

Spark itself reads that off the join's condition to know what to keep in state, but does not tell.
So the condition is read here as well, from the text of the optimized plan, where `between` and
`not` have become plain comparisons: each of the two sides' event times bounds their difference on
one side.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.plan.analysis import analysed, explain, optimized

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.plan.node import Node

_ATTRIBUTE = r"(?P<{0}>[^\s()]+#\d+)(?:-T\d+ms)?"
_TERM = (
    r"(?:cast\()?\(?"
    + _ATTRIBUTE
    + r"(?: (?P<{0}_sign>[+-]) INTERVAL (?P<{0}_by>'[^']*' [A-Z ]+))?\)?(?: as timestamp\))?"
)
_COMPARISON = re.compile(_TERM.format("first") + r" (?P<op><=|>=|<|>|=) " + _TERM.format("second"))
_OPPOSITE = {"<=": ">=", ">=": "<=", "<": ">", ">": "<", "=": "="}
_MARKED = re.compile(r"[^\s(),\[\]]+#\d+")
_SECONDS = {"DAY": 86_400.0, "HOUR": 3_600.0, "MINUTE": 60.0, "SECOND": 1.0}


@dataclass(frozen=True, slots=True)
class Between:
    """The least and the most by which a right row may be later than a left one, in microseconds.

    None where nothing bounds it.
    """

    low: int | None
    high: int | None

    @property
    def width(self) -> int | None:
        """For how long, in event time, a row may find partners: the larger of all distances."""
        if self.low is None or self.high is None:
            return None
        return max(self.high - self.low, self.high, -self.low, 0)


def between(node: Node) -> Between:
    """Read the bounds of a join of two streams."""
    pairing = node.operator.facts.pairing
    assert pairing is not None
    assert pairing.times is not None
    left, right = pairing.times
    if left in pairing.names and right in pairing.names:
        return Between(0, 0)
    first = set(_MARKED.findall("\n".join(analysed(explain(node.inputs[0].plain.df)))))
    lows: list[int] = []
    highs: list[int] = []
    for one, op, other, by in _comparisons(_condition(node)):
        if not (one in first) ^ (other in first):
            continue
        names = (one, other) if one in first else (other, one)
        if tuple(name.split("#")[0].split(".")[-1] for name in names) != (left, right):
            continue
        if one in first:
            # left op right + by, so right - left is bounded by -by the other way round.
            _take(_OPPOSITE[op], -by, lows, highs)
        else:
            _take(op, by, lows, highs)
    return Between(max(lows, default=None), min(highs, default=None))


def _take(op: str, by: int, lows: list[int], highs: list[int]) -> None:
    """Note that right - left `op` by."""
    if op in (">=", ">", "="):
        lows.append(by)
    if op in ("<=", "<", "="):
        highs.append(by)


def _condition(node: Node) -> str:
    """Cut the condition of the outermost join out of the plan."""
    for line in optimized(explain(node.plain.df)):
        found = re.match(r"^[:\s+~-]*Join \w+, (.*)$", line)
        if found:
            return found[1]
    return ""


def _comparisons(text: str) -> Iterator[tuple[str, str, str, int]]:
    """Yield (one, op, other, by) for each comparison `one op other + by` that must hold."""
    for part in _conjuncts(text):
        found = _COMPARISON.fullmatch(part)
        if found is None:
            continue
        one, other = (
            _micros(found[f"{side}_by"], found[f"{side}_sign"]) for side in ("first", "second")
        )
        if one is None or other is None:
            continue
        yield found["first"], found["op"], found["second"], other - one


def _conjuncts(text: str) -> list[str]:
    """Take a condition apart at each AND that must hold."""
    inner = _unwrapped(text.strip())
    depth, start, parts = 0, 0, []
    for i, char in enumerate(inner):
        depth += (char == "(") - (char == ")")
        if depth == 0 and inner.startswith(" AND ", i):
            parts.append(inner[start:i])
            start = i + len(" AND ")
    if not parts:
        return [inner]
    return [each for part in (*parts, inner[start:]) for each in _conjuncts(part)]


def _unwrapped(text: str) -> str:
    while text.startswith("(") and text.endswith(")"):
        depth = 0
        for i, char in enumerate(text):
            depth += (char == "(") - (char == ")")
            if depth == 0 and i < len(text) - 1:
                return text
        text = text[1:-1]
    return text


def _micros(interval: str | None, sign: str | None) -> int | None:
    """Read an interval as Spark writes it: `'20' SECOND`, `'01:30' MINUTE TO SECOND`."""
    if interval is None:
        return 0
    value, _, units = interval[1:].partition("' ")
    first, _, last = units.strip().partition(" TO ")
    names = list(_SECONDS)
    if first not in names or (last or first) not in names:
        return None
    wanted = names[names.index(first) : names.index(last or first) + 1]
    numbers = _numbers(value)
    if len(numbers) != len(wanted):
        return None
    seconds = sum(number * _SECONDS[unit] for number, unit in zip(numbers, wanted, strict=True))
    negative = value.startswith("-") != (sign == "-")
    return round((-1 if negative else 1) * seconds * 1_000_000)


def _numbers(value: str) -> Sequence[float]:
    return [float(part) for part in re.split(r"[ :]", value.lstrip("-"))]
