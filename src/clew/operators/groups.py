"""The groups that a step puts its rows in, and how their rows are found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clew.plan.algebra import Groups, Members
from clew.plan.columns import named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column

    from clew.plan.algebra import Typed
    from clew.plan.node import Annotated


def key_name(position: int) -> str:
    """Name the hidden column that holds one key of a group."""
    return f"_clew_k{position}"


def keyed(keys: Sequence[Column | str]) -> dict[str, Column]:
    """Name the keys of a group by their positions."""
    columns = [F.col(key) if isinstance(key, str) else key for key in keys]
    return {key_name(i): column for i, column in enumerate(columns)}


def aliased(columns: Mapping[str, Column]) -> list[Column]:
    """Give columns their names."""
    return [column.alias(name) for name, column in columns.items()]


def grouped(frame: Annotated, keys: Sequence[Column | str]) -> Groups:
    """Group the rows of a frame by keys, each row in one group."""
    columns = keyed(keys)
    kinds = [field.dataType for field in frame.df.select(*aliased(columns)).schema.fields]

    def members() -> Members:
        hidden = [named(c) for c in frame.annotation.columns]
        found: list[Typed] = [(named(n), kind) for n, kind in zip(columns, kinds, strict=True)]
        return Members(frame.df.select(*hidden, *aliased(columns)), found, overlaps=False)

    return Groups(list(zip(columns.values(), kinds, strict=True)), members)
