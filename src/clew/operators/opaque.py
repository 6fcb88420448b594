"""Functions that Spark hands many rows at once.

Nothing shows which input rows made which output rows, so the user says how rows are carried. With
`carries="id"` the function gets a column `clew_id` and returns it with each row that it made from
that row; the text in it holds the annotation, so nothing has to be looked up afterwards. With
`carries="group"` each output row comes from every row of its group, and answers are labelled
`coarse`.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.exceptions import ColumnError, OpaqueOperatorError
from clew.operators.groups import grouped
from clew.operators.keep import shown
from clew.plan.columns import named, quote, refuse_reserved, user_columns
from clew.plan.facts import AtOnce, Facts, Rows, WithoutWindow, stated
from clew.plan.node import Annotated, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pandas as pd
    from pyspark.sql import Column

    from clew.model import Exactness
    from clew.plan.algebra import Capture, Typed
    from clew.plan.made import Made

CLEW_ID = "clew_id"
_PACKED = "_clew_packed"

_ID_REMEDY = (
    "Keep the column `clew_id` in what the function returns, add `clew_id string` to its schema, "
    'and write `{verb}(..., carries="id")`.'
)
_GROUP_REMEDY = (
    'Write `applyInPandas(..., carries="group")`: each output row then traces to every row of its '
    "group, and answers are labelled `coarse`."
)


@dataclass(frozen=True, slots=True)
class MapRows:
    """`mapInPandas` or `mapInArrow` with a function that keeps `clew_id`."""

    verb: str
    function: Callable[..., Any]
    schema: T.StructType
    options: Mapping[str, Any]
    exactness: ClassVar[Exactness] = "exact"

    @property
    def kind(self) -> str:
        return self.verb

    @property
    def label(self) -> str:
        return getattr(self.function, "__name__", "function")

    @property
    def facts(self) -> Facts:
        return stated(Rows.EACH, AtOnce(), has_state=False)

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        return ()

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        [source] = inputs
        users = [named(c) for c in user_columns(source.df)]
        given = source.df.select(*users, capture.pack(source.annotation).alias(CLEW_ID))
        made = getattr(given, self.verb)(self.function, self.schema, **self.options)
        results = [f for f in self.schema.fields if f.name != CLEW_ID]
        by: list[Typed] = [(quote(f.name), f.dataType) for f in results]
        move = capture.unpack(source.annotation, F.array(named(CLEW_ID)), by)
        return Annotated(move.apply(made, ()).drop(CLEW_ID), move.annotation)


@dataclass(frozen=True, slots=True)
class MapGroups:
    """`applyInPandas`: every output row comes from every row of its group."""

    keys: tuple[Column | str, ...]
    function: Callable[..., Any]
    schema: T.StructType
    kind: ClassVar[str] = "applyInPandas"
    exactness: ClassVar[Exactness] = "coarse"

    @property
    def label(self) -> str:
        name = getattr(self.function, "__name__", "function")
        return f"{name} by {', '.join(shown(key) for key in self.keys)}"

    @property
    def facts(self) -> Facts:
        return stated(Rows.GATHERED, WithoutWindow(), hands_over_groups=True)

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        return ()

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        [source] = inputs
        users = [named(c) for c in user_columns(source.df)]
        groups = grouped(source, self.keys)
        packed = capture.pack(source.annotation, groups)
        given = source.df.select(*users, packed.alias(_PACKED))
        schema = T.StructType([*self.schema.fields, T.StructField(_PACKED, _TEXTS)])
        made = given.groupBy(*self.keys).applyInPandas(_carrying(self.function), schema)
        by: list[Typed] = [(quote(f.name), f.dataType) for f in self.schema.fields]
        move = capture.unpack(source.annotation, named(_PACKED), by, groups)
        return Annotated(move.apply(made, ()).drop(_PACKED), move.annotation)


_TEXTS = T.ArrayType(T.StringType())


def _carrying(function: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
    """Wrap a grouped function so that its rows carry the annotations of the group."""

    def with_packed(result: pd.DataFrame, packed: list[str]) -> pd.DataFrame:
        out = result.copy()
        out[_PACKED] = [packed] * len(out)
        return out

    def on_group(pdf: pd.DataFrame) -> pd.DataFrame:
        return with_packed(function(pdf.drop(columns=_PACKED)), sorted(pdf[_PACKED]))

    def on_keyed_group(key: tuple[Any, ...], pdf: pd.DataFrame) -> pd.DataFrame:
        return with_packed(function(key, pdf.drop(columns=_PACKED)), sorted(pdf[_PACKED]))

    return on_group if len(inspect.signature(function).parameters) == 1 else on_keyed_group


def map_rows(
    node: Node,
    verb: str,
    function: Callable[..., Any],
    schema: T.StructType | str,
    carries: str | None,
    options: Mapping[str, Any],
) -> Node:
    """Add a function over batches of rows.

    Raises:
        OpaqueOperatorError: It was not said how rows are carried, or not in a way that works here.
        ColumnError: `clew_id` is missing in the function's schema.
    """
    if carries != "id":
        raise OpaqueOperatorError(verb, _ID_REMEDY.format(verb=verb))
    if CLEW_ID in node.columns:
        msg = (
            f"`{verb}` hands its function a column `clew_id`, and the frame has one already.\n\n"
            'Rename it before: `.withColumnRenamed("clew_id", "upstream_id")`.'
        )
        raise ColumnError(msg)
    fields = _schema(schema)
    if CLEW_ID not in fields.names:
        msg = (
            f"the schema given to `{verb}` has no `clew_id string`, so its rows cannot be "
            "followed.\n\nReturn the column `clew_id` from the function and add it to the schema."
        )
        raise ColumnError(msg)
    refuse_reserved(fields.names)
    return Node(MapRows(verb, function, fields, options), (node,))


def map_groups(
    node: Node,
    keys: Sequence[Column | str],
    function: Callable[..., Any],
    schema: T.StructType | str,
    carries: str | None,
) -> Node:
    """Add a function over whole groups.

    Raises:
        OpaqueOperatorError: It was not said how rows are carried, or not in a way that works here.
    """
    if carries != "group":
        raise OpaqueOperatorError("applyInPandas", _GROUP_REMEDY)
    fields = _schema(schema)
    refuse_reserved(fields.names)
    return Node(MapGroups(tuple(keys), function, fields), (node,))


def _schema(schema: T.StructType | str) -> T.StructType:
    if isinstance(schema, T.StructType):
        return schema
    read = T.StructType.fromDDL(schema)
    assert isinstance(read, T.StructType)
    return read
