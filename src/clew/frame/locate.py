"""Where a column is: by name in a frame, and by origin in a later frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.exceptions import ColumnError
from clew.operators.aggregate import Aggregate
from clew.operators.join import Join
from clew.operators.keep import Keep, shown
from clew.operators.project import Project, Reshape
from clew.operators.setops import SetOperation
from clew.operators.union import Union
from clew.operators.unpivot import Unpivot
from clew.plan.columns import bare_reference, quote, spelling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column

    from clew.plan.node import Node

# What is Spark's own verb in the plain query, so that Spark can be asked what it makes anew.
_ASKED = (Reshape, Union, SetOperation, Unpivot)


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


def maker(node: Node, at: int) -> int:
    """Find the step that made a column: Spark takes a column that is only handed on for one.

    Args:
        node: Where the column is.
        at: Its position there.

    Returns:
        The number of the step. It is the join's for a column that both sides of it were given from
        one step, and that stands on the right: Spark makes that one anew.
    """
    if isinstance(node.operator, Keep):
        return maker(node.inputs[0], at)
    if isinstance(node.operator, Join):
        return _maker_in_join(node, node.operator, at)
    name = node.columns[at]
    if not node.inputs or _is_made_in(node, name):
        return node.id
    before = _positions(node.inputs[0], name)
    return maker(node.inputs[0], before[0]) if before else node.id


def _positions(node: Node, name: str) -> list[int]:
    spelt = spelling(node.plain.df)
    return [i for i, column in enumerate(node.columns) if spelt(column) == spelt(name)]


def _is_made_in(node: Node, name: str) -> bool:
    operator = node.operator
    spelt = spelling(node.plain.df)
    if isinstance(operator, Project) and isinstance(operator.columns, dict):
        return spelt(name) in map(spelt, operator.columns)
    if isinstance(operator, Project):
        # A reference is a hidden copy here and a column of the frame in Spark: it is not asked.
        is_taken = any(_hands_on(node, column, name) for column in operator.columns)
        return not is_taken and _is_new_to_spark(node, name)
    if isinstance(operator, Aggregate):
        is_plain = operator.grouping == "groupBy"
        return not (is_plain and any(_hands_on(node, key, name) for key in operator.keys))
    return isinstance(operator, _ASKED) and _is_new_to_spark(node, name)


def _is_new_to_spark(node: Node, name: str) -> bool:
    """Ask Spark whether a column of a step's first input is dropped from what the step gives."""
    after = node.plain.df
    before = node.inputs[0]
    if len(_positions(before, name)) != 1:
        return True
    return len(after.drop(before.plain.df[quote(name)]).columns) == len(after.columns)


def _hands_on(node: Node, column: Column | str, name: str) -> bool:
    """Tell whether an expression is nothing but the column of that name, or a star."""
    reference = None if isinstance(column, str) else bare_reference(column)
    if reference is None:
        text = shown(column)
    else:
        text = next((n.columns[reference[1]] for n in node.walk() if n.id == reference[0]), "")
    spelt = spelling(node.plain.df)
    # A dot is part of an odd name, or stands behind the alias of a frame.
    spellings = {text, text.strip("`").replace("``", "`"), text.split(".")[-1].strip("`")}
    return spelt(name) in map(spelt, spellings) or text.split(".")[-1] == "*"


def _maker_in_join(node: Node, join: Join, at: int) -> int:
    first, second = node.inputs
    name = node.columns[at]
    if join.how in ("semi", "anti"):
        return maker(first, at)
    count = len(join.names or [])
    if at < count:
        side = second if join.how == "right" else first
        return maker(side, _positions(side, name)[0])
    spelt = spelling(node.plain.df)
    names = [spelt(n) for n in join.names or []]
    lefts, rights = (
        [i for i, c in enumerate(each.columns) if spelt(c) not in names] for each in node.inputs
    )
    if at - count < len(lefts):
        return maker(first, lefts[at - count])
    made = maker(second, rights[at - count - len(lefts)])
    shared = made in [maker(first, i) for i in _positions(first, name)]
    return node.id if shared else made
