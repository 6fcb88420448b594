"""Random streaming pipelines: one shape after the other that Spark takes in append mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from properties.expressions import Expr, col, lit
from properties.operator_tree import (
    Aggregate,
    Distinct,
    Drop,
    DropDuplicates,
    Filter,
    Join,
    Node,
    Read,
    Rename,
    Select,
    Union,
    Watermark,
    Window,
    WindowColumn,
    WithColumn,
    columns,
    walk,
)
from properties.optimizer import event_times
from properties.row_form import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from properties.random_steps import Steps


class StreamMaker:
    """Draws streaming pipelines."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps

    def draw(self) -> Node:
        shapes: list[tuple[float, Callable[[], Node]]] = [
            (2, self._stateless),
            (4, self._windows),
            (2, self._windows_of_windows),
            (3, self._dedup),
            (1.5, self._dedup_then_windows),
            (2.5, self._union_then_state),
            (5, self._interval_join),
            (1.5, self._window_join),
            (1.5, self._windows_join_stream),
            (2.5, self._static_join),
            (2.5, self._windows_in_columns),
            (1.5, self._windows_joined),
            (3, self._moved_times),
            (2, self._moved_times_join),
        ]
        [shape] = self.steps.rng.choices([s for _, s in shapes], [weight for weight, _ in shapes])
        return shape()

    def _marked(self, source: str, keep: Iterable[str] = (), *, plain: bool = False) -> Node:
        """Draw a source with a watermark and a few operators before and after it."""
        kept = {"ts", *keep}
        node: Node = Read(source)
        if self.steps.chance(0.25):
            node = Filter(node, self.steps.test(node, plain=plain))
        node = Watermark(node, self.steps.pick((0, 2, 5, 10)))
        return self.steps.narrows(node, 2, kept, plain=plain)

    def _keys(self, node: Node, least: int = 0) -> tuple[str, ...]:
        found = [n for n, k in columns(node).items() if k in ("string", "int")]
        return self.steps.some(found, least)[:2]

    def _stateless(self) -> Node:
        node = self.steps.narrows(Read("a"), 2) if self.steps.chance(0.5) else self._marked("a")
        if columns(node) == COLUMNS:
            other = self.steps.same_columns(Read(self.steps.pick("ab")))
            node = Union(node, other, by_name=self.steps.chance(0.4))
        return self.steps.narrow(node)

    def _windowed(self, node: Node, *, sessions: bool = True) -> Aggregate:
        keys = self._keys(node)
        window = self.steps.window(event_times(node)[0], sessions=sessions and bool(keys))
        return self.steps.aggregate(node, window, keys)

    def _windows(self) -> Node:
        node = self._marked("a")
        if self.steps.chance(0.15):
            return self.steps.aggregate(node, None, ("ts", *self._keys(node)))
        return self.steps.narrows(self._windowed(node), 2)

    def _windows_of_windows(self) -> Node:
        first = self._windowed(self._marked("a"))
        size = self.steps.pick((20, 24, 30))
        assert first.window is not None
        name = first.window.name
        if self.steps.chance(0.4) and not first.window.session:
            node: Node = Filter(first, self.steps.test(first)) if self.steps.chance(0.5) else first
            slide = self.steps.pick((None, 10, 12)) if self.steps.chance(0.5) else None
            return self.steps.aggregate(node, Window(name, size, slide), self._keys(node))
        rest = tuple((n, col(n)) for n in columns(first) if n != name)
        node = Select(first, (("ts", Expr("window_time", (col(name),))), *rest))
        node = self.steps.narrows(node, 1, ("ts",))
        return self.steps.narrows(
            self.steps.aggregate(node, Window("ts", size), self._keys(node)), 1
        )

    def _deduplicated(self, node: Node) -> Node:
        kinds, time = columns(node), event_times(node)[0]
        keyed = [n for n, k in kinds.items() if k in ("string", "int")] or list(kinds)
        match self.steps.pick(("distinct", "keys", "keys", "timed", "within")):
            case "distinct":
                few = (time, *[n for n in self.steps.some(keyed)[:2] if n != time])
                return Distinct(Select(node, tuple((n, col(n)) for n in few)))
            case "timed":
                return DropDuplicates(
                    node, (time, *[n for n in self.steps.some(keyed)[:2] if n != time])
                )
            case "within" if not any(isinstance(n, Union) for n in walk(node)):
                return DropDuplicates(node, self.steps.some(keyed)[:2], within_watermark=True)
            case _:
                return DropDuplicates(node, self.steps.some(keyed)[:2])

    def _dedup(self) -> Node:
        if self.steps.chance(0.2):
            node = self.steps.narrows(Read("a"), 2)
            return self.steps.narrows(
                DropDuplicates(node, self._keys(node, 1) or tuple(columns(node))), 1
            )
        return self.steps.narrows(self._deduplicated(self._marked("a")), 2)

    def _dedup_then_windows(self) -> Node:
        node = self._marked("a", ("k",))
        subset = tuple(dict.fromkeys(("ts", "k", *self._keys(node))))
        named = tuple((n, col(n)) for n in subset)
        unique = self.steps.pick(
            (Select(DropDuplicates(node, subset), named), Distinct(Select(node, named)))
        )
        return self.steps.narrows(self._windowed(unique), 1)

    def _union_then_state(self) -> Node:
        node: Node
        match self.steps.pick(("branches", "sources", "late mark", "one mark")):
            case "branches":
                shared = Watermark(Read("a"), self.steps.pick((0, 3, 8)))
                node = Union(self.steps.same_columns(shared), self.steps.same_columns(shared))
            case "sources":
                left = Watermark(Read("a"), self.steps.pick((0, 3, 8)))
                right = Watermark(Read("b"), self.steps.pick((0, 3, 8)))
                node = Union(self.steps.same_columns(left), right, by_name=self.steps.chance(0.4))
            case "late mark":
                node = Watermark(Union(Read("a"), self.steps.same_columns(Read("b"))), 5)
            case _:
                node = Union(Watermark(Read("a"), 5), Read("b"))
        node = self.steps.narrows(node, 1, ("ts",))
        state = self._deduplicated(node) if self.steps.chance(0.35) else self._windowed(node)
        return self.steps.narrows(state, 1)

    def _interval_join(self) -> Node:
        keys = self.steps.pick((("k",), ("k",), ("g",), ("k", "g")))
        how = self.steps.pick(("inner", "left", "right", "full", "leftsemi"))
        keep = ("rid", "v", *keys)
        left = self._marked("a", keep, plain=True)
        right = (
            left
            if self.steps.chance(0.2)
            else self._marked(self.steps.pick("bba"), keep, plain=True)
        )
        low, high = self.steps.pick(((-5, 3), (0, 10), (-8, 0), (2, 6), (-3, -1)))
        if how == "inner" and self.steps.chance(0.15):
            low = None
        node: Node = Join(left, right, how, keys, low, high)
        if self.steps.chance(0.4):
            node = Filter(node, self.steps.test(node, plain=True), as_text=self.steps.chance(0.5))
        if self.steps.chance(0.35):
            return self._windowed(self._one_time(node), sessions=False)
        return node

    def _one_time(self, node: Node) -> Node:
        """Leave a join one event time: Spark refuses two in the next stateful operator."""
        others = event_times(node)[1:]
        return Drop(node, others) if others else node

    def _window_join(self) -> Node:
        window = self.steps.window("ts", sessions=False)
        sides = []
        for source in ("a", self.steps.pick("ab")):
            node = self._marked(source, ("k", "v"), plain=True)
            sides.append(self.steps.aggregate(node, window, ("k",)))
        # A semi join on top of aggregates is left out: Spark pushes it below the left aggregate,
        # where it runs row by row against state that is gone, and counts come out too small.
        how = self.steps.pick(("inner", "left", "right", "full"))
        using = self.steps.chance(0.4) and sides[0] != sides[1]
        return Join(sides[0], sides[1], how, ("window", "k"), using=using)

    def _windows_join_stream(self) -> Node:
        first = self.steps.aggregate(
            self._marked("a", ("k",), plain=True), self.steps.window("ts", sessions=False), ("k",)
        )
        rest = tuple((n, col(n)) for n in columns(first) if n != "window")
        left = Select(first, (("ts", Expr("window_time", (col("window"),))), *rest))
        right = self._marked("b", ("k", "rid"), plain=True)
        how = self.steps.pick(("inner", "left", "right"))
        return Join(left, right, how, ("k",), *self.steps.pick(((-5, 3), (-12, 0), (0, 6))))

    def _static_join(self) -> Node:
        keys = self.steps.pick((("k",), ("g",), ("k", "g")))
        node = self._marked("a", ("v", *keys), plain=True)
        table: Node = Read("s", static=True)
        if self.steps.chance(0.4):
            table = Filter(table, self.steps.test(table, plain=True))
        using = self.steps.chance(0.4)
        if self.steps.chance(0.25):
            how = self.steps.pick(("inner", "right"))
            joined: Node = Join(table, node, how, keys, using=using)
            return joined if self.steps.chance(0.6) else self.steps.narrow(joined, plain=True)
        joined = Join(
            node,
            table,
            self.steps.pick(("inner", "left", "leftsemi", "leftanti")),
            keys,
            using=using,
        )
        if self.steps.chance(0.3):
            joined = Filter(joined, self.steps.test(joined, plain=True))
        return self._windowed(joined) if self.steps.chance(0.5) else joined

    # windows that are computed before they are grouped by

    def _windows_in_columns(self) -> Node:
        node = self._marked("a", ("k",)) if self.steps.chance(0.7) else self._moved("a", ("k",))
        time, name = event_times(node)[0], "w"
        node = WindowColumn(node, self.steps.window(time, sessions=False), name)
        node = self.steps.narrows(node, 1, (time, name))
        if self.steps.chance(0.3):
            node, name = Rename(node, name, "span"), "span"
        if self.steps.chance(0.4):
            node = Drop(node, (time,))
        if self.steps.chance(0.35):
            size, slide = self.steps.pick(((20, None), (24, 12), (30, 10)))
            return self.steps.aggregate(node, Window(name, size, slide), self._keys(node))
        keys = (name, *self._keys(node))
        return self.steps.narrows(self.steps.aggregate(node, None, keys), 1)

    def _windows_joined(self) -> Node:
        """Join two streams on windows that neither has been grouped by."""
        window, sides = self.steps.window("ts", sessions=False), []
        for source in "ab":
            node = self._marked(source, ("k", "v", "rid"), plain=True)
            kept = tuple((name, col(name)) for name in ("w", "k", "v", "rid"))
            sides.append(Select(WindowColumn(node, window, "w"), kept))
        how = self.steps.pick(("inner", "left", "right", "full"))
        node = Join(sides[0], sides[1], how, ("w", "k"))
        if how == "inner" and self.steps.chance(0.5):
            node = self._one_time(node)
            return self.steps.aggregate(node, None, (event_times(node)[0], "k"))
        return node

    # event times that are not the column that the source had

    def _moved(self, source: str, keep: Iterable[str] = (), *, name: str | None = None) -> Node:
        """Draw a source with a watermark on a time that was renamed, or computed from its time.

        `name` is what the time is called in the end.
        """
        node: Node = Read(source)
        if self.steps.chance(0.25):
            node = Filter(node, self.steps.test(node, plain=True))
        value = self._computed_time()
        match self.steps.pick(("renamed", "computed", "overwritten", "selected")):
            case "renamed":
                node, time = Rename(node, "ts", "t"), "t"
            case "computed":
                node, time = WithColumn(node, "t", value), "t"
                node = Drop(node, ("ts",)) if self.steps.chance(0.5) else node
            case "overwritten":
                node, time = WithColumn(node, "ts", value), "ts"
            case _:
                rest = tuple((n, col(n)) for n in columns(node) if n != "ts")
                node, time = Select(node, (("t", value), *rest)), "t"
        node = Watermark(node, self.steps.pick((0, 2, 5, 10)), time)
        wanted = name or self.steps.pick((time, time, "u"))
        if wanted != time:
            node = Rename(node, time, wanted)
        return self.steps.narrows(node, 2, {wanted, *keep}, plain=True)

    def _computed_time(self) -> Expr:
        op = self.steps.pick(("from_text", "from_seconds", "from_json", "minute", "later", "later"))
        if op == "later":
            return Expr(op, (col("ts"), lit(self.steps.pick((-30, 7, 90, 3600)))))
        return Expr(op, (col("ts"),))

    def _moved_times(self) -> Node:
        node = self._moved("a")
        state = self._deduplicated(node) if self.steps.chance(0.3) else self._windowed(node)
        return self.steps.narrows(state, 1)

    def _moved_times_join(self) -> Node:
        keys = self.steps.pick((("k",), ("g",)))
        sides = [self._moved(s, ("rid", "v", *keys), name="at") for s in "ab"]
        how = self.steps.pick(("inner", "left", "right", "full", "leftsemi"))
        low, high = self.steps.pick(((-5, 3), (0, 10), (-8, 0), (-60, 60)))
        node: Node = Join(sides[0], sides[1], how, keys, low, high, time="at")
        if how == "inner" and self.steps.chance(0.4):
            return self._windowed(self._one_time(node), sessions=False)
        return node
