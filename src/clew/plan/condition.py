"""Conditions of strangers: text, read by a small grammar of our own into a tree of plain values.

Spark's SQL can start processes, call Java and read any file, so text that comes from a page is
never handed to it. What this grammar does not know is refused: there are columns, literals,
comparisons, arithmetic, `and`, `or`, `not`, `in`, `between`, `like` and `is null`, and no calls.
`clew.plan.build` makes columns of a tree. Start at `parse_condition`; no Spark is needed here.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, TypeAlias

from clew.exceptions import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LENGTH = 4_000
MAX_DEPTH = 40
MAX_NODES = 200
MAX_DIGITS = 38

Value: TypeAlias = "bool | int | float | Decimal | str | None"
Comparison = Literal["=", "!=", "<", "<=", ">", ">=", "<=>"]
Sign = Literal["+", "-", "*", "/", "%"]


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """A column, or a field of a nested one."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """A value."""

    value: Value


@dataclass(frozen=True, slots=True)
class Compare:
    """Two values that are compared."""

    op: Comparison
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two numbers and what is done with them."""

    op: Sign
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Negative:
    """A number with the other sign."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Junction:
    """Several conditions, all or any of which hold."""

    op: Literal["and", "or"]
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """A condition that does not hold."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class OneOf:
    """A value that is one of several."""

    operand: Expression
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Between:
    """A value between two others, both included."""

    operand: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class Like:
    """A text with a pattern of `%` and `_`."""

    operand: Expression
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """A value that is null."""

    operand: Expression


