"""A plain-Python model of what Spark returns for a pipeline, with the provenance of every row.

`run_batch` and `run_stream` evaluate a `pipelines.Spec` row by row, and `agree` compares the answer
with what somebody else found. No Spark in here. The one fact that shapes this file: Structured
Streaming's results depend on where the optimizer puts a filter, because a filter that does not look
at the event time sinks below `withWatermark`, and a watermark knows only the rows that reach it. So
a streaming pipeline is first rearranged as Spark rearranges it (`rearrange`) and then simulated
batch by batch. It is one long file because batch and stream share every rule but timing.

What was read off Spark 4.3 by experiment, append mode, `availableNow`, one file per trigger:

- Batch `n` evicts with the watermark that the batches before `n` produced, and drops late rows with
  the one that batch `n - 1` evicted with. Both start at 0. Late means event time (of a window: its
  end) at or below the watermark; a null event time is never late and never evicted.
- A watermark is the largest event time seen, cut to milliseconds, less the delay; a null counts as
  1970. Several watermarks: the smallest counts, and one that saw nothing is 0. A watermark that two
  branches share is one watermark and takes the larger of the two.
- After the last file one batch without data runs, if the watermark moved and an operator keeps
  state.
- Behind a stateful operator the watermark is its own input's; behind a time-bounded join it is the
  smallest of that and of the two bounds up to which the join has thrown state away.
- Sessions that only touch are one session. A late row is dropped by itself, before it is merged.
- `dropDuplicates` looks at lateness only if the event time column is still there, and the optimizer
  removes it when nothing above needs it. `distinct` is `dropDuplicates` on all columns.
- `dropDuplicatesWithinWatermark` forgets a key once the watermark reaches the kept row's event time
  plus the delay; a null event time counts as 1970, so such a key is forgotten at once.
- Stream-stream joins compare keys as bytes: null keys match each other. Inner, left, right and semi
  joins never show it, because the optimizer drops null keys on the sides that need a partner; full
  joins do.
- An inner or semi join with an empty table does not read the stream, so no watermark moves.
- A filter on a join key reaches the other side too, and so that side's watermark; a filter that no
  null passes turns an outer join into a stricter one; `explode` drops rows with empty arrays below
  the watermark.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from properties.pipelines import (
    SECOND,
    Agg,
    Aggregate,
    Batches,
    Distinct,
    Drop,
    DropDuplicates,
    Explode,
    Expr,
    Filter,
    Join,
    Node,
    OrderLimit,
    Read,
    Rename,
    Row,
    Select,
    Spec,
    Tables,
    Union,
    Watermark,
    Window,
    WithColumn,
    children,
    col,
    columns,
    conjuncts,
    join_columns,
    lit,
    refs,
    substitute,
    walk,
)

Ref: TypeAlias = tuple[str, int]
"""A source row: the source's name and the row's number."""

Refs: TypeAlias = frozenset[Ref]
Path: TypeAlias = tuple[int, ...]

_MILLI = 1000
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


# ---------------------------------------------------------------------------- provenance


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


def _all_of(provs: Iterable[Prov]) -> Prov:
    parts = list(provs)
    return Prov(
        frozenset().union(*(p.fixed for p in parts)),
        frozenset().union(*(p.one_of for p in parts)),
        frozenset().union(*(p.some_of for p in parts)),
    )


def _any_of(provs: Iterable[Prov]) -> Prov:
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


# ---------------------------------------------------------------------------- expressions


def _remainder(a: int, b: int) -> int:
    """Divide as Java does: the remainder has the sign of the dividend."""
    return int(math.fmod(a, b))


_STRICT: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "%": _remainder,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "not": lambda a: not a,
    "in": lambda a, *options: a in options,
    "upper": str.upper,
    "concat": lambda a, b: a + b,
    "length": len,
    "size": len,
    "second": lambda a: a // SECOND % 60,
    "window_time": lambda a: a[1] - 1,
    "start": lambda a: a[0],
    "end": lambda a: a[1],
}
"""Operations whose result is null when an argument is."""


def evaluate(expr: Expr, row: Mapping[str, Any]) -> Any:
    """Evaluate an expression as Spark does, with nulls as a third truth value."""
    op = expr.op
    if op == "col":
        return row[expr.args[0]]
    if op == "lit":
        return expr.args[0]
    args = [evaluate(arg, row) for arg in expr.args]
    if op in _STRICT:
        return None if None in args else _STRICT[op](*args)
    if op in ("and", "or"):
        decisive = op == "or"
        if decisive in args:
            return decisive
        return None if None in args else not decisive
    if op == "if":
        return args[1] if args[0] else args[2]
    if op == "coalesce":
        return next((arg for arg in args if arg is not None), None)
    if op == "<=>":
        return args[0] == args[1]
    return (args[0] is None) == (op == "isnull")


def _passes(conditions: Iterable[Expr], row: Row) -> bool:
    return all(evaluate(condition, row) is True for condition in conditions)


# ---------------------------------------------------------------------------- one row at a time


def _narrow(node: Node, rows: Iterable[ModelRow]) -> list[ModelRow]:
    """Apply an operator that looks at one row; the row's provenance stays as it is."""
    return [replace(row, values=made) for row in rows for made in _derive(node, row.values)]


def _derive(node: Node, row: Row) -> Iterator[Row]:
    match node:
        case Filter(_, condition):
            if evaluate(condition, row) is True:
                yield row
        case WithColumn(_, name, value):
            yield row | {name: evaluate(value, row)}
        case Select(_, named):
            yield {name: evaluate(value, row) for name, value in named}
        case Rename(_, old, new):
            yield {new if name == old else name: value for name, value in row.items()}
        case Drop(_, names):
            yield {name: value for name, value in row.items() if name not in names}
        case Explode(_, column, name, outer):
            for item in row[column] or ((None,) if outer else ()):
                yield row | {name: item}
        case _:
            yield row


