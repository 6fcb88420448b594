"""Random pipelines over tables."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from properties.expressions import col
from properties.freedom import identifying, is_settled
from properties.operator_tree import (
    Agg,
    Distinct,
    Drop,
    DropDuplicates,
    Join,
    Node,
    OrderLimit,
    Pivot,
    Read,
    Select,
    SetOperation,
    Union,
    Window,
    WindowColumn,
    columns,
)
from properties.row_form import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from properties.random_steps import Steps


class BatchMaker:
    """Draws pipelines over tables."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps

    def draw(self) -> Node:
        node: Node = Read("a")
        for _ in range(self.steps.rng.randint(1, 4)):
            node = self._step(node)
        return node

    def _step(self, node: Node) -> Node:
        if not is_settled(node):
            return self.steps.narrow(node)
        steps: list[tuple[float, Callable[[Node], Node]]] = [
            (4, self.steps.narrow),
            (2, self._batch_union),
            (2, self._batch_dedup),
            (3, self._batch_aggregate),
            (4, self._batch_join),
            (1, self._batch_window_column),
            (1, self._batch_pivot),
            (1.5, self._batch_set_operation),
        ]
        if identifying(node):
            steps.append((1.5, self._order_limit))
        [step] = self.steps.rng.choices([s for _, s in steps], [weight for weight, _ in steps])
        return step(node)

    def _batch_branch(self) -> Node:
        """Draw a second input: a source with a few operators on it that keep its columns."""
        node: Node = Read(self.steps.pick("ab"))
        for _ in range(self.steps.rng.randint(0, 2)):
            node = self.steps.same_columns(node)
        return node

    def _batch_union(self, node: Node) -> Node:
        base = columns(node) == COLUMNS
        other = self._batch_branch() if base else self.steps.same_columns(node)
        lacking = self.steps.some(columns(other), 0)[:2]
        if lacking and len(lacking) < len(columns(other)) and self.steps.chance(0.25):
            return Union(node, Drop(other, lacking), by_name=True, fills=True)
        return Union(node, other, by_name=self.steps.chance(0.4))

    def _batch_set_operation(self, node: Node) -> Node:
        few = self.steps.some(n for n in columns(node) if n not in ("rid", "r_rid"))[:2]
        named = tuple((n, col(n)) for n in few or columns(node))
        other = self._batch_branch() if set(few) <= set(COLUMNS) else self.steps.same_columns(node)
        kinds = (columns(Select(one, named)) for one in (node, other))
        if len({tuple(kind.items()) for kind in kinds}) > 1:
            other = self.steps.same_columns(node)
        verb = self.steps.pick(("intersect", "subtract"))
        return SetOperation(Select(node, named), Select(other, named), verb)

    def _batch_window_column(self, node: Node) -> Node:
        times = [n for n, k in columns(node).items() if k == "timestamp"]
        if not times or "w" in columns(node):
            return self.steps.narrow(node)
        window = self.steps.window(self.steps.pick(times), sessions=False)
        return WindowColumn(node, window, "w")

    def _batch_pivot(self, node: Node) -> Node:
        kinds = columns(node)
        keys = [n for n, k in kinds.items() if k in ("string", "int") and n != "k"]
        numbers = [n for n, k in kinds.items() if k in ("int", "long") and n not in keys[:1]]
        if kinds.get("k") != "string" or not keys or not numbers:
            return self.steps.narrow(node)
        fn = self.steps.pick(("count", "sum", "min", "max", "avg"))
        agg = Agg(fn, self.steps.pick(numbers), "made")
        values = self.steps.pick((("a", "b"), ("b", "z"), ("c",)))
        return Pivot(node, tuple(keys[:1]), "k", values, agg)

    def _batch_dedup(self, node: Node) -> Node:
        kinds = columns(node)
        if self.steps.chance(0.4):
            few = self.steps.some(name for name in kinds if name not in ("rid", "r_rid")) or tuple(
                kinds
            )
            return Distinct(Select(node, tuple((n, col(n)) for n in few[:3])))
        subset = self.steps.some(
            [n for n, k in kinds.items() if k in ("string", "int")] or list(kinds)
        )
        kept = DropDuplicates(node, subset, within_watermark=False)
        return Select(kept, tuple((n, col(n)) for n in subset)) if self.steps.chance(0.5) else kept

    def _batch_aggregate(self, node: Node) -> Node:
        kinds = columns(node)
        times = [n for n, k in kinds.items() if k == "timestamp"]
        keys = [n for n, k in kinds.items() if k in ("string", "int") or n == "w"]
        window = (
            self.steps.window(self.steps.pick(times)) if times and self.steps.chance(0.5) else None
        )
        if window is None and "window" in kinds and self.steps.chance(0.5):
            window = Window("window", self.steps.pick((20, 30)))
        chosen = self.steps.some(keys, 0)[:2] if keys else ()
        if window is not None and window.session and not chosen:
            window = Window(window.column, 10)
        made = self.steps.aggregate(node, window, chosen)
        if window is None and chosen and self.steps.chance(0.4):
            return dataclasses.replace(made, grouping=self.steps.pick(("rollup", "cube")))
        return made

    def _batch_join(self, node: Node) -> Node:
        other = node if self.steps.chance(0.25) else self._batch_branch()
        how = self.steps.pick(("inner", "left", "right", "full", "leftsemi", "leftanti"))
        left, right = columns(node), columns(other)
        shared = [
            n for n, k in left.items() if right.get(n) == k and k in ("string", "int", "window")
        ]
        if not shared:
            return self.steps.narrow(node)
        prefix = next(f"r{i}_" for i in ("", 2, 3, 4, 5) if not _clash(left, right, f"r{i}_"))
        keys = self.steps.some(shared)[:2]
        if other != node and self.steps.chance(0.4):
            return Join(node, other, how, keys, using=True, prefix=prefix)
        return Join(node, other, how, keys, null_safe=self.steps.chance(0.2), prefix=prefix)

    def _order_limit(self, node: Node) -> Node:
        last = identifying(node) or ()
        first = self.steps.pick([n for n, k in columns(node).items() if k != "array"] or last)
        by = [(first, self.steps.chance(0.5))] + [
            (n, self.steps.chance(0.7)) for n in last if n != first
        ]
        return OrderLimit(node, tuple(by), self.steps.rng.randint(1, 6))


def _clash(left: Iterable[str], right: Iterable[str], prefix: str) -> bool:
    return bool({prefix + name for name in right} & set(left))
