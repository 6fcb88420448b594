"""Random pipelines over tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from properties.expressions import col
from properties.freedom import identifying, is_settled
from properties.operator_tree import (
    Distinct,
    DropDuplicates,
    Join,
    Node,
    OrderLimit,
    Read,
    Select,
    Union,
    Window,
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
        return Union(node, other, by_name=self.steps.chance(0.4))

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
        keys = [n for n, k in kinds.items() if k in ("string", "int")]
        window = (
            self.steps.window(self.steps.pick(times)) if times and self.steps.chance(0.5) else None
        )
        if window is None and "window" in kinds and self.steps.chance(0.5):
            window = Window("window", self.steps.pick((20, 30)))
        chosen = self.steps.some(keys, 0)[:2] if keys else ()
        if window is not None and window.session and not chosen:
            window = Window(window.column, 10)
        return self.steps.aggregate(node, window, chosen)

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