# ---------------------------------------------------------------------------- groups


def windows_of(window: Window, value: Any) -> list[tuple[int, int]]:
    """List the windows that a timestamp (or an earlier window's last instant) falls into."""
    at = value[1] - 1 if isinstance(value, tuple) else value
    if at is None:
        return []
    size = window.size_seconds * SECOND
    if window.session:
        return [(at, at + size)]
    slide = size if window.slide_seconds is None else window.slide_seconds * SECOND
    last = at // slide * slide
    starts = (last - i * slide for i in range(math.ceil(size / slide)))
    return [(start, start + size) for start in starts if at < start + size]


_Group: TypeAlias = tuple[Any, ...]
"""What a group is found by: the window, where there is one, then the keys."""


def _group_rows(node: Aggregate, rows: Iterable[ModelRow]) -> Iterator[tuple[_Group, ModelRow]]:
    for row in rows:
        keys = tuple(row.values[key] for key in node.keys)
        if node.window is None:
            yield keys, row
        else:
            for window in windows_of(node.window, row.values[node.window.column]):
                yield (window, *keys), row


def _merge_sessions(
    groups: Iterable[tuple[_Group, list[ModelRow]]],
) -> list[tuple[_Group, list[ModelRow]]]:
    """Merge windows of equal keys that overlap or touch."""
    by_keys: dict[_Group, list[tuple[tuple[int, int], list[ModelRow]]]] = defaultdict(list)
    for group, rows in groups:
        by_keys[group[1:]].append((group[0], rows))
    merged: list[tuple[_Group, list[ModelRow]]] = []
    for keys, sessions in by_keys.items():
        open_: tuple[tuple[int, int], list[ModelRow]] | None = None
        for window, rows in sorted(sessions, key=lambda session: session[0]):
            if open_ is not None and window[0] <= open_[0][1]:
                reach = (open_[0][0], max(open_[0][1], window[1]))
                open_ = (reach, open_[1] + rows)
                continue
            if open_ is not None:
                merged.append(((open_[0], *keys), open_[1]))
            open_ = (window, rows)
        if open_ is not None:
            merged.append(((open_[0], *keys), open_[1]))
    return merged


_AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "sum": sum,
    "min": min,
    "max": max,
    "avg": lambda found: sum(found) / len(found),
}


def _summarise(agg: Agg, rows: Sequence[Row]) -> Any:
    if agg.fn == "count_all":
        return len(rows)
    found = [row[agg.column] for row in rows if row[agg.column] is not None]
    if agg.fn == "count":
        return len(found)
    if agg.fn == "rids":
        return tuple(sorted(found))
    if not found:
        return None
    return _AGGREGATES[agg.fn](found)


def _group_row(node: Aggregate, group: _Group, rows: Sequence[ModelRow]) -> ModelRow:
    names = (() if node.window is None else (node.window.name,)) + node.keys
    values = dict(zip(names, group, strict=True))
    values |= {agg.name: _summarise(agg, [row.values for row in rows]) for agg in node.aggs}
    return ModelRow(values, _all_of(row.prov for row in rows))


# ---------------------------------------------------------------------------- pairs


def _matches(node: Join, left: Row, right: Row) -> bool:
    """Tell whether two rows satisfy a join's condition, as SQL has it."""
    for key in node.keys:
        one, two = left[key], right[key]
        if one != two or (one is None and not node.null_safe):
            return False
    return _in_time(node, left, right)


def _in_time(node: Join, left: Row, right: Row) -> bool:
    low, high = node.low_seconds, node.high_seconds
    if low is None and high is None:
        return True
    one, two = left[node.time], right[node.time]
    if one is None or two is None:
        return False
    apart = two - one
    return (low is None or apart >= low * SECOND) and (high is None or apart <= high * SECOND)


class _Pairs:
    """Makes a join's result rows."""

    def __init__(self, node: Join) -> None:
        self._output = [(new, side, name) for new, side, name, _ in join_columns(node)]

    def both(self, left: ModelRow, right: ModelRow) -> ModelRow:
        return ModelRow(self._values(left.values, right.values), _all_of([left.prov, right.prov]))

    def left_only(self, row: ModelRow) -> ModelRow:
        return ModelRow(self._values(row.values, {}), row.prov)

    def right_only(self, row: ModelRow) -> ModelRow:
        return ModelRow(self._values({}, row.values), row.prov)

    def _values(self, left: Row, right: Row) -> Row:
        sides = {"l": left, "r": right, "both": left or right}
        return {new: sides[side].get(name) for new, side, name in self._output}


def _join_tables(node: Join, left: Sequence[ModelRow], right: Sequence[ModelRow]) -> list[ModelRow]:
    pairs = _Pairs(node)
    found: list[ModelRow] = []
    met: set[int] = set()
    for row in left:
        partners = [i for i, other in enumerate(right) if _matches(node, row.values, other.values)]
        met.update(partners)
        match node.how:
            case "leftsemi" if partners:
                prov = _all_of([row.prov, *(right[i].prov for i in partners)])
                found.append(replace(pairs.left_only(row), prov=prov))
            case "leftanti" if not partners:
                found.append(pairs.left_only(row))
            case "inner" | "left" | "right" | "full":
                found += [pairs.both(row, right[i]) for i in partners]
                if not partners and node.how in ("left", "full"):
                    found.append(pairs.left_only(row))
    if node.how in ("right", "full"):
        found += [pairs.right_only(row) for i, row in enumerate(right) if i not in met]
    return found


# ---------------------------------------------------------------------------- free choices


def _frozen(values: Row) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(values.items()))


