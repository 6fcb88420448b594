"""The parameters of a step the way they were written.

The store keeps what Spark prints of a column: operators in front of their arguments, as in
`and(>=(n, 4), =(pos, furthest))`. Digests of queries are made of that text, so it stays, and is
read as SQL, `n >= 4 and pos = furthest`, only where it is shown; steps of older stores read well,
too. What cannot be read with certainty is shown as it is kept. Start at `written`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LONGEST = 5_000
_DEEPEST = 60
"""Longer and deeper texts are shown as they are: a store may hold anything."""

_CLOSED = {")": "(", "]": "["}
_WORDY, _LOOSE, _OR, _AND, _NOT, _TEST, _SUM, _PRODUCT, _SIGN, _ATOM = range(10)
"""How tightly a text holds together, from a name of several words to one that is a word."""

_TWO = {
    "or": ("or", _OR),
    "and": ("and", _AND),
    **{symbol: (symbol, _TEST) for symbol in ("=", "<=>", "!=", "<", "<=", ">", ">=")},
    **{word: (word, _TEST) for word in ("like", "ilike", "rlike")},
    "+": ("+", _SUM),
    "-": ("-", _SUM),
    "*": ("*", _PRODUCT),
    "/": ("/", _PRODUCT),
    "%": ("%", _PRODUCT),
    # SQL ranks these between comparisons and sums; with parentheses nobody has to know.
    **{symbol: (symbol, _TEST) for symbol in ("&", "|", "^")},
}
_ASSOCIATIVE = frozenset({_OR, _AND})
_BEFORE = {"not": ("not ", _NOT), "!": ("not ", _NOT), "negative": ("-", _SIGN), "-": ("-", _SIGN)}
_BEHIND = {
    "isNull": "is null",
    "isNotNull": "is not null",
    "isnull": "is null",
    "isnotnull": "is not null",
}

_ORIGIN = re.compile(r"\bOrigin\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_OBJECT = re.compile(r"\[L?[\w.$]+;?@[0-9a-f]+")
_OBJECTS = re.compile(r"\(columnnodeexpression\(.*\)", re.DOTALL)
_UNSAID = "…"
"""Stands for what Spark prints as an object of Java."""

_QUOTE = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`", re.DOTALL)
_SEPARATOR = re.compile(r"; |, from rows where |, merged by | by |, ")
_NAMED = re.compile(r"(?P<name>[^\s=<>!(]+(?: [^\s=<>!(]+)*) = (?P<value>.+)", re.DOTALL)
_LAMBDA = re.compile(r"(?:\((?P<several>\w+(?:, \w+)*)\)|(?P<one>\w+)) -> (?P<body>.+)", re.DOTALL)
_ALIAS = re.compile(r"(?P<value>.+) AS (?P<name>.+)", re.DOTALL)
_ORDER = re.compile(r"(?P<value>.+) (?P<order>ASC NULLS FIRST|DESC NULLS LAST)", re.DOTALL)
_OVER = re.compile(r"(?P<value>.+) OVER \((?P<over>.*)\)", re.DOTALL)
_PART = re.compile(r"\b(?:PARTITION BY|ORDER BY|ROWS BETWEEN|RANGE BETWEEN)\b")
_SAME = re.compile(r"[()`\s]")
_CALL = re.compile(r"(?P<name>[^\s(),.'`\"\[\]]+)\((?P<arguments>.*)\)", re.DOTALL)
_ITEM = re.compile(r"(?P<value>.+)\[(?P<item>.+)\]", re.DOTALL)
_CASE = re.compile(r"\b(?:CASE WHEN|WHEN|THEN|ELSE|CASE|END)\b")
_PLAIN = re.compile(
    r"\*|-?\d+(?:\.\d+)?(?:E-?\d+)?[A-Z]{0,2}|\w+(?:\.(?:\w+|\*))*"
    r"|…|\d{4,}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d+)?)?|\(\0*\)|\0+"
)
_WORDS = re.compile(r"[^\W\d]\w*(?: \w+)+")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"_\d+$")
_KEYWORD = re.compile(
    r"\b(?:all|and|any|as|asc|between|case|cast|date|desc|distinct|div|else|end|escape|exists|false"
    r"|filter|from|ilike|in|interval|is|like|not|null|nulls|or|over|rlike|regexp|some|then"
    r"|timestamp|true|when|where|within)\b",
    re.IGNORECASE,
)


class _Term(NamedTuple):
    """A text, and how tightly it holds together."""

    text: str
    rank: int

    def within(self, least: int) -> str:
        """Return the text, in parentheses if something tighter is needed."""
        if self.rank == _WORDY:
            return f"`{self.text}`"
        return self.text if self.rank >= least else f"({self.text})"


class _UnclearError(ValueError):
    """A text is not what Spark prints, or may be more than one thing."""


def written(label: str, names: Mapping[str, str] | None = None) -> str:
    """Write what Spark prints of columns the way a user writes it.

    Args:
        label: One column, several, or what a step says of them.
        names: What hidden copies of columns are called.

    Examples:
        >>> written("and(>=(n, 4), =(pos, furthest))")
        'n >= 4 and pos = furthest'
        >>> written("transform(xs, x_7 -> +(x_7, 1)) AS more, or(a, b)")
        'transform(xs, x -> x + 1) AS more, a or b'
        >>> written("(a + b) * c > 5")
        '(a + b) * c > 5'
    """
    if names:
        label = _outside_quotes(label, {name: _quoted(names[name]) for name in names})
    text = _OBJECT.sub(_UNSAID, without_origins(label))
    if len(text) > _LONGEST:
        return text
    try:
        return "".join(_each_written(text))
    except _UnclearError:
        return _OBJECTS.sub(f"({_UNSAID})", text)


def without_origins(text: str) -> str:
    """Take out where in a program a column was written, which Spark prints for Python functions.

    Examples:
        >>> without_origins("f(Attribute(id,Origin(None,Some([Lx;@72),Some((col,a.py:1)),None)))")
        'f(Attribute(id,Origin))'
    """
    return _ORIGIN.sub("Origin", text)


def label_of(node: Mapping[str, Any]) -> str:
    """Write the parameters of a step that a store describes; a stream is called by its name.

    Examples:
        >>> label_of({"kind": "filter", "label": "=(speed, 0)"})
        'speed = 0'
    """
    label = str(node.get("label") or "")
    if node["kind"] in ("source", "named"):
        return label
    return written(label, node.get("names"))


def _quoted(name: str) -> str:
    return name if _WORD.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _each_written(label: str) -> Iterable[str]:
    """Yield the columns of a label, and what stands between them as it is."""
    flat, end = _flat(label), 0
    for match in _SEPARATOR.finditer(flat):
        yield _column(label[end : match.start()])
        yield label[match.start() : match.end()]
        end = match.end()
    yield _column(label[end:])


def _column(text: str) -> str:
    found = _NAMED.fullmatch(_flat(text))
    if found is None:
        return _read(text).text
    at = found.start("value")
    return text[:at] + _read(text[at:]).text


def _flat(text: str) -> str:
    """Blank out what is quoted or inside of brackets, so that the rest can be looked through."""
    text = _QUOTE.sub(lambda match: "\0" * len(match[0]), text)
    if any(mark in text for mark in "'\"`"):
        raise _UnclearError
    open_: list[str] = []
    out = []
    for mark in text:
        if mark in _CLOSED and (not open_ or open_.pop() != _CLOSED[mark]):
            raise _UnclearError
        out.append("\0" if open_ else mark)
        if mark in "([":
            open_.append(mark)
    if open_:
        raise _UnclearError
    return "".join(out)


def _read(text: str, depth: int = 0) -> _Term:
    """Read one expression.

    Raises:
        _UnclearError: It is nested too deeply, or its brackets do not match.
    """
    if depth > _DEEPEST:
        raise _UnclearError
    flat = _flat(text)
    for reader in (_alias, _order, _lambda, _over, _case, _call, _item):
        found = reader(text, flat, depth + 1)
        if found is not None:
            return found
    if _PLAIN.fullmatch(flat):
        return _Term(text, _SIGN if text.startswith("-") else _ATOM)
    if _WORDS.fullmatch(text) and not _KEYWORD.search(text):
        return _Term(text, _WORDY)
    return _Term(text, _LOOSE)


def _alias(text: str, flat: str, depth: int) -> _Term | None:
    found = _ALIAS.fullmatch(flat)
    if found is None:
        return None
    value = _read(text[: found.end("value")], depth)
    # What Spark itself would call it was not written, e.g. `sum(*(a, 2)) AS sum((a * 2))`.
    if _SAME.sub("", value.text) == _SAME.sub("", text[found.start("name") :]):
        return value
    return _Term(value.text + text[found.end("value") :], _LOOSE)


def _order(text: str, flat: str, depth: int) -> _Term | None:
    """Read an order; where nulls go is left out if it is where they go anyway."""
    found = _ORDER.fullmatch(flat)
    if found is None:
        return None
    value = _read(text[: found.end("value")], depth)
    return _Term(f"{value.text} {found['order'].split()[0]}", _LOOSE)


def _lambda(text: str, flat: str, depth: int) -> _Term | None:
    """Read a function of a function; Spark numbers its variables through the process."""
    found = _LAMBDA.match(text)
    if found is None or " -> " not in flat:
        return None
    body = found["body"]
    variables = (found["several"] or found["one"]).split(", ")
    taken = set(_WORD.findall(_QUOTE.sub("", body))) - set(variables)
    called: dict[str, str] = {}
    for variable in variables:
        called[variable] = _free(_NUMBER.sub("", variable), {*taken, *called.values()})
    named = _outside_quotes(body, called)
    arguments = ", ".join(called.values())
    if found["several"]:
        arguments = f"({arguments})"
    return _Term(f"{arguments} -> {_read(named, depth).text}", _LOOSE)


def _free(name: str, taken: set[str]) -> str:
    number = 2
    free = name
    while free in taken:
        free, number = f"{name}{number}", number + 1
    return free


def _outside_quotes(text: str, called: Mapping[str, str]) -> str:
    end, out = 0, []
    for match in [*_QUOTE.finditer(text), None]:
        part = text[end:] if match is None else text[end : match.start()]
        out.append(_WORD.sub(lambda word: called.get(word[0], word[0]), part))
        if match is not None:
            out.append(match[0])
            end = match.end()
    return "".join(out)


def _over(text: str, flat: str, depth: int) -> _Term | None:
    found = _OVER.fullmatch(flat)
    if found is None:
        return None
    value = _read(text[: found.end("value")], depth).within(_ATOM)
    inside = text[found.start("over") : found.end("over")]
    parts = list(_PART.finditer(_flat(inside)))
    if not parts:
        return _Term(f"{value} OVER ({inside})", _ATOM)
    out = inside[: parts[0].start()]
    for part, end in zip(parts, [*[p.start() for p in parts[1:]], len(inside)], strict=True):
        given = inside[part.end() : end]
        if part[0].endswith("BY"):
            given = f" {', '.join(_read(each, depth).text for each in _arguments(given))} "
        out += part[0] + given
    return _Term(f"{value} OVER ({out.strip()})", _ATOM)


def _case(text: str, flat: str, depth: int) -> _Term | None:
    """Read `CASE WHEN ... THEN ... END`, which Spark prints without brackets around it."""
    if not flat.startswith("CASE WHEN ") or not flat.endswith(" END"):
        return None
    words = list(_CASE.finditer(flat))
    open_, own = 0, []
    for word in words:
        open_ += {"CASE WHEN": 1, "CASE": 1, "END": -1}.get(word[0], 0)
        if open_ == 0 and word is not words[-1]:
            return None
        if open_ == 1 and word[0] != "END":
            own.append(word)
    if open_:
        return None
    out = ""
    for word, after in zip(own, [*own[1:], words[-1]], strict=True):
        between = text[word.end() : after.start()].strip()
        out += f"{word[0]} {_read(between, depth).text} "
    return _Term(f"{out}END", _ATOM)


def _call(text: str, flat: str, depth: int) -> _Term | None:
    found = _CALL.fullmatch(flat)
    if found is None or ")" in found["arguments"]:
        return None
    name = found["name"]
    inside = text[found.start("arguments") : found.end("arguments")]
    if name == "columnnodeexpression":
        return _read(_of_object(inside), depth)
    given = [_read(each, depth) for each in _arguments(inside)]
    match given:
        case [value] if name in _BEFORE:
            sign, rank = _BEFORE[name]
            # Two signs in a row would begin a comment.
            return _Term(sign + value.within(_ATOM if rank == _SIGN else rank), rank)
        case [value] if name in _BEHIND:
            return _Term(f"{value.within(_SUM)} {_BEHIND[name]}", _TEST)
        case [one, other] if name in _TWO:
            return _between(*_TWO[name], one, other)
        case [value, *choices] if name == "in" and choices:
            among = ", ".join(each.text for each in choices)
            return _Term(f"{value.within(_SUM)} in ({among})", _TEST)
    if not _WORD.fullmatch(name) and name != "<lambda>":
        return None
    texts = [each.text for each in given]
    if name == "window":
        texts = _window(texts)
    return _Term(f"{name}({', '.join(texts)})", _ATOM)


def _window(texts: list[str]) -> list[str]:
    """Leave out what nobody has to write of a window: a slide of its size, and no offset."""
    if len(texts) == 4 and texts[3] == "'0 second'":
        texts = texts[:3]
        return texts[:2] if texts[1] == texts[2] else texts
    return texts


def _of_object(text: str) -> str:
    """Write an argument of a Python function, printed as an object, as Spark prints other columns.

    Raises:
        _UnclearError: Its brackets do not match.
    """
    found = _CALL.fullmatch(_flat(text))
    if found is None:
        return _UNSAID
    given = _arguments(text[found.start("arguments") : found.end("arguments")])
    match found["name"], given:
        case "UnresolvedAttribute", [parts, *_]:
            return ".".join(_listed(parts))
        case "Alias", [value, parts, *_]:
            inside, name = _of_object(value), ".".join(_listed(parts))
            return inside if inside == name else f"{inside} AS {name}"
        case "UnresolvedFunction", [name, arguments, *_]:
            return f"{name}({', '.join(map(_of_object, _listed(arguments)))})"
        case "Literal", [value, *_]:
            return value if re.fullmatch(r"-?[\d.]+|true|false|null", value) else repr(value)
    return _UNSAID


def _listed(text: str) -> list[str]:
    """Take a list of Scala apart, of whatever kind it is."""
    found = _CALL.fullmatch(_flat(text))
    if found is None:
        return [_UNSAID]
    return _arguments(text[found.start("arguments") : found.end("arguments")])


def _between(word: str, rank: int, one: _Term, other: _Term) -> _Term:
    """Write an operator between its arguments."""
    first = rank + 1 if rank == _TEST else rank
    second = rank if rank in _ASSOCIATIVE else rank + 1
    return _Term(f"{one.within(first)} {word} {other.within(second)}", rank)


def _arguments(inside: str) -> list[str]:
    if not inside:
        return []
    ends = [match.start() for match in re.finditer(",", _flat(inside))]
    starts = [0, *[end + 1 for end in ends]]
    return [inside[a:b].strip() for a, b in zip(starts, [*ends, len(inside)], strict=True)]


def _item(text: str, flat: str, depth: int) -> _Term | None:
    found = _ITEM.fullmatch(flat)
    if found is None or "]" in found["item"]:
        return None
    value = _read(text[: found.end("value")], depth)
    item = _read(text[found.start("item") : found.end("item")], depth)
    return _Term(f"{value.within(_ATOM)}[{item.text}]", _ATOM)
