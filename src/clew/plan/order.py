"""What a query decides by values that depend on the order in which rows came.

`first`, `collect_list`, `max_by` with ties, a sum of floating-point numbers: computed again over
the same rows they may give something else, since Spark reads rows in another order. That does no
harm where the value is only shown. It does where something is decided by it: a group's key, a
filter, a join, which rows are distinct. `Decisions` follows such values through an analysed plan,
in which each column has a number of its own (`f#9`), from the aggregate that made them to the steps
that use them.

There is a second, weaker kind: values that are equal for Spark without being the same, 0.0 and -0.0
or `a` and `A` under a collation. Which of them a group keeps depends on the order, too. Comparing
or grouping them gives the same; what looks deeper, such as a cast to a string, does not.

The text of a plan has literals without quotes, so it can not always be taken apart. Then all
columns of the line are taken together, or the step is taken to decide by what it gets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import types as T

from clew.plan.functions import ANY_ORDER, BY_ORDER, BY_TYPE, SORTED_BY, is_known

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_LINE = re.compile(r"^(?P<depth>(?::  |   )*)[+:]- (?P<text>.*)$", re.DOTALL)
_STEP = re.compile(r"^[~'!*]*(?P<name>[A-Za-z]\w*)")
_NUMBER = re.compile(r"#(\d+)L?(?!\d)")
_DELAY = re.compile(r"(#\d+L?)-T\d+ms\b")  # how a plan marks a column with a watermark
_ITEM = re.compile(r"#(\d+)L?$")
_NAMED = re.compile(r"(?:^|[\s(])([^\s(),\[\]]+)#(\d+)L?$")
_CALL = re.compile(r"([A-Za-z_][\w$]*)\($")
_HARMLESS = re.compile(
    r"\bcast\(([^()]*#\d+L?) as (?:double|float|tinyint|smallint|int|bigint|decimal\(\d+,\d+\))\)"
)
_EXACT = re.compile(r" as (?:tinyint|smallint|int|decimal\(\d+,\d+\)|interval[\w ]*)\)$")

_ORDER_ONLY = frozenset(
    ("Sort", "Repartition", "RepartitionByExpression", "RebalancePartitions", "SubqueryAlias")
)
_CHOOSING = frozenset(("Sample", "GlobalLimit", "LocalLimit", "Offset", "Tail"))
_ALONE = frozenset(("rank", "dense_rank", "percent_rank", "cume_dist"))
# What gives the same for values that Spark finds equal.
_COMPARING = ANY_ORDER | {
    *("isnotnull", "isnull", "coalesce", "not", "if", "in", "greatest", "least", "nullif"),
    *("knownfloatingpointnormalized", "normalizenanandzero", "knownnullable", "isnan", "between"),
    *("named_struct", "struct", "array", "equal_null", "ifnull", "nvl"),
}
_EXACT_TYPES = (T.ByteType, T.ShortType, T.IntegerType, T.DecimalType)


@dataclass(slots=True)
class _Step:
    """A step of the plan: what it is, its text, and the numbers of the columns that it gives."""

    name: str
    text: str
    inputs: list[_Step] = field(default_factory=list)
    gives: list[str] | None = None


class Decisions:
    """The steps of a plan that decide by values which depend on the order of rows.

    Args:
        lines: The analysed plan.
        types: The types of columns by their numbers, as far as they are known.
        ids_of_rows: The ids of rows are compared with those of the first run; where one row makes
            several, these are made of all of their columns.
        groups_sorted: Functions that get whole groups put the rows in order before they look.

    Attributes:
        why: The first such value and what it is, for a message; None if nothing is decided so.
        chosen: The step by which some of many rows are taken, whichever come first; None if none.
    """

    def __init__(
        self,
        lines: Iterable[str],
        types: Mapping[str, T.DataType],
        *,
        ids_of_rows: bool = False,
        groups_sorted: bool = False,
    ) -> None:
        self.why: str | None = None
        self.chosen: str | None = None
        self._strong: dict[str, str] = {}
        self._weak: dict[str, str] = {}
        self._types = types
        self._ids_of_rows = ids_of_rows
        self._groups_sorted = groups_sorted
        self._steps = _steps(lines)
        for step in reversed(self._steps):  # what lies below a step comes behind it
            self._look_at(step)

    @property
    def shown(self) -> str | None:
        """A value that depends on the order and that the last step gives; None if there is none."""
        top = self._steps[0] if self._steps else None
        gives = top.gives if top is not None else []
        found = self._strong if gives is None else [each for each in gives if each in self._strong]
        return next((self._strong[each] for each in found), None)

    def _look_at(self, step: _Step) -> None:
        if not step.inputs:
            step.gives = _numbers(step.text)
            return
        known = {
            "Project": self._project,
            "Aggregate": self._aggregate,
            "Join": self._join,
            "Union": self._union,
            "Expand": self._expand,
            "Window": self._window,
        }
        if step.name in known:
            known[step.name](step)
        elif step.name in _ORDER_ONLY:
            step.gives = step.inputs[0].gives
        elif step.name in ("Distinct", "Intersect", "Except"):
            self._decide_by_all(step.inputs)
            step.gives = step.inputs[0].gives
        else:
            self._other(step)

    # ---- the kinds of steps

    def _project(self, step: _Step) -> None:
        [body] = _lists(step.text) or [step.text]
        step.gives = self._computed(body, step)

    def _aggregate(self, step: _Step) -> None:
        lists = _lists(step.text)
        if len(lists) != 2:
            self._decide_by_all(step.inputs)
            step.gives = None
            return
        keys, values = lists
        self._decide(keys)
        step.gives = self._computed(values, step, gathers=True)
        for number in step.gives or []:
            if number not in self._strong and self._may_tie(number, keys):
                self._weak.setdefault(number, "which of several equal values a group keeps")

    def _join(self, step: _Step) -> None:
        self._decide(step.text)
        sides = step.inputs[:1] if re.match(r"Join Left(?:Semi|Anti)", step.text) else step.inputs
        gives = [each.gives for each in sides]
        step.gives = None if None in gives else [n for each in gives for n in each or []]

    def _union(self, step: _Step) -> None:
        first, *others = step.inputs
        step.gives = first.gives
        for other in others:
            if first.gives is None or other.gives is None or len(first.gives) != len(other.gives):
                self._decide_by_all(step.inputs)
                return
            for to, number in zip(first.gives, other.gives, strict=True):
                self._hand_on(number, to)

    def _expand(self, step: _Step) -> None:
        lists = _lists(step.text)
        gives = _items(lists[-1]) if lists else []
        rows = [_items(each) for each in _lists(lists[0])] if len(lists) == 2 else []
        step.gives = _numbers(lists[-1]) if lists else None
        if not rows or any(len(row) != len(gives) for row in rows) or step.gives is None:
            self._decide_by_all(step.inputs)
            return
        for row in rows:
            for item, to in zip(row, step.gives, strict=False):
                for number in _numbers(item):
                    if number != to:
                        self._hand_on(number, to)
        if self._ids_of_rows:
            self._decide_by_all([step])

    def _window(self, step: _Step) -> None:
        self._decide(step.text)
        before = step.inputs[0].gives
        new = [n for n in dict.fromkeys(_numbers(step.text)) if before is None or n not in before]
        step.gives = None if before is None else [*before, *new]
        calls = {name for name, _ in _calls(step.text)}
        named = re.findall(r"(\w+)\([^()]*\) windowspecdefinition\(", step.text)
        if before is not None and named and set(named) <= _ALONE and not calls & BY_ORDER:
            return
        for number in new:
            self._strong.setdefault(number, "a window function, where rows are equal in its order,")

    def _other(self, step: _Step) -> None:
        """Any other step, such as a filter: it decides by what its text names."""
        self._decide(step.text)
        before = step.inputs[0].gives
        numbers = list(dict.fromkeys(_numbers(step.text)))
        some = before is None or not set(before) <= set(numbers)
        if step.name in _CHOOSING or (step.name == "Deduplicate" and some):
            self.chosen = step.name
        new = [n for n in numbers if before is None or n not in before]
        if step.name.startswith(("FlatMapGroups", "FlatMapCoGroups", "TransformWithState")):
            self._decide_by_all(step.inputs)
            for number in () if self._groups_sorted else new:
                self._strong.setdefault(number, "a function that gets a whole group")
        if step.name == "Generate" and self._ids_of_rows:
            self._decide_by_all(step.inputs)
        if len(step.inputs) > 1 or before is None:
            self._decide_by_all(step.inputs)
            step.gives = None
        else:
            step.gives = [*before, *new]

    # ---- what a value depends on

    def _computed(self, body: str, step: _Step, *, gathers: bool = False) -> list[str] | None:
        """Follow values through the columns that a step computes; return what it gives."""
        before = {n for each in step.inputs for n in each.gives or _all_numbers(each)}
        items = _items(body)
        ends = [_ITEM.search(item) for item in items]
        new = [n for n in dict.fromkeys(_numbers(body)) if n not in before]
        if not all(ends) or any(
            end is not None and any(n in new and n != end[1] for n in _numbers(item))
            for item, end in zip(items, ends, strict=True)
        ):
            # Not to be taken apart: whatever one of them depends on, all of them do.
            for number in new:
                self._depend(number, body, gathers=gathers)
            return [*[n for n in _numbers(body) if n in before], *new]
        gives = [end[1] for end in ends if end is not None]
        for item, number in zip(items, gives, strict=True):
            if number in new:
                self._depend(number, item, gathers=gathers)
        return gives

    def _depend(self, number: str, text: str, *, gathers: bool) -> None:
        for each in _numbers(text):
            if each in self._strong:
                self._strong.setdefault(number, self._strong[each])
        escaped = self._escaped(text)
        if escaped is not None:
            self._strong.setdefault(number, escaped)
        weak = next((self._weak[n] for n in _numbers(text) if n in self._weak), None)
        if weak is not None:
            self._weak.setdefault(number, weak)
        if gathers:
            cares = self._cares(number, _before_name(text))
            if cares is not None:
                self._strong.setdefault(number, cares)

    def _cares(self, number: str, text: str) -> str | None:
        """Say which aggregate function in an expression cares for the order of rows."""
        for name, start in _calls(text):
            lower = name.lower()
            if lower in BY_TYPE and not self._is_exact(number, text, start):
                return f"`{lower}()` of floating-point numbers, in its last digits,"
            if not is_known(name):
                return f"`{name}()`, of which the order it needs is not known,"
            if lower in BY_ORDER and not _is_sorted(text, start):
                return f"`{lower}()`"
        return None

    def _is_exact(self, number: str, text: str, start: int) -> bool:
        """Tell whether numbers are added up without rounding."""
        inner = text[start : _closing(text, start)].removeprefix("distinct ")
        if _EXACT.search(inner):
            return True
        argument = _NAMED.search(inner)
        if argument is not None and argument[0].strip() == inner.strip():
            kind = self._types.get(argument[2], self._types.get(by_name(argument[1])))
            if kind is not None:
                is_sum = text[:start].endswith("sum(")
                exact = (*_EXACT_TYPES, T.LongType) if is_sum else _EXACT_TYPES
                return isinstance(kind, (*exact, T.DayTimeIntervalType, T.YearMonthIntervalType))
        # A sum that is a whole number or a decimal was made of such.
        kind = self._types.get(number)
        alone = text[: start - 4].strip() == "" and text[:start].endswith("sum(")
        return alone and isinstance(kind, (T.LongType, T.DecimalType))

    def _may_tie(self, number: str, keys: str) -> bool:
        kind = self._types.get(number)
        if kind is None:
            return number not in _numbers(keys)
        # Spark gives a group the key 0.0 also where it is -0.0 in all rows.
        return _ties(kind, floats=number not in _numbers(keys))

    def _escaped(self, text: str) -> str | None:
        """Find a weak value that is looked at deeper than by a comparison."""
        text = _HARMLESS.sub(r"\1", text)
        for found in _NUMBER.finditer(text):
            if found[1] in self._weak and (
                " / " in text or not _enclosing(text, found.start()) <= _COMPARING
            ):
                return self._weak[found[1]]
        return None

    def _hand_on(self, number: str, to: str) -> None:
        if number in self._strong:
            self._strong.setdefault(to, self._strong[number])
        if number in self._weak:
            self._weak.setdefault(to, self._weak[number])

    def _decide(self, text: str) -> None:
        strong = next((self._strong[n] for n in _numbers(text) if n in self._strong), None)
        self.why = self.why or strong or self._escaped(text)

    def _decide_by_all(self, steps: Sequence[_Step]) -> None:
        for step in steps:
            gives = step.gives if step.gives is not None else _all_numbers(step)
            strong = next((self._strong[n] for n in gives if n in self._strong), None)
            self.why = self.why or strong


def by_name(name: str) -> str:
    """Return under what a type is found by a column's name, for want of its number."""
    return f"`{name}`"