def _settle(rows: Iterable[ModelRow]) -> list[ModelRow]:
    """Give rows that differ only in where they come from one row with alternatives.

    Raises:
        AssertionError: The values differ too, so what follows would have several results. The
            generator makes no such pipeline.
    """
    done = []
    choices: dict[tuple[Any, ...], dict[Path, list[ModelRow]]] = defaultdict(dict)
    for row in rows:
        if row.world is None:
            done.append(row)
        else:
            choices[row.world.slot].setdefault(row.world.path, []).append(row)
    for worlds in choices.values():
        for versions in zip(*worlds.values(), strict=True):
            assert all(row.values == versions[0].values for row in versions), versions
            done.append(ModelRow(versions[0].values, _any_of(row.prov for row in versions)))
    return done


def _keep_one(slot: tuple[Any, ...], rows: Sequence[ModelRow]) -> list[ModelRow]:
    """Keep any one of some rows: one row if their values agree, else a row per choice."""
    if all(row.values == rows[0].values for row in rows):
        return [ModelRow(rows[0].values, _any_of(row.prov for row in rows))]
    return [replace(row, world=World(slot, (i,))) for i, row in enumerate(rows)]


def _group_by(rows: Iterable[ModelRow], names: Sequence[str]) -> dict[_Group, list[ModelRow]]:
    groups: dict[_Group, list[ModelRow]] = defaultdict(list)
    for row in rows:
        groups[tuple(row.values[name] for name in names)].append(row)
    return groups


# ---------------------------------------------------------------------------- batch


