"""Random pipelines over every type, built three times: traced, plain, and with ids carried by hand.

The third is the model: a plain Spark pipeline whose rows have one column more, the ids of the
source rows behind them, which each step here puts together in the open. Where Spark may keep any of
several equal rows, the model carries them all.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql import types as T

import clew
from clew.exceptions import ClewError
from proof.typed import BY_NAME, Kind

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

IDS = "_ids"
CHOICES = "_choices"
_EMPTY = "CAST(array() AS ARRAY<BIGINT>)"
_GROUPED = ("count", "sum", "min", "max", "distinct", "list", "avg")


@dataclass(frozen=True)
class Threefold:
    """One pipeline, three times.

    Attributes:
        traced: As clew records it.
        plain: The same verbs on Spark's own frames.
        model: With the ids of source rows in one more column.
        kinds: What its columns hold, where that is a pool of values.
        unique: No two rows have the same ids.
        chosen: The model's ids are all the rows that Spark may have kept.
        loose: Which of equal values a row shows is up to Spark.
        steps: The verbs, for people.
    """

    traced: Any
    plain: DataFrame
    model: DataFrame
    kinds: dict[str, Kind | None]
    unique: bool = True
    chosen: bool = False
    loose: bool = False
    steps: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return list(self.kinds)

    def type_of(self, name: str) -> T.DataType:
        return self.plain.schema[name].dataType


def _attribute(frame: Any, name: str) -> Any:
    # PySpark knows attributes by their exact names, and the model may spell a column otherwise.
    return getattr(frame, name) if name in frame.columns else frame[name]


@dataclass
class Generator:
    """Makes random pipelines over two sources.

    Attributes:
        rng: Where choices come from.
        sensitive: Names of columns that differ in case are different names.
        streaming: Only what Spark does with streams.
        refused: Why steps were refused.
        fresh: How many names were made up.
    """

    rng: random.Random
    sensitive: bool
    streaming: bool = False
    refused: Counter[str] = field(default_factory=Counter)
    fresh: int = 0

    def pipeline(self, left: Threefold, right: Threefold) -> Threefold:
        """Make a pipeline; what Spark does not accept is tried otherwise."""
        out = self._begun(left)
        steps = self.rng.choice((1, 2, 2, 3, 3, 4))
        for _ in range(steps):
            if out.chosen and self.rng.random() < 0.5:
                break
            out = self._step(out, right)
        return out

    def _step(self, out: Threefold, right: Threefold) -> Threefold:
        verbs = [self._filter, self._filter, self._compute, self._project]
        if not out.chosen:
            verbs += [self._union, self._explode, self._distinct]
            verbs += [self._group, self._group, self._group]
            others = [self._join, self._join, self._join, self._semi, self._semi, self._set_verb]
            verbs += [partial(verb, right=right) for verb in others]
        if self.streaming:
            verbs = [self._filter, self._compute, self._project, self._union, self._explode]
        for _ in range(8):
            try:
                return self.rng.choice(verbs)(out)
            except (AnalysisException, _NotHere):
                continue
            except ClewError as error:
                self.refused[first_line(error)] += 1
        return out

    # How a column is named

    def _way(self, name: str) -> tuple[str, Callable[[Any], Any]]:
        quoted = "`" + name.replace("`", "``") + "`"
        ways: list[tuple[str, Callable[[Any], Any]]] = [
            (f"F.col({quoted})", lambda _: F.col(quoted)),
            (f"frame[{name!r}]", lambda frame: frame[quoted if "." in name else name]),
        ]
        if name.isidentifier():
            ways += [
                (repr(name), lambda _: name),
                (f"frame.{name}", lambda frame: _attribute(frame, name)),
            ]
            if not self.sensitive:
                ways.append((f"F.col({name.upper()!r})", lambda _: F.col(name.upper())))
                ways.append((f"frame[{name.upper()!r}]", lambda frame: frame[name.upper()]))
        return self.rng.choice(ways)

    def _column(self, name: str) -> tuple[str, Callable[[Any], Column]]:
        text, way = self._way(name)

        def column(frame: Any) -> Column:
            found = way(frame)
            return F.col(found) if isinstance(found, str) else found

        return text, column

    def _new(self) -> str:
        self.fresh += 1
        form = self.rng.choice(("c{}", "c{}", "C{}", "c {}", "c.{}", "c`{}"))
        return form.format(self.fresh)

    def _some(self, out: Threefold, wanted: Callable[[T.DataType], bool] = lambda _: True) -> str:
        names = [n for n in out.names if wanted(out.type_of(n))]
        if not names:
            raise _NotHere
        return self.rng.choice(names)

    # Row by row

    def _begun(self, out: Threefold) -> Threefold:
        for _ in range(8):
            try:
                return self._narrow(out)
            except ClewError as error:
                self.refused[first_line(error)] += 1
        return out

    def _narrow(self, out: Threefold) -> Threefold:
        names = self.rng.sample([n for n in out.names if n != "rid"], self.rng.choice((2, 3, 4)))
        names += ["rid"] if self.rng.random() < 0.5 else []
        names += [n for n in ("at",) if self.streaming and n not in names]
        return self._selected(out, names)

    def _selected(self, out: Threefold, names: list[str]) -> Threefold:
        ways = [self._way(name) for name in names]
        label = f"select({', '.join(text for text, _ in ways)})"
        extra = CHOICES if out.chosen else IDS
        plain = out.plain.select(*[way(out.plain) for _, way in ways])
        return replace(
            out,
            plain=plain,
            model=out.model.select(*[way(out.model) for _, way in ways], extra),
            traced=_traced(lambda: out.traced.select(*[way(out.traced) for _, way in ways])),
            kinds=_kinds(plain, [out.kinds[name] for name in names]),
            steps=(*out.steps, label),
        )

    def _project(self, out: Threefold) -> Threefold:
        names = self.rng.sample(out.names, self.rng.randint(1, len(out.names)))
        return self._selected(out, names)

    def _each(self, out: Threefold, verb: Callable[[Any], Any], label: str) -> dict[str, Any]:
        plain, model = verb(out.plain), verb(out.model)
        traced = _traced(lambda: verb(out.traced))
        return {
            "traced": traced,
            "plain": plain,
            "model": model,
            "steps": (*out.steps, label),
        }

    def _filter(self, out: Threefold) -> Threefold:
        name = self._some(out)
        text, column = self._column(name)
        kind = out.kinds[name]
        forms: list[tuple[str, Callable[[Any], Column]]] = [
            (f"{text} is not null", lambda f: column(f).isNotNull()),
            (f"{text} is null", lambda f: column(f).isNull()),
        ]
        if kind is not None and kind.ordered and not isinstance(out.type_of(name), T.VariantType):
            value = kind.value(self.rng.choice(kind.pool))
            forms = [
                (f"{text} = {value}", lambda f: column(f) == F.expr(value)),
                (f"{text} <> {value}", lambda f: column(f) != F.expr(value)),
                (f"{text} <=> {value}", lambda f: column(f).eqNullSafe(F.expr(value))),
                (f"{text} >= {value}", lambda f: column(f) >= F.expr(value)),
                (f"not {text} < {value}", lambda f: ~(column(f) < F.expr(value))),
            ]
        label, condition = self.rng.choice(forms)
        verb = self.rng.choice(("filter", "where"))
        made = self._each(out, lambda f: getattr(f, verb)(condition(f)), f"filter({label})")
        return replace(out, **made)

    def _compute(self, out: Threefold) -> Threefold:
        name, new = self._some(out), self._new()
        text, column = self._column(name)
        kind = out.type_of(name)
        # What looks deeper than comparing does not go with values that are up to Spark.
        forms: list[tuple[str, Callable[[Column], Column]]] = [
            ("struct", lambda c: F.struct(c.alias("f"), F.lit(1).alias("g"))),
            ("array", F.array),
            ("isnull", F.isnull),
        ]
        if isinstance(kind, T.StructType):
            inner = kind.fields[0].name
            forms = [(f".{inner}", lambda c: c.getField(inner)), (".*", lambda c: c[inner])]
        elif not out.loose:
            forms += self._looking(kind)
        label, function = self.rng.choice(forms)
        value = self._each(
            out,
            lambda f: f.withColumn(new, function(column(f))),
            f"withColumn({new!r}, {label} of {text})",
        )
        return replace(out, **value, kinds={**out.kinds, new: None})

    @staticmethod
    def _looking(kind: T.DataType) -> list[tuple[str, Callable[[Column], Column]]]:
        if isinstance(kind, T.TimestampType):
            return [
                ("day", lambda c: F.date_trunc("day", c)),
                ("date", lambda c: c.cast("date")),
                ("text", lambda c: c.cast("string")),
                ("local", lambda c: c.cast("timestamp_ntz")),
                ("hour", F.hour),
            ]
        if isinstance(kind, T.TimestampNTZType):
            return [("instant", lambda c: c.cast("timestamp")), ("date", lambda c: c.cast("date"))]
        if isinstance(kind, T.StringType):
            return [("upper", F.upper), ("length", F.length), ("number", lambda c: c.cast("int"))]
        if isinstance(kind, (T.IntegralType, T.FractionalType)):
            return [
                ("plus", lambda c: c + F.lit(1)),
                ("by zero", lambda c: F.lit(1) / c),
                ("byte", lambda c: c.cast("tinyint")),
                ("text", lambda c: c.cast("string")),
            ]
        if isinstance(kind, T.ArrayType):
            return [("size", F.size), ("first", lambda c: c[0])]
        if isinstance(kind, T.MapType):
            return [("keys", lambda c: F.array_sort(F.map_keys(c)))]
        return []

    def _explode(self, out: Threefold) -> Threefold:
        name, new = self._some(out, lambda k: isinstance(k, T.ArrayType)), self._new()
        text, column = self._column(name)
        verb = self.rng.choice((F.explode, F.explode_outer))
        star = ("*",) if self.rng.random() < 0.5 else tuple(self._quoted(out.names))
        extra = () if star == ("*",) else (IDS,)

        def exploded(frame: Any, more: tuple[str, ...] = ()) -> Any:
            return frame.select(*star, *more, verb(column(frame)).alias(new))

        plain, model = exploded(out.plain), exploded(out.model, extra)
        return replace(
            out,
            traced=_traced(lambda: exploded(out.traced)),
            plain=plain,
            model=model,
            kinds={**out.kinds, new: None},
            unique=False,
            steps=(*out.steps, f"explode({text})"),
        )

    @staticmethod
    def _quoted(names: list[str]) -> list[str]:
        return ["`" + name.replace("`", "``") + "`" for name in names]

    # Several rows

    def _group(self, out: Threefold) -> Threefold:
        wanted = self.rng.choice((1, 1, 2, 3))
        names = self.rng.sample(out.names, min(wanted, len(out.names)))
        keys = [self._way(name) for name in names]
        kinds: dict[str, Kind | None] = {name: out.kinds[name] for name in names}
        window = self._window(out) if self.rng.random() < 0.3 else None
        if window is not None and "window" not in out.names:
            keys.append(window)
            kinds["window"] = None
        verb = "groupBy"
        if len(keys) == 2 and window is None and self.rng.random() < 0.2:
            verb = self.rng.choice(("rollup", "cube"))
        aggregates, more = self._aggregates(out)
        gathered = F.flatten(F.collect_list(IDS)).alias(IDS)

        def grouped(frame: Any) -> Any:
            return getattr(frame, verb)(*[way(frame) for _, way in keys])

        plain = grouped(out.plain).agg(*[each(out.plain) for _, each in aggregates])
        model = grouped(out.model).agg(*[each(out.model) for _, each in aggregates], gathered)
        traced = _traced(
            lambda: grouped(out.traced).agg(*[each(out.traced) for _, each in aggregates])
        )
        by = ", ".join(text for text, _ in keys)
        what = ", ".join(text for text, _ in aggregates)
        return replace(
            out,
            traced=traced,
            plain=plain,
            model=model,
            kinds=_kinds(plain, [*kinds.values(), *more.values()]),
            # Rows in several windows or levels, or in none, may make rows of the same ids.
            unique=out.unique and verb == "groupBy" and window is None,
            loose=True,
            steps=(*out.steps, f"{verb}({by}).agg({what})"),
        )

    def _window(self, out: Threefold) -> tuple[str, Callable[[Any], Column]] | None:
        times = [n for n in out.names if isinstance(out.type_of(n), T.TimestampType)]
        times += [n for n in out.names if isinstance(out.type_of(n), T.TimestampNTZType)]
        if not times:
            return None
        name = self.rng.choice(times)
        text, column = self._column(name)
        size = self.rng.choice((("1 hour",), ("1 day",), ("1 hour", "30 minutes")))
        return f"window({text}, {size})", lambda f: F.window(column(f), *size)

    def _aggregates(self, out: Threefold) -> tuple[list[Any], dict[str, Kind | None]]:
        made: list[Any] = []
        kinds: dict[str, Kind | None] = {}
        for _ in range(self.rng.choice((1, 1, 2))):
            name, new, word = self._some(out), self._new(), self.rng.choice(_GROUPED)
            text, column = self._column(name)
            call = self._call(word, out.type_of(name), out.kinds[name])
            kept = out.kinds[name] if call in (F.min, F.max) else None
            label = f"{getattr(call, '__name__', word)}({text})"
            made.append((label, lambda f, c=column, g=call, n=new: g(c(f)).alias(n)))
            kinds[new] = kept
        return made, kinds

    @staticmethod
    def _call(word: str, kind: T.DataType, pool: Kind | None) -> Callable[[Column], Column]:
        if word in ("sum", "avg") and isinstance(kind, (T.IntegralType, T.DecimalType)):
            return F.try_sum if word == "sum" else F.try_avg
        if pool is None or not pool.ordered:
            return F.count
        if word == "list":
            return lambda c: F.sort_array(F.collect_list(c))
        # Spark without generated code does not copy the texts and arrays that `min` and `max` keep.
        if word in ("min", "max") and not isinstance(kind, (T.NumericType, T.DateType)):
            return F.count
        calls = {"min": F.min, "max": F.max, "distinct": F.count_distinct}
        return calls.get(word, F.count)

    def _distinct(self, out: Threefold) -> Threefold:
        names = self.rng.sample(out.names, self.rng.randint(1, min(3, len(out.names))))
        if any(isinstance(out.type_of(n), T.VariantType) for n in names):
            raise _NotHere
        quoted = self._quoted(names)
        label: str
        verb: Callable[[Any], Any]
        if self.rng.random() < 0.5:
            label, verb = "select.distinct", lambda f: f.select(*quoted).distinct()
        else:
            label, verb = (
                "dropDuplicates.select",
                lambda f: f.dropDuplicates(names).select(*quoted),
            )
        model = out.model.groupBy(*quoted).agg(F.collect_list(IDS).alias(CHOICES))
        plain = verb(out.plain)
        return replace(
            out,
            plain=plain,
            traced=_traced(lambda: verb(out.traced)),
            model=model,
            kinds={name: out.kinds[name] for name in names},
            chosen=True,
            loose=True,
            steps=(*out.steps, f"{label}({', '.join(names)})"),
        )

    def _union(self, out: Threefold) -> Threefold:
        other = self._filter(out)
        by_name = self.rng.random() < 0.5
        if by_name:
            other = self._selected(other, self.rng.sample(other.names, len(other.names)))
        verb = "unionByName" if by_name else "union"
        return replace(
            out,
            plain=getattr(out.plain, verb)(other.plain),
            traced=_traced(lambda: getattr(out.traced, verb)(other.traced)),
            model=getattr(out.model, verb)(other.model),
            unique=False,
            steps=(*out.steps, f"{verb}[{' > '.join(other.steps[len(out.steps) :])}]"),
        )

    # Two frames

    def _partner(self, out: Threefold, right: Threefold) -> tuple[Threefold, str]:
        """Take a column of the pool that the other frame has too, and few of its columns."""
        shared = [n for n, kind in out.kinds.items() if kind is not None and n in BY_NAME]
        shared = [n for n in shared if BY_NAME[n].ordered and out.kinds[n] is BY_NAME[n]]
        if not shared:
            raise _NotHere
        key = self.rng.choice(shared)
        taken = {n.lower() for n in out.names}
        own = [n for n in right.names if n not in taken]
        other = self._selected(right, [key, *self.rng.sample(own, min(len(own), 2))])
        if self.rng.random() < 0.4:
            other = self._filter(other)
        return other, key

    def _join(self, out: Threefold, right: Threefold) -> Threefold:
        how = self.rng.choice(("inner", "inner", "left", "right", "full", "leftanti"))
        other, key = self._partner(out, right)
        on, label, renamed = self._on(key)
        if renamed:
            other = self._renamed(other, key, renamed)
        elif how == "full":
            raise _NotHere  # the key is then put together of both sides
        theirs = other.model.withColumnRenamed(IDS, "_more")
        plain = out.plain.join(other.plain, on(out.plain, other.plain), how)
        model = out.model.join(theirs, on(out.model, theirs), how)
        if how != "leftanti":
            both = F.expr(f"concat(coalesce({IDS}, {_EMPTY}), coalesce(_more, {_EMPTY}))")
            model = model.withColumn(IDS, both).drop("_more")
        traced = _traced(lambda: out.traced.join(other.traced, on(out.traced, other.traced), how))
        more = {} if how == "leftanti" else other.kinds
        return replace(
            out,
            traced=traced,
            plain=plain,
            model=model,
            kinds={n: {**more, **out.kinds}.get(n) for n in plain.columns},
            unique=out.unique and other.unique,
            loose=True,
            steps=(*out.steps, f"{how} join[{' > '.join(other.steps)}]({label})"),
        )

    def _on(self, key: str) -> tuple[Callable[[Any, Any], Any], str, str]:
        kind = self.rng.choice(("name", "names", "condition", "condition", "null-safe"))
        if kind == "name":
            return lambda _a, _b: key, repr(key), ""
        if kind == "names":
            return lambda _a, _b: [key], repr([key]), ""
        other = f"r_{self.fresh}"
        self.fresh += 1
        (one, a), (two, b) = self._column(key), self._column(other)
        if kind == "condition":
            return lambda f, g: a(f) == b(g), f"{one} == {two}", other
        return lambda f, g: a(f).eqNullSafe(b(g)), f"{one} <=> {two}", other

    def _renamed(self, out: Threefold, old: str, new: str) -> Threefold:
        made = self._each(out, lambda f: f.withColumnRenamed(old, new), f"rename({old}, {new})")
        return replace(out, **made, kinds=_kinds(made["plain"], list(out.kinds.values())))

    def _semi(self, out: Threefold, right: Threefold) -> Threefold:
        if not out.unique:
            raise _NotHere
        other, key = self._partner(out, right)
        on, label, renamed = self._on(key)
        if renamed:
            other = self._renamed(other, key, renamed)
        plain = out.plain.join(other.plain, on(out.plain, other.plain), "semi")
        theirs = other.model.withColumnRenamed(IDS, "_more")
        pairs = out.model.join(theirs, on(out.model, theirs), "inner")
        partners = pairs.groupBy(IDS).agg(F.flatten(F.collect_list("_more")).alias("_more"))
        kept = out.model.join(theirs, on(out.model, theirs), "semi").join(partners, IDS)
        model = kept.withColumn(IDS, F.concat(IDS, "_more")).drop("_more")
        traced = _traced(
            lambda: out.traced.join(other.traced, on(out.traced, other.traced), "semi")
        )
        return replace(
            out,
            traced=traced,
            plain=plain,
            model=model.select(*self._quoted(out.names), IDS),
            steps=(*out.steps, f"semi join[{' > '.join(other.steps)}]({label})"),
        )

    def _set_verb(self, out: Threefold, right: Threefold) -> Threefold:
        verb = self.rng.choice(("intersect", "subtract"))
        _, key = self._partner(out, right)
        one, two = self._selected(out, [key]), self._selected(right, [key])
        quoted = f"`{key}`"
        mine = one.model.groupBy(quoted).agg(F.collect_list(IDS).alias(CHOICES))
        grouped = two.model.groupBy(F.col(quoted).alias("_k"))
        theirs = grouped.agg(F.collect_list(IDS).alias("_more"))
        same = F.expr(f"{quoted} <=> _k")
        if verb == "subtract":
            model = mine.join(theirs, same, "leftanti")
        else:
            pairs = f"flatten(transform({CHOICES}, x -> transform(_more, y -> concat(x, y))))"
            model = mine.join(theirs, same).select(quoted, F.expr(pairs).alias(CHOICES))
        return replace(
            one,
            plain=getattr(one.plain, verb)(two.plain),
            traced=_traced(lambda: getattr(one.traced, verb)(two.traced)),
            model=model,
            chosen=True,
            loose=True,
            steps=(*one.steps, f"{verb}[{' > '.join(two.steps)}]"),
        )


def _kinds(frame: DataFrame, kinds: list[Kind | None]) -> dict[str, Kind | None]:
    """Give the columns of a frame their pools, in order: a name may be spelled in another case."""
    return dict(zip(frame.columns, kinds, strict=True))


class _NotHere(Exception):  # noqa: N818 (no error of anybody's)
    """The step does not fit what there is."""


class DifferError(Exception):
    """Spark took a step, and clew neither took nor refused it."""


def first_line(error: Exception) -> str:
    """Say in a line what went wrong, without the names of columns."""
    line = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {re.sub(r'`[^`]*`', '`...`', line)[:160]}"


def _traced(make: Callable[[], Any]) -> Any:
    """Record a step that Spark has taken already."""
    try:
        return make()
    except ClewError:
        raise
    except Exception as error:
        raise DifferError(first_line(error)) from error


def sourced(name: str, frame: DataFrame, *, timed: bool) -> Threefold:
    """Begin a pipeline at a source."""
    return Threefold(
        clew.trace(frame, name, event_time="at" if timed else None),
        frame,
        frame.withColumn(IDS, F.array("rid")),
        {name: BY_NAME.get(name) for name in frame.columns},
        steps=(name,),
    )
