"""Where a column is: by name in a frame, and by origin in a later frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.exceptions import ColumnError
from clew.graph.columns import spelling
from clew.operators.join import Join
from clew.operators.keep import Keep

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.graph.node import Node


def column_position(
    columns: Sequence[str], name: str, spelt: Callable[[str], str] = str.lower
) -> tuple[int, str, list[str]]:
    """Find a column by name.

    Args:
        columns: The columns.
        name: The name, perhaps with a path to a field inside.
        spelt: What names have in common that mean one column.

    Returns:
        Its position, what it was called, and the path to a field inside it.

    Raises:
        ColumnError: There is no such column.

    Examples:
        >>> column_position(["ts", "engine"], "engine.temp")
        (1, 'engine', ['temp'])
    """
    plain = name[1:-1].replace("``", "`") if name.startswith("`") and name.endswith("`") else name
    known = [spelt(c) for c in columns]
    if spelt(plain) in known:
        return known.index(spelt(plain)), plain, []
    root, *path = name.split(".")
    if spelt(root) in known:
        return known.index(spelt(root)), root, path
    msg = f"the frame has no column `{name}`; it has {', '.join(f'`{c}`' for c in columns)}."
    raise ColumnError(msg)


def locate(node: Node, reference: tuple[int, int]) -> int | None:
    """Find at which position a column of an earlier frame stands in a later one.

    Returns:
        The position, or None if the column is no longer there.

    Raises:
        ColumnError: Two columns of that name are there and it cannot be told which is meant.
    """
    if node.id == reference[0]:
        return reference[1]
    if isinstance(node.operator, Keep):
        return locate(node.inputs[0], reference)
    if isinstance(node.operator, Join):
        return _in_join(node, node.operator, reference)
    origin = next((n for n in node.walk() if n.id == reference[0]), None)
    if origin is None:
        return None
    spelt = spelling(node.plain.df)
    name = spelt(origin.columns[reference[1]])
    found = [i for i, c in enumerate(node.columns) if spelt(c) == name]
    if len(found) > 1:
        msg = (
            f"two columns are called `{name}` here.\n\nName the sides of the join with "
            f'`.alias("a")` and drop `F.col("a.{name}")`.'
        )
        raise ColumnError(msg)
    return found[0] if found else None


def _in_join(node: Node, join: Join, reference: tuple[int, int]) -> int | None:
    spelt = spelling(node.plain.df)
    names = [spelt(n) for n in join.names or []]
    first, second = (each.columns for each in node.inputs)
    for side, columns in enumerate((first, second)):
        if side and join.how in ("semi", "anti"):
            continue
        at = locate(node.inputs[side], reference)
        if at is None:
            continue
        if spelt(columns[at]) in names:
            return names.index(spelt(columns[at]))
        before = sum(spelt(c) not in names for c in columns[:at])
        own = before + len(names)
        return own if side == 0 else own + sum(spelt(c) not in names for c in first)
    return None