class _Tables:
    """Evaluates a pipeline over tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.choices: dict[tuple[Any, ...], tuple[Path, ...]] = {}

    def rows(self, node: Node) -> list[ModelRow]:
        if isinstance(node, Read):
            return _source_rows(node.source, self._tables[node.source])
        inputs = [self.rows(child) for child in children(node)]
        if isinstance(node, Filter | WithColumn | Select | Rename | Drop | Explode | Watermark):
            return _narrow(node, inputs[0])
        return self._wide(node, *(_settle(rows) for rows in inputs))

    def _wide(
        self, node: Node, rows: list[ModelRow], other: Sequence[ModelRow] = ()
    ) -> list[ModelRow]:
        match node:
            case Union():
                return [*rows, *other]
            case Distinct() | DropDuplicates():
                return self._dedup(node, rows)
            case Aggregate():
                return _aggregate_table(node, rows)
            case Join():
                return _join_tables(node, rows, other)
            case OrderLimit(_, by, n):
                return _sorted(rows, by)[:n]
            case _:
                msg = f"no such operator: {type(node).__name__}"
                raise TypeError(msg)

    def _dedup(self, node: Distinct | DropDuplicates, rows: list[ModelRow]) -> list[ModelRow]:
        names = node.subset if isinstance(node, DropDuplicates) else tuple(columns(node))
        found = []
        for key, group in _group_by(rows, names).items():
            slot = ("dedup", len(self.choices), key)
            kept = _keep_one(slot, group)
            if kept[0].world is not None:
                self.choices[slot] = tuple((i,) for i in range(len(group)))
            found += kept
        return found


def _source_rows(source: str, rows: Iterable[Row]) -> list[ModelRow]:
    return [ModelRow(row, Prov(frozenset([(source, row["rid"])]))) for row in rows]


def _aggregate_table(node: Aggregate, rows: list[ModelRow]) -> list[ModelRow]:
    groups: dict[_Group, list[ModelRow]] = defaultdict(list)
    for group, row in _group_rows(node, rows):
        groups[group].append(row)
    if node.window is None and not node.keys:
        return [_group_row(node, (), rows)]  # a global aggregate answers even for no rows
    found = list(groups.items())
    if node.window is not None and node.window.session:
        found = _merge_sessions(found)
    return [_group_row(node, group, members) for group, members in found]


def _sorted(rows: list[ModelRow], by: Sequence[tuple[str, bool]]) -> list[ModelRow]:
    """Sort as Spark does: nulls first when rising, last when falling."""
    for name, up in reversed(by):
        values = [row.values[name] for row in rows]
        order = sorted(
            range(len(rows)),
            key=[(value is not None, value) for value in values].__getitem__,
            reverse=not up,
        )
        rows = [rows[i] for i in order]
    return rows


def run_batch(spec: Spec, tables: Tables) -> Model:
    """Evaluate a pipeline over tables.

    Args:
        spec: The pipeline. Watermarks in it have no meaning here, as in Spark.
        tables: The rows of each source.

    Returns:
        The rows that Spark returns, each with its provenance.
    """
    evaluation = _Tables(tables)
    rows = evaluation.rows(spec.root)
    return Model(tuple(rows), evaluation.choices)


# ---------------------------------------------------------------------------- Spark's optimizer


@dataclass(frozen=True, repr=False)
class _MarkedBy(Watermark):
    """A watermark below which filters have moved; `mark` is the one that was written."""

    mark: Watermark = field(kw_only=True)


def rearrange(node: Node, conditions: tuple[Expr, ...] = ()) -> Node:
    """Move filters to where Spark's optimizer moves them, `conditions` coming from above.

    The result means the same, but its watermarks see the rows that Spark's see, and its outer
    joins are as strict as Spark makes them.
    """
    match node:
        case Read():
            return _filtered(node, conditions)
        case Filter(child, condition):
            return rearrange(child, conjuncts(condition) + conditions)
        case WithColumn() | Select() | Rename() | Drop():
            defined = _definitions(node)
            below = tuple(substitute(c, defined) for c in conditions)
            return replace(node, child=rearrange(node.child, below))
        case Explode(child, column, name, outer):
            full = Expr(">", (Expr("size", (col(column),)), lit(0)))
            below, above = _split(conditions, lambda c: name not in refs(c))
            below += () if outer else (full,)
            return _filtered(replace(node, child=rearrange(child, below)), above)
        case Union(left, right):
            sides = (rearrange(left, conditions), rearrange(right, conditions))
            return replace(node, left=sides[0], right=sides[1])
        case Watermark(child, delay, column):
            below, above = _split(conditions, lambda c: column not in refs(c))
            mark = node.mark if isinstance(node, _MarkedBy) else node
            moved = _MarkedBy(rearrange(child, below), delay, column, mark=mark)
            return _filtered(moved, above)
        case Aggregate(child, _, keys):
            below, above = _split(conditions, lambda c: refs(c) <= set(keys))
            return _filtered(replace(node, child=rearrange(child, below)), above)
        case Join():
            return _rearrange_join(node, conditions)
        case Distinct(child) | DropDuplicates(child):
            return _filtered(replace(node, child=rearrange(child)), conditions)
        case _:
            msg = f"no streaming pipeline has {type(node).__name__}"
            raise TypeError(msg)


def _filtered(node: Node, conditions: tuple[Expr, ...]) -> Node:
    for condition in conditions:
        node = Filter(node, condition)
    return node


def _split(
    conditions: tuple[Expr, ...], test: Callable[[Expr], bool]
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    return tuple(c for c in conditions if test(c)), tuple(c for c in conditions if not test(c))


def _definitions(node: WithColumn | Select | Rename | Drop) -> dict[str, Expr]:
    match node:
        case WithColumn(_, name, value):
            return {name: value}
        case Select(_, named):
            return dict(named)
        case Rename(_, old, new):
            return {new: col(old)}
        case _:
            return {}


_STRICTER = {
    # how: (how if no null passes on the left, on the right, on both)
    "left": ("left", "inner", "inner"),
    "right": ("inner", "right", "inner"),
    "full": ("left", "right", "inner"),
}
_PUSHED = {"inner": "lr", "left": "l", "right": "r", "full": "", "leftsemi": "l", "leftanti": "l"}
_INFERRED = {
    "inner": "lr",
    "left": "r",
    "right": "l",
    "full": "",
    "leftsemi": "lr",
    "leftanti": "r",
}


def _is_about(origin: Mapping[str, tuple[str, str]], side: str, condition: Expr) -> bool:
    return {origin[name][0] for name in refs(condition)} == {side}


def _rearrange_join(node: Join, conditions: tuple[Expr, ...]) -> Node:
    origin = {new: (side, name) for new, side, name, _ in join_columns(node)}
    of_side: dict[str, tuple[Expr, ...]] = {}
    rest = conditions
    for side in "lr":
        of_side[side], rest = _split(rest, partial(_is_about, origin, side))
    node = replace(node, how=_stricter(node.how, of_side))
    inward = {new: col(name) for new, (_, name) in origin.items()}
    sides = {}
    for side, child in (("l", node.left), ("r", node.right)):
        pushed = of_side[side] if side in _PUSHED[node.how] else ()
        rest += () if side in _PUSHED[node.how] else of_side[side]
        sides[side] = rearrange(child, tuple(substitute(c, inward) for c in pushed))
    inferred = {"l": _key_facts(node, sides["r"]), "r": _key_facts(node, sides["l"])}
    for side in _INFERRED[node.how]:
        sides[side] = rearrange(sides[side], inferred[side])
    return _filtered(replace(node, left=sides["l"], right=sides["r"]), rest)


def _stricter(how: Any, of_side: Mapping[str, tuple[Expr, ...]]) -> Any:
    rejects = {
        side: any(evaluate(c, defaultdict(lambda: None)) is not True for c in found)
        for side, found in of_side.items()
    }
    if how not in _STRICTER or not any(rejects.values()):
        return how
    left, right, both = _STRICTER[how]
    return both if all(rejects.values()) else left if rejects["l"] else right


def _key_facts(node: Join, other: Node) -> tuple[Expr, ...]:
    """List what a side learns about its keys from the other side."""
    known = tuple(c for c in _known(other) if len(refs(c)) == 1 and refs(c) <= set(node.keys))
    return tuple(Expr("isnotnull", (col(key),)) for key in node.keys) + known


def _known(node: Node) -> tuple[Expr, ...]:
    """List conditions that every row of a rearranged pipeline meets."""
    match node:
        case Filter(child, condition):
            return (*_known(child), condition)
        case Read():
            return ()
        case WithColumn() | Select() | Rename() | Drop():
            return _known_after(node)
        case Union(left, right):
            return tuple(c for c in _known(left) if c in _known(right))
        case Aggregate(child, _, keys):
            return tuple(c for c in _known(child) if refs(c) <= set(keys))
        case Join(left, right, how):
            return () if how in ("right", "full") else _known(left)
        case _:
            return _known(children(node)[0])


def _known_after(node: WithColumn | Select | Rename | Drop) -> tuple[Expr, ...]:
    """Carry conditions over to the new names of columns that kept their values."""
    defined = _definitions(node)
    names = {name: defined.get(name, col(name)) for name in columns(node)}
    kept = {value.args[0]: col(name) for name, value in names.items() if value.op == "col"}
    return tuple(substitute(c, kept) for c in _known(node.child) if refs(c) <= set(kept))


def _event_times(node: Node) -> tuple[str, ...]:
    """Name the columns that Spark knows to be event times, in order."""
    match node:
        case Read():
            return ()
        case Watermark(_, _, column):
            return (column,)
        case WithColumn() | Select() | Rename() | Drop():
            before = _event_times(node.child)
            defined = _definitions(node)
            names = {name: defined.get(name, col(name)) for name in columns(node)}
            return tuple(name for name, value in names.items() if _is_time(value, before))
        case Aggregate(child, window, keys):
            before = _event_times(child)
            timed = () if window is None or window.column not in before else (window.name,)
            return timed + tuple(key for key in keys if key in before)
        case Join(left, right):
            times = {"l": _event_times(left), "r": _event_times(right), "both": _event_times(left)}
            return tuple(n for n, side, name, _ in join_columns(node) if name in times[side])
        case _:
            return _event_times(children(node)[0])


def _is_time(value: Expr, before: tuple[str, ...]) -> bool:
    if value.op == "window_time":
        value = value.args[0]
    return value.op == "col" and value.args[0] in before


# ---------------------------------------------------------------------------- streams


@dataclass(frozen=True)
class _Tick:
    """One micro-batch: its rows, and the watermarks (ms) for late rows and for eviction."""

    number: int
    inputs: Mapping[str, list[ModelRow]]
    late_ms: int
    evict_ms: int


class _Operator:
    """A running operator. The watermark it works with is what its inputs let through."""

    def __init__(self, *inputs: _Operator) -> None:
        self.inputs = inputs

    def run(self, tick: _Tick) -> list[ModelRow]:
        raise NotImplementedError

    def reaches(self, origin_ms: int) -> int | None:
        """Tell the watermark behind this operator, given the query's; `None` if it has none."""
        found = [ms for op in self.inputs if (ms := op.reaches(origin_ms)) is not None]
        return min(found, default=None)

    def wants_another(self, before_ms: int, now_ms: int) -> bool:
        """Tell whether a batch without data would change this operator's state."""
        return False

    def all(self) -> Iterator[_Operator]:
        yield self
        for op in self.inputs:
            yield from op.all()


