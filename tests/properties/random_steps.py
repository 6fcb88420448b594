"""Random steps of pipelines: expressions, operators that look at one row, windows, aggregates."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from properties.expressions import Expr, col, compare, lit
from properties.operator_tree import (
    Agg,
    Aggregate,
    Drop,
    Explode,
    Filter,
    Named,
    Node,
    Rename,
    Select,
    Unpivot,
    Window,
    WithColumn,
    columns,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping

    from properties.row_form import Kind


class Steps:
    """Draws steps of pipelines from a random number generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._names = itertools.count(1)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, options: Iterable[Any]) -> Any:
        return self.rng.choice(list(options))

    def some(self, options: Iterable[str], least: int = 1) -> tuple[str, ...]:
        found = list(options)
        kept = set(self.rng.sample(found, self.rng.randint(min(least, len(found)), len(found))))
        return tuple(name for name in found if name in kept)

    # expressions

    def test(self, node: Node, *, names: Iterable[str] | None = None, plain: bool = False) -> Expr:
        """Draw a predicate. `plain`: over one column, and none that only null passes."""
        kinds = {n: k for n, k in columns(node).items() if names is None or n in set(names)}
        ints = [n for n, k in kinds.items() if k in ("int", "long") and not n.endswith("rid")]
        texts = [n for n, k in kinds.items() if k == "string"]
        options: list[Callable[[], Expr]] = []
        if ints:
            options += [self._compare(ints), self._compare(ints), self._parity(ints)]
            options += [lambda: Expr("isnotnull", (col(self.pick(ints)),))]
        if texts:
            options += [self._text_test(texts), self._text_test(texts)]
        if kinds.get("ts") == "timestamp":
            options += [lambda: Expr("<", (Expr("second", (col("ts"),)), lit(self.pick((20, 50)))))]
        if ints and not plain:
            options += [self._mixed(ints, texts), self._mixed(ints, texts)]
            options += [lambda: Expr("isnull", (col(self.pick(ints)),))]
        if not options:
            return compare(">=", "rid", 0) if "rid" in kinds else Expr("=", (lit(1), lit(1)))
        return self.pick(options)()  # type: ignore[no-any-return]

    def _compare(self, ints: list[str]) -> Callable[[], Expr]:
        op, value = self.pick((">", "<=", "<>", ">=")), self.rng.randint(0, 3)
        return lambda: compare(op, self.pick(ints), value)

    def _parity(self, ints: list[str]) -> Callable[[], Expr]:
        rest = self.rng.randint(0, 1)
        return lambda: Expr("=", (Expr("%", (col(self.pick(ints)), lit(2))), lit(rest)))

    def _text_test(self, texts: list[str]) -> Callable[[], Expr]:
        name = self.pick(texts)
        return self.pick(  # type: ignore[no-any-return]
            (
                lambda: compare("<>", name, self.pick("abc")),
                lambda: Expr("in", (col(name), lit("a"), lit("b"), lit("z"))),
                lambda: Expr("=", (Expr("coalesce", (col(name), lit("a"))), lit("a"))),
                lambda: Expr("isnotnull", (col(name),)),
            )
        )

    def _mixed(self, ints: list[str], texts: list[str]) -> Callable[[], Expr]:
        one = compare(self.pick((">", "<")), self.pick(ints), self.rng.randint(0, 4))
        name = self.pick(texts or ints)
        total = Expr("+", (Expr("coalesce", (col(self.pick(ints)), lit(0))), col(self.pick(ints))))
        return self.pick(  # type: ignore[no-any-return]
            (
                lambda: Expr("or", (one, Expr("isnull", (col(name),)))),
                lambda: Expr("and", (one, Expr("isnotnull", (col(name),)))),
                lambda: Expr("not", (one,)),
                lambda: Expr(">", (total, lit(self.rng.randint(0, 5)))),
                lambda: Expr("<=>", (col(name), col(self.pick(texts or ints)))),
            )
        )

    def value(self, node: Node, kind: Kind) -> Expr:
        """Draw an expression of a type; never a constant, which Spark would fold away."""
        kinds = columns(node)
        ints = [n for n, k in kinds.items() if k == kind and n != "rid"]
        texts = [n for n, k in kinds.items() if k == "string"]
        if kind == "string":
            name = col(self.pick(texts))
            return self.pick(  # type: ignore[no-any-return]
                (
                    Expr("upper", (name,)),
                    Expr("concat", (name, lit("!"))),
                    Expr("coalesce", (name, lit("none"))),
                )
            )
        one, two = col(self.pick(ints)), col(self.pick(ints))
        options = [
            Expr("+", (one, lit(self.rng.randint(1, 3)))),
            Expr("-", (Expr("*", (one, lit(2))), two)),
            Expr("coalesce", (one, two)),
            Expr("if", (Expr(">", (one, lit(2))), one, two)),
            Expr("%", (one, lit(3))),
        ]
        if kind == "int" and texts:
            options.append(Expr("length", (col(self.pick(texts)),)))
        return self.pick(options)  # type: ignore[no-any-return]

    # operators that look at one row

    def narrow(self, node: Node, keep: Iterable[str] = (), *, plain: bool = False) -> Node:
        """Add an operator that looks at one row and leaves the named columns as they are."""
        kept = set(keep)
        kinds = columns(node)
        loose = [name for name in kinds if name not in kept]
        options: list[Callable[[], Node]] = [
            lambda: Filter(node, self.test(node, plain=plain), as_text=self.chance(0.5))
        ] * 3
        if any(kind == "int" for name, kind in kinds.items()):
            options += [lambda: self._map(node, kept)] * 2
        if "string" in kinds.values():
            options += [lambda: self._map(node, kept, "string")]
        if kinds.get("tags") == "array" and "tag" not in kinds:
            options += [lambda: Explode(node, "tags", "tag", outer=self.chance(0.3))]
        if len(self._measures(kinds, kept)) > 1 and "name" not in kinds:
            options += [lambda: self._unpivot(node, kept)]
        options += [lambda: self.named(node)]
        if len(loose) > 1:
            options += [lambda: Drop(node, self.some(loose)[:2]), lambda: self._select(node, kept)]
            options += [lambda: self._rename(node, loose)]
        return self.pick(options)()  # type: ignore[no-any-return]

    def narrows(self, node: Node, most: int, keep: Iterable[str] = (), **how: bool) -> Node:
        for _ in range(self.rng.randint(0, most)):
            node = self.narrow(node, keep, **how)
        return node

    def named(self, node: Node) -> Node:
        return Named(node, f"frame{next(self._names)}")

    def _measures(self, kinds: Mapping[str, Kind], kept: set[str]) -> list[str]:
        return [name for name, kind in kinds.items() if kind == "int" and name not in kept]

    def _unpivot(self, node: Node, kept: set[str]) -> Node:
        kinds = columns(node)
        values = tuple(self.rng.sample(self._measures(kinds, kept), 2))
        ids = [n for n in kinds if n in kept or (n not in values and self.chance(0.7))]
        return Unpivot(node, tuple(ids), values)

    def _map(self, node: Node, kept: set[str], kind: Kind = "int") -> Node:
        kinds = columns(node)
        old = [n for n, k in kinds.items() if k == kind and n not in kept]
        fresh = next(f"c{i}" for i in range(1, 9) if f"c{i}" not in kinds)
        name = self.pick(old) if old and self.chance(0.5) else fresh
        return WithColumn(node, name, self.value(node, kind))

    def _select(self, node: Node, kept: set[str]) -> Node:
        kinds = columns(node)
        names = [n for n in kinds if n in kept or self.chance(0.6)] or list(kinds)
        named = [(name, col(name)) for name in names]
        if "window" in names and self.chance(0.5):
            named.append(("began", Expr("start", (col("window"),))))
        return Select(node, tuple(named))

    def _rename(self, node: Node, loose: list[str]) -> Node:
        old = self.pick(loose)
        return Rename(node, old, f"{old}_new")

    # aggregates

    def window(self, column: str, *, sessions: bool = True) -> Window:
        size = self.pick((5, 10, 12, 20))
        kind = self.pick(
            ("tumbling", "sliding", "session") if sessions else ("tumbling", "sliding")
        )
        if kind == "session":
            return Window(column, self.pick((3, 5, 8)), session=True)
        slide = (
            self.pick([s for s in (4, 5, 6, 10) if s < size])
            if kind == "sliding" and (size > 5)
            else None
        )
        return Window(column, size, slide)

    def aggs(self, node: Node, exclude: Iterable[str] = ()) -> tuple[Agg, ...]:
        kinds = columns(node)
        numbers = [n for n, k in kinds.items() if k in ("int", "long") and n not in set(exclude)]
        made = [Agg("count_all", "*", "n")] if self.chance(0.8) or not numbers else []
        for name in self.rng.sample(numbers, min(len(numbers), self.rng.randint(0, 2))):
            fn = self.pick(("count", "sum", "min", "max", "avg"))
            made.append(Agg(fn, name, f"{fn}_{name}"))
        if "rid" in kinds and self.chance(0.4):
            made.append(Agg("rids", "rid", "rids"))
        return tuple(made) or (Agg("count_all", "*", "n"),)

    def aggregate(self, node: Node, window: Window | None, keys: tuple[str, ...]) -> Aggregate:
        return Aggregate(node, window, keys, self.aggs(node, keys))

    def same_columns(self, node: Node) -> Node:
        ints = [n for n, k in columns(node).items() if k == "int"]
        if ints and self.chance(0.4):
            name = self.pick(ints)
            return WithColumn(node, name, self.value(node, "int"))
        return Filter(node, self.test(node), as_text=self.chance(0.5))