def column_numbers(lines: Iterable[str]) -> list[str] | None:
    """Return the numbers of the columns that a plan gives, in order; None if it does not say."""
    steps = Decisions(lines, {})._steps  # noqa: SLF001 (the same walk, for its other result)
    return steps[0].gives if steps else None


def leaves(lines: Iterable[str]) -> list[str]:
    """Return the texts of the steps of a plan that are made from no other."""
    return [step.text for step in _steps(lines) if not step.inputs]


def _ties(kind: T.DataType, *, floats: bool) -> bool:
    """Tell whether values of a type may be equal for Spark without being the same."""
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return floats
    if isinstance(kind, T.StringType):
        return getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY"
    if isinstance(kind, T.ArrayType):
        return _ties(kind.elementType, floats=floats)
    if isinstance(kind, T.MapType):
        return True  # in whatever order its entries are
    if isinstance(kind, T.StructType):
        return any(_ties(each.dataType, floats=floats) for each in kind.fields)
    return False


def _steps(lines: Iterable[str]) -> list[_Step]:
    """Read the tree that a plan's text draws, each step before what it is made from."""
    whole: list[tuple[int, str]] = []
    for each in lines:
        line = _DELAY.sub(r"\1", each)
        match = _LINE.match(line)
        if match is not None and whole:
            whole.append((len(match["depth"]) // 3 + 1, match["text"]))
        elif whole:  # a text with a line break in it
            whole[-1] = (whole[-1][0], f"{whole[-1][1]}\n{line}")
        else:
            whole.append((0, line))
    steps: list[_Step] = []
    above: list[_Step] = []
    for depth, text in whole:
        found = _STEP.match(text)
        step = _Step(found["name"] if found else "", text)
        del above[depth:]
        if above:
            above[-1].inputs.append(step)
        above.append(step)
        steps.append(step)
    return steps


def _numbers(text: str) -> list[str]:
    return _NUMBER.findall(text)


def _all_numbers(step: _Step) -> list[str]:
    return [*_numbers(step.text), *[n for each in step.inputs for n in _all_numbers(each)]]


def _lists(text: str) -> list[str]:
    """Cut the outermost lists in square brackets out of a step's text, or of a list of lists."""
    found, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if letter in "([":
            # An element of an array follows what it is taken from without a space.
            if letter == "[" and depth == 0 and (at == 0 or text[at - 1] == " "):
                start = at + 1
            depth += 1
        elif letter in ")]":
            depth -= 1
            if letter == "]" and depth == 0 and start:
                found.append(text[start:at])
                start = 0
    return found if depth == 0 else []


def _items(text: str) -> list[str]:
    """Split a list at its outermost commas."""
    items, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and depth == 0:
            items.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*items, last] if last else items


def _calls(text: str) -> list[tuple[str, int]]:
    """List the functions that a text calls, and where their brackets open."""
    return [
        (match[1], match.end()) for match in re.finditer(r"(?<![\w`#@$.])([A-Za-z_][\w$]*)\(", text)
    ]


def _before_name(item: str) -> str:
    """Cut off the name that an expression is given."""
    depth = 0
    for at, letter in enumerate(item):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if depth == 0 and item.startswith(" AS ", at):
            return item[:at]
    return item


def _closing(text: str, start: int) -> int:
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return len(text)


def _enclosing(text: str, position: int) -> set[str]:
    """Name the functions in whose brackets a position lies."""
    names: list[str] = []
    for at in range(position):
        if text[at] == "(":
            call = _CALL.search(text[: at + 1])
            names.append(call[1].lower() if call else "coalesce")
        elif text[at] == ")" and names:
            names.pop()
    return {name for name in names if name not in ("and", "or", "when", "then")}


def _is_sorted(text: str, start: int) -> bool:
    """Tell whether the order of a collected array is settled right around the call."""
    call = _CALL.search(text[:start])
    before = text[: call.start()] if call else ""
    around = _CALL.search(before)
    return around is not None and around[1].lower() in SORTED_BY and "lambdafunction" not in text