class _Input(_Operator):
    def __init__(self, source: str) -> None:
        super().__init__()
        self._source = source

    def run(self, tick: _Tick) -> list[ModelRow]:
        return tick.inputs.get(self._source, [])


class _Rowwise(_Operator):
    def __init__(self, node: Node, child: _Operator) -> None:
        super().__init__(child)
        self._node = node

    def run(self, tick: _Tick) -> list[ModelRow]:
        return _narrow(self._node, self.inputs[0].run(tick))


class _Both(_Operator):
    def run(self, tick: _Tick) -> list[ModelRow]:
        return [row for op in self.inputs for row in op.run(tick)]


class _Mark(_Operator):
    """A watermark. `seen_ms` is the largest event time of the batch, `None` for no rows."""

    def __init__(self, node: _MarkedBy, child: _Operator) -> None:
        super().__init__(child)
        self.node = node
        self.seen_ms: int | None = None

    def run(self, tick: _Tick) -> list[ModelRow]:
        rows = self.inputs[0].run(tick)
        times = [(row.values[self.node.column] or 0) // _MILLI for row in rows]
        self.seen_ms = max(times, default=None)
        return rows

    def reaches(self, origin_ms: int) -> int | None:
        return origin_ms


class _Stateful(_Operator):
    """An operator with state, which has an input watermark of its own."""

    def input_ms(self, origin_ms: int) -> int:
        # Spark does not ask the operators while the query's watermark is 0.
        found = super().reaches(origin_ms) if origin_ms else 0
        return max(found or 0, 0)

    def late(self, tick: _Tick) -> int:
        return self.input_ms(tick.late_ms) * _MILLI

    def evict(self, tick: _Tick) -> int:
        return self.input_ms(tick.evict_ms) * _MILLI

    def wants_another(self, before_ms: int, now_ms: int) -> bool:
        return self.input_ms(now_ms) > self.input_ms(before_ms)


def _is_past(value: Any, watermark: int) -> bool:
    """Tell whether an event time, or a window's end, is at or below a watermark."""
    at = value[1] if isinstance(value, tuple) else value
    return at is not None and at <= watermark


class _Aggregating(_Stateful):
    """Keeps each group until the watermark passes its window (or its event time)."""

    def __init__(self, node: Aggregate, child: _Operator) -> None:
        super().__init__(child)
        self._node = node
        self._time = 0
        if node.window is None:
            self._time = node.keys.index(_event_times(node.child)[0])
        self._groups: dict[_Group, list[ModelRow]] = {}

    def run(self, tick: _Tick) -> list[ModelRow]:
        late, evict = self.late(tick), self.evict(tick)
        rows = _settle(self.inputs[0].run(tick))
        arrived = [(g, row) for g, row in _group_rows(self._node, rows) if not self._past(g, late)]
        self._add(arrived)
        done = [group for group in self._groups if self._past(group, evict)]
        return [_group_row(self._node, group, self._groups.pop(group)) for group in done]

    def _past(self, group: _Group, watermark: int) -> bool:
        return _is_past(group[self._time], watermark)

    def _add(self, arrived: Iterable[tuple[_Group, ModelRow]]) -> None:
        if self._node.window is not None and self._node.window.session:
            sessions = [*self._groups.items(), *((group, [row]) for group, row in arrived)]
            self._groups = dict(_merge_sessions(sessions))
        else:
            for group, row in arrived:
                self._groups.setdefault(group, []).append(row)


class _Deduplicating(_Stateful):
    """Lets the first row of each key through; among rows of one batch, any one."""

    def __init__(
        self, number: int, keys: tuple[str, ...], time: str | None, child: _Operator
    ) -> None:
        super().__init__(child)
        self._number = number
        self._keys = keys
        self._time = time
        self._seen: set[_Group] = set()
        self._choices: dict[tuple[Any, ...], tuple[Path, ...]] = {}

    def run(self, tick: _Tick) -> list[ModelRow]:
        found = []
        for key, group in self._arrivals(tick).items():
            if key not in self._seen:
                self._seen.add(key)
                slot = (self._number, tick.number, key)
                self._choices[slot] = tuple((i,) for i in range(len(group)))
                found += _keep_one(slot, group)
        if self._time in self._keys:
            at, evict = self._keys.index(self._time), self.evict(tick)
            self._seen = {key for key in self._seen if not _is_past(key[at], evict)}
        return found

    def _arrivals(self, tick: _Tick) -> dict[_Group, list[ModelRow]]:
        rows, late = _settle(self.inputs[0].run(tick)), self.late(tick)
        if self._time is not None:
            rows = [row for row in rows if not _is_past(row.values[self._time], late)]
        return _group_by(rows, self._keys)

    def choices(self) -> dict[tuple[Any, ...], tuple[Path, ...]]:
        """List, for each place where Spark chooses, the ways it may go."""
        return self._choices


class _DeduplicatingWithin(_Deduplicating):
    """Forgets a key some time after the row that was kept, so choices have consequences.

    For each key it follows every way that the choices may have gone: the path of choices, and until
    when the key is remembered on that path.
    """

    def __init__(
        self, number: int, keys: tuple[str, ...], time: str, delay_seconds: int, child: _Operator
    ) -> None:
        super().__init__(number, keys, time, child)
        self._event_time = time
        self._delay = delay_seconds * SECOND
        self._ways: dict[_Group, dict[Path, int | None]] = {}

    def run(self, tick: _Tick) -> list[ModelRow]:
        found = []
        for key, group in self._arrivals(tick).items():
            found += self._choose(key, group)
        evict = self.evict(tick)
        for ways in self._ways.values():
            for path, until in ways.items():
                if until is not None and until <= evict:
                    ways[path] = None
        return found

    def _choose(self, key: _Group, group: list[ModelRow]) -> list[ModelRow]:
        found = []
        after: dict[Path, int | None] = {}
        options = group
        if all(row.values == group[0].values for row in group):
            options = [ModelRow(group[0].values, _any_of(row.prov for row in group))]
        for path, until in self._ways.get(key, {(): None}).items():
            if until is not None:
                after[path] = until
                continue
            for i, row in enumerate(options):
                way = (*path, i)
                after[way] = (row.values[self._event_time] or 0) + self._delay
                found.append(replace(row, world=World((self._number, key), way)))
        self._ways[key] = after
        return found

    def choices(self) -> dict[tuple[Any, ...], tuple[Path, ...]]:
        return {(self._number, key): tuple(ways) for key, ways in self._ways.items()}


class _StaticJoin(_Operator):
    """Joins each micro-batch with a table."""

    def __init__(self, node: Join, left: _Operator, right: _Operator) -> None:
        super().__init__(left, right)
        self._node = node

    def run(self, tick: _Tick) -> list[ModelRow]:
        tables = (op.run(tick) for op in self.inputs if isinstance(op, _Table))
        if self._node.how in ("inner", "leftsemi") and not all(tables):
            return []  # Spark does not even read the stream then, so watermarks stand still.
        left, right = (_settle(op.run(tick)) for op in self.inputs)
        return _join_tables(self._node, left, right)


class _Table(_Operator):
    """A static source with the filters on it; the same rows in every micro-batch."""

    def __init__(self, node: Node, tables: Tables) -> None:
        super().__init__()
        self._rows = _Tables(tables).rows(node)

    def run(self, tick: _Tick) -> list[ModelRow]:
        return self._rows


@dataclass
class _Held:
    """A row in a join's state, and whether it has found a partner."""

    row: ModelRow
    matched: bool


class _StreamJoin(_Stateful):
    """Joins two streams; rows wait in state until the watermark rules further partners out."""

    def __init__(self, node: Join, left: _Operator, right: _Operator) -> None:
        super().__init__(left, right)
        self._node = node
        self._pairs = _Pairs(node)
        self._times = (_event_times(node.left)[0], _event_times(node.right)[0])
        timed = [
            key for key in node.keys if key in (*_event_times(node.left), *_event_times(node.right))
        ]
        self._timed_key = timed[0] if timed else None
        self._held: tuple[list[_Held], list[_Held]] = ([], [])

    def run(self, tick: _Tick) -> list[ModelRow]:
        late = self.late(tick)
        left, right = (
            [row for row in _settle(op.run(tick)) if not _is_past(row.values[time], late)]
            for op, time in zip(self.inputs, self._times, strict=True)
        )
        found = (
            self._semi(left, right) if self._node.how == "leftsemi" else self._match(left, right)
        )
        return found + self._throw_away(self.input_ms(tick.evict_ms))

    def _fits(self, left: Row, right: Row) -> bool:
        # Keys are compared as bytes, so null equals null here, unlike in SQL.
        same = all(left[key] == right[key] for key in self._node.keys)
        return same and _in_time(self._node, left, right)

    def _match(self, left: list[ModelRow], right: list[ModelRow]) -> list[ModelRow]:
        mine, theirs = self._held
        found = []
        arrived = [_Held(row, matched=False) for row in left]
        for held in arrived:
            found += self._meet([held], theirs)
        mine += arrived
        for row in right:
            held = _Held(row, matched=False)
            found += self._meet(mine, [held])
            theirs.append(held)
        return found

    def _meet(self, left: list[_Held], right: list[_Held]) -> list[ModelRow]:
        found = []
        for one, two in itertools.product(left, right):
            if self._fits(one.row.values, two.row.values):
                one.matched = two.matched = True
                found.append(self._pairs.both(one.row, two.row))
        return found

    def _semi(self, left: list[ModelRow], right: list[ModelRow]) -> list[ModelRow]:
        """Return each left row once, in the batch in which it first has a partner."""
        mine, theirs = self._held
        theirs += [_Held(row, matched=False) for row in right]
        mine += [_Held(row, matched=False) for row in left]
        found = []
        for held in mine:
            partners = [h.row for h in theirs if self._fits(held.row.values, h.row.values)]
            if partners and not held.matched:
                held.matched = True
                several = Prov(some_of=frozenset([tuple(dict.fromkeys(p.refs for p in partners))]))
                prov = _all_of([held.row.prov, several])
                found.append(ModelRow(self._pairs.left_only(held.row).values, prov))
        return found

    def _throw_away(self, evict_ms: int) -> list[ModelRow]:
        """Forget rows that can have no more partners; an outer join returns the lonely ones."""
        found = []
        makers = (self._pairs.left_only, self._pairs.right_only)
        outer = (("left", "full"), ("right", "full"))
        for side, bound in enumerate(self._bounds(evict_ms)):
            gone = [h for h in self._held[side] if self._is_done(side, h.row.values, bound)]
            self._held[side][:] = [h for h in self._held[side] if h not in gone]
            if self._node.how in outer[side]:
                found += [makers[side](h.row) for h in gone if not h.matched]
        return found

    def _is_done(self, side: int, row: Row, bound_ms: int | None) -> bool:
        value = row[self._times[side] if self._timed_key is None else self._timed_key]
        return bound_ms is not None and _is_past(value, bound_ms * _MILLI)

    def _bounds(self, input_ms: int) -> tuple[int | None, int | None]:
        """Tell up to which event time (ms) the left and the right rows are done."""
        low, high = self._node.low_seconds, self._node.high_seconds
        if self._timed_key is not None:
            return input_ms, input_ms
        # One millisecond less than the bound: the bound itself may still find a partner.
        left = None if high is None else input_ms - high * 1000 - 1
        right = None if low is None else input_ms + low * 1000 - 1
        return left, right

    def reaches(self, origin_ms: int) -> int | None:
        input_ms = super().reaches(origin_ms)
        if input_ms is None:
            return None
        return min(ms for ms in (*self._bounds(input_ms), input_ms) if ms is not None)


class _Planner:
    """Turns a rearranged pipeline into running operators.

    `needed` is what the operators above read. Spark prunes the other columns, and with them, below
    `dropDuplicates`, what it would know of lateness.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._numbers = itertools.count()

    def plan(self, node: Node, needed: frozenset[str]) -> _Operator:
        if not _has_stream(node):
            return _Table(node, self._tables)
        match node:
            case Read(source):
                return _Input(source)
            case Filter(child, condition):
                return _Rowwise(node, self.plan(child, needed | refs(condition)))
            case WithColumn() | Select() | Rename() | Drop():
                return _Rowwise(node, self.plan(node.child, _read_by(node, needed)))
            case Explode(child, column, name):
                return _Rowwise(node, self.plan(child, (needed - {name}) | {column}))
            case Union(left, right):
                return _Both(self.plan(left, needed), self.plan(right, needed))
            case _MarkedBy(child, _, column):
                return _Mark(node, self.plan(child, needed | {column}))
            case Aggregate(child, window, keys, aggs):
                read = {*keys, *(a.column for a in aggs)}
                read |= set() if window is None else {window.column}
                return _Aggregating(node, self.plan(child, frozenset(read)))
            case Distinct() | DropDuplicates():
                return self._dedup(node, needed)
            case Join():
                return self._join(node, needed)
            case _:
                msg = f"no streaming pipeline has {type(node).__name__}"
                raise TypeError(msg)

    def _dedup(self, node: Distinct | DropDuplicates, needed: frozenset[str]) -> _Operator:
        within = isinstance(node, DropDuplicates) and node.within_watermark
        keys = node.subset if isinstance(node, DropDuplicates) else tuple(columns(node))
        times = _event_times(node.child)
        read = needed | set(keys) | (set(times) if within else set())
        child = self.plan(node.child, read)
        visible = next((time for time in times if time in read), None)
        if within:
            [delay] = {n.delay_seconds for n in walk(node) if isinstance(n, Watermark)}
            return _DeduplicatingWithin(next(self._numbers), keys, times[0], delay, child)
        return _Deduplicating(next(self._numbers), keys, visible, child)

    def _join(self, node: Join, needed: frozenset[str]) -> _Operator:
        read = {"l": set(node.keys), "r": set(node.keys)}
        if node.low_seconds is not None or node.high_seconds is not None:
            read = {side: names | {node.time} for side, names in read.items()}
        for new, side, name, _ in join_columns(node):
            if new in needed and side != "both":
                read[side].add(name)
        left = self.plan(node.left, frozenset(read["l"]))
        right = self.plan(node.right, frozenset(read["r"]))
        static = any(not _has_stream(side) for side in (node.left, node.right))
        return _StaticJoin(node, left, right) if static else _StreamJoin(node, left, right)


def _has_stream(node: Node) -> bool:
    return any(isinstance(n, Read) and not n.static for n in walk(node))


def _read_by(node: WithColumn | Select | Rename | Drop, needed: frozenset[str]) -> frozenset[str]:
    defined = _definitions(node)
    return frozenset().union(*(refs(defined.get(name, col(name))) for name in needed))


class _Query:
    """Runs the micro-batches of a finite stream."""

    def __init__(self, root: _Operator) -> None:
        self._root = root
        self._marks = [op for op in root.all() if isinstance(op, _Mark)]
        self._reached: dict[Watermark, int] = {}
        self._before_ms = 0
        self._now_ms = 0
        self.batches: list[MicroBatch] = []

    def run(self, inputs: Mapping[str, list[ModelRow]], *, has_data: bool) -> None:
        tick = _Tick(len(self.batches), inputs, self._before_ms, self._now_ms)
        for op in self._marks:
            op.seen_ms = None
        rows = self._root.run(tick)
        self.batches.append(MicroBatch(tick.number, self._now_ms, has_data, tuple(rows)))
        self._before_ms = self._now_ms
        self._advance()

    def wants_another(self) -> bool:
        return any(op.wants_another(self._before_ms, self._now_ms) for op in self._root.all())

    def _advance(self) -> None:
        for op in self._marks:
            if op.seen_ms is not None:
                reached = op.seen_ms - op.node.delay_seconds * 1000
                before = self._reached.get(op.node.mark, reached)
                self._reached[op.node.mark] = max(before, reached)
        if self._marks:
            slowest = min(self._reached.get(op.node.mark, 0) for op in self._marks)
            self._now_ms = max(self._now_ms, slowest)


def run_stream(spec: Spec, batches: Batches) -> Model:
    """Evaluate a pipeline over micro-batches, in append mode, until the stream ends.

    Args:
        spec: The pipeline.
        batches: For each source its micro-batches in order; a static source has just its rows.
            A source whose batches have run out takes part with no rows.

    Returns:
        The rows that Spark returns, together and per micro-batch, each with its provenance.
    """
    tables: Any = {name: batches[name] for name in spec.statics}
    root = _Planner(tables).plan(rearrange(spec.root), frozenset(columns(spec.root)))
    query = _Query(root)
    streams = {name: [_source_rows(name, rows) for rows in batches[name]] for name in spec.sources}
    for number in range(max(map(len, streams.values()))):
        query.run({n: s[number] for n, s in streams.items() if number < len(s)}, has_data=True)
    while query.wants_another():
        query.run({}, has_data=False)
    rows = tuple(row for batch in query.batches for row in batch.rows)
    choices: dict[tuple[Any, ...], tuple[Path, ...]] = {}
    for op in root.all():
        if isinstance(op, _Deduplicating):
            choices |= op.choices()
    return Model(rows, choices, tuple(query.batches))


# ---------------------------------------------------------------------------- comparing


def plain(value: Any) -> Any:
    """Bring a value that Spark returned into the model's form.

    Timestamps become microseconds since 1970 (those without a zone are taken as local time, as
    Spark gives them to Python), structs and arrays become tuples.
    """
    if isinstance(value, dt.datetime):
        return (value.astimezone(dt.timezone.utc) - _EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return tuple(plain(item) for item in value) if isinstance(value, tuple | list) else value


Found: TypeAlias = tuple[Mapping[str, Any], Iterable[Ref] | None]
"""A row that somebody found, with its source rows; `None` where only the values are known."""


def agree(model: Model, actual: Iterable[Found]) -> bool:
    """Tell whether rows and their provenance are what the model says.

    Rows are compared as a multiset. Where Spark may choose, any one consistent choice of rows is
    accepted; which of several equal rows was kept is judged for each result row by itself.

    Args:
        model: What `run_batch` or `run_stream` returned.
        actual: Each row's values by column, and its source rows. `None` for the source rows
            compares the values only.

    Returns:
        Whether there is a one-to-one pairing of model rows and actual rows that fits.
    """
    return explain(model, actual) == ""


def explain(model: Model, actual: Iterable[Found]) -> str:
    """Say how rows differ from the model; empty where they agree."""
    found = [_Actual.of(values, source) for values, source in actual]
    if _Comparison(model, found).agrees():
        return ""
    expected = [
        f"  {row.values} from {sorted(row.refs)}{'' if row.prov.is_exact else ' or so'}"
        f"{'' if row.world is None else f' if {row.world}'}"
        for row in model.rows
    ]
    got = [f"  {dict(a.values)} from {a.refs and sorted(a.refs)}" for a in found]
    return "\n".join(["expected:", *sorted(expected), "found:", *sorted(got)])


@dataclass(frozen=True)
class _Actual:
    values: tuple[tuple[str, Any], ...]
    refs: Refs | None

    @classmethod
    def of(cls, values: Mapping[str, Any], source: Iterable[Ref] | None) -> _Actual:
        made = {name: plain(value) for name, value in values.items()}
        return cls(_frozen(made), None if source is None else frozenset(source))

    def fits(self, row: ModelRow) -> bool:
        if _frozen(row.values) != self.values:
            return False
        return self.refs is None or row.prov.admits(self.refs)


class _Comparison:
    """Looks for a choice in each slot under which model rows and actual rows can be paired."""

    def __init__(self, model: Model, actual: list[_Actual]) -> None:
        self._actual = actual
        self._certain = [row for row in model.rows if row.world is None]
        self._slots = [
            self._options(model, slot)
            for slot in dict.fromkeys(row.world.slot for row in model.rows if row.world is not None)
        ]

    def _options(self, model: Model, slot: tuple[Any, ...]) -> list[list[ModelRow]]:
        options: list[list[ModelRow]] = []
        for leaf in model.leaves[slot]:
            rows = self._rows_of(model, slot, leaf)
            if rows not in options:
                options.append(rows)
        return options

    @staticmethod
    def _rows_of(model: Model, slot: tuple[Any, ...], leaf: Path) -> list[ModelRow]:
        return [
            row
            for row in model.rows
            if row.world is not None
            and row.world.slot == slot
            and row.world.path == leaf[: len(row.world.path)]
        ]

    def agrees(self) -> bool:
        room = Counter(a.values for a in self._actual)
        room.subtract(_frozen(row.values) for row in self._certain)
        if any(count < 0 for count in room.values()):
            return False
        return self._choose(0, room, self._certain, set())

    def _choose(
        self, number: int, room: Counter[Any], rows: list[ModelRow], failed: set[Any]
    ) -> bool:
        """Try the choices of one slot after the other, as long as their values are wanted."""
        if number == len(self._slots):
            return not any(room.values()) and self._can_pair(rows)
        known = all(a.refs is None for a in self._actual)
        state = (number, frozenset((v, c) for v, c in room.items() if c))
        if known and state in failed:
            return False
        for option in self._slots[number]:
            left = Counter(room)
            left.subtract(_frozen(row.values) for row in option)
            wanted = all(any(a.fits(row) for a in self._actual) for row in option)
            wanted = wanted and all(count >= 0 for count in left.values())
            if wanted and self._choose(number + 1, left, rows + option, failed):
                return True
        failed.add(state)
        return False

    def _can_pair(self, rows: list[ModelRow]) -> bool:
        """Pair model rows with actual rows one to one, by augmenting paths."""
        if len(rows) != len(self._actual):
            return False
        fits = [[j for j, a in enumerate(self._actual) if a.fits(row)] for row in rows]
        partner: dict[int, int] = {}

        def place(i: int, tried: set[int]) -> bool:
            for j in fits[i]:
                if j not in tried:
                    tried.add(j)
                    if j not in partner or place(partner[j], tried):
                        partner[j] = i
                        return True
            return False

        return all(place(i, set()) for i in range(len(rows)))