Expression: TypeAlias = (
    ColumnPath
    | Constant
    | Compare
    | Arithmetic
    | Negative
    | Junction
    | Not
    | OneOf
    | Between
    | Like
    | IsNull
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was read, and the text it was read from."""

    text: str
    tree: Expression

    def __str__(self) -> str:
        return self.text


_Rule: TypeAlias = "Callable[[], Expression]"
_WORDS = frozenset({"and", "or", "not", "in", "between", "like", "is", "null", "true", "false"})
_HALF = re.compile(r"[\ud800-\udfff]")
_COMPARISONS: dict[str, Comparison] = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<=>": "<=>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_TOKEN = re.compile(
    r"\s*(?:(?P<comment>/\*|--)"
    r"|(?P<quoted>`(?:[^`]|``)+`)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?(?!\w))"
    r"|(?P<text>'(?:[^'\\]|'')*')"
    r"|(?P<sign><=>|<=|>=|<>|!=|==|[-+*/%=<>.,()]))"
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


_END = _Token("end", "the end")


def parse_condition(text: str) -> Condition:
    """Read a condition.

    Raises:
        QueryError: It is too long or too deep, or holds what the grammar does not know.

    Examples:
        >>> parse_condition("n >= 4").tree
        Compare(op='>=', left=ColumnPath(parts=('n',)), right=Constant(value=4))
    """
    _refuse_beyond(len(text), MAX_LENGTH, "characters")
    half = _HALF.search(text)
    if half is not None:  # half of a character, which no text that is sent to Spark can hold
        raise _unknown(_HALF.sub("?", text), f"U+{ord(half[0]):X}")
    return Condition(text, _Parser(text).whole())


class _Parser:
    """Recursive descent, one method for each level of binding."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._place = 0
        self._nodes = 0
        self._depth = 0

    def whole(self) -> Expression:
        tree = self._any()
        if self._next is not _END:
            raise self._refused()
        return tree

    @property
    def _next(self) -> _Token:
        return self._tokens[self._place] if self._place < len(self._tokens) else _END

    def _take(self, *texts: str) -> str | None:
        """Take the next word or sign if it is one of these."""
        token = self._next
        if token.kind in {"word", "sign"} and token.text in texts:
            self._place += 1
            return token.text
        return None

    def _need(self, text: str) -> None:
        if self._take(text) is None:
            raise self._refused()

    def _refused(self) -> QueryError:
        return _unknown(self._text, self._next.text)

    def _count(self) -> None:
        self._nodes += 1
        _refuse_beyond(self._nodes, MAX_NODES, "columns and values")

    def _any(self) -> Expression:
        self._depth += 1
        _refuse_beyond(self._depth, MAX_DEPTH, "brackets in one another")
        tree = self._junction("or", lambda: self._junction("and", self._not))
        self._depth -= 1
        return tree

    def _junction(self, op: Literal["and", "or"], operand: _Rule) -> Expression:
        operands = [operand()]
        while self._take(op):
            operands.append(operand())
        return operands[0] if len(operands) == 1 else Junction(op, tuple(operands))

    def _not(self) -> Expression:
        negations = 0
        while self._take("not"):
            negations += 1
        tree = self._predicate()
        return Not(tree) if negations % 2 else tree

    def _predicate(self) -> Expression:
        left = self._sum()
        op = self._take(*_COMPARISONS)
        if op is not None:
            return Compare(_COMPARISONS[op], left, self._sum())
        if self._take("is"):
            is_negated = self._take("not") is not None
            self._need("null")
            return _negated(IsNull(left), is_negated)
        is_negated = self._take("not") is not None
        if self._take("in"):
            return _negated(OneOf(left, self._values()), is_negated)
        if self._take("between"):
            low = self._sum()
            self._need("and")
            return _negated(Between(left, low, self._sum()), is_negated)
        if self._take("like"):
            return _negated(Like(left, self._pattern()), is_negated)
        if is_negated:
            raise self._refused()
        return left

    def _values(self) -> tuple[Expression, ...]:
        self._need("(")
        values = [self._sum()]
        while self._take(","):
            values.append(self._sum())
        self._need(")")
        return tuple(values)

    def _pattern(self) -> str:
        if self._next.kind != "text":
            raise self._refused()
        self._place += 1
        self._count()
        return _unquoted(self._tokens[self._place - 1].text)

    def _sum(self) -> Expression:
        return self._chain(("+", "-"), lambda: self._chain(("*", "/", "%"), self._signed))

    def _chain(self, signs: tuple[Sign, ...], operand: _Rule) -> Expression:
        tree, links = operand(), 0
        while (op := self._take(*signs)) is not None:
            links += 1
            _refuse_beyond(links, MAX_DEPTH, "terms in one sum or product")
            tree = Arithmetic(_SIGNS[op], tree, operand())
        return tree

    def _signed(self) -> Expression:
        is_negative = False
        while (sign := self._take("-", "+")) is not None:
            is_negative ^= sign == "-"
        tree = self._primary()
        if not is_negative:
            return tree
        if isinstance(tree, Constant) and isinstance(tree.value, int | float | Decimal):
            return Constant(-tree.value)
        return Negative(tree)

    def _primary(self) -> Expression:
        token = self._next
        if self._take("("):
            tree = self._any()
            self._need(")")
            return tree
        self._count()
        if token.kind == "word" and token.text in _CONSTANTS:
            self._place += 1
            return Constant(_CONSTANTS[token.text])
        if token.kind == "number":
            self._place += 1
            return Constant(_number(self._text, token.text))
        if token.kind == "text":
            self._place += 1
            return Constant(_unquoted(token.text))
        return self._column()

    def _column(self) -> Expression:
        parts = [self._name()]
        while self._take("."):
            parts.append(self._name())
        if self._next.text == "(" or parts[0].lower().startswith("_clew"):
            raise _unknown(self._text, parts[-1] + self._next.text.replace("the end", ""))
        return ColumnPath(tuple(parts))

    def _name(self) -> str:
        if self._next.kind != "name":
            raise self._refused()
        self._place += 1
        return self._tokens[self._place - 1].text


_CONSTANTS: dict[str, Value] = {"null": None, "true": True, "false": False}
_SIGNS: dict[str, Sign] = {"+": "+", "-": "-", "*": "*", "/": "/", "%": "%"}


def _tokens(text: str) -> list[_Token]:
    tokens, place, end = [], 0, len(text.rstrip())
    while place < end:
        found = _TOKEN.match(text, place)
        if found is None or found["comment"]:
            raise _unknown(text, text[place:].strip()[:2])
        tokens.append(_token(found))
        place = found.end()
    return tokens


def _token(found: re.Match[str]) -> _Token:
    kind, text = str(found.lastgroup), found[str(found.lastgroup)]
    if kind == "quoted":
        return _Token("name", text[1:-1].replace("``", "`"))
    if kind == "name" and text.lower() in _WORDS:
        return _Token("word", text.lower())
    return _Token(kind, text)


def _number(text: str, digits: str) -> int | float | Decimal:
    if sum(each.isdigit() for each in digits) > MAX_DIGITS:
        raise _unknown(text, digits[:20])
    if "e" in digits.lower():
        value = float(digits)
        if math.isinf(value):
            raise _unknown(text, digits)
        return value
    whole = "." not in digits and abs(int(digits)) < 1 << 63
    return int(digits) if whole else Decimal(digits)


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


def _negated(tree: Expression, is_negated: bool) -> Expression:  # noqa: FBT001
    return Not(tree) if is_negated else tree


def _refuse_beyond(count: int, most: int, what: str) -> None:
    if count > most:
        msg = (
            f"the condition has too many {what}; the explorer takes {most:,}.\n\n"
            "Write a shorter one, or ask with `clew minimize` or `prov.minimize`."
        )
        raise QueryError(msg)


def _unknown(text: str, found: str) -> QueryError:
    shown = text if len(text) <= 200 else text[:200] + "..."
    return QueryError(
        f"the condition {shown!r} holds {found!r}, and the explorer takes comparisons of columns "
        "only.\n\nWrite e.g. `n >= 4 and place = 'north'`; any SQL is taken by `clew minimize` "
        "and by `prov.minimize`."
    )
