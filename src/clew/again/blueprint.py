"""A pipeline in the store: written when a query starts, rebuilt where the query is not known.

Each step is stored as its operator's parameters, with the user's expressions as SQL text. Whether a
text means what the user wrote is never assumed: the step is made again from it, over the same
input, and Spark compares the two plans. What does not come out the same is noted with the reason,
and a replay then asks for the pipeline by name. A rebuilt pipeline must have the shape of the one
that ran, and its text the digest that the run noted.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import uuid
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clew.capture.properties import PROPERTIES, Properties
from clew.operators.ordered import Ordered
from clew.operators.plain_data import (
    Body,
    NotStorableError,
    argument,
    columns_in,
    decode,
    encode,
    made,
    opened,
    with_columns,
)
from clew.operators.property import Property
from clew.operators.source import Source
from clew.plan.analysis import explain
from clew.plan.columns import renumbered
from clew.plan.node import Node, interpret
from clew.plan.settings import settings_of
from clew.plan.sql import column_of, printed, same_rows, spellings
from clew.sources.described import describe_reading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

Stored = dict[str, Any]
VERSION = 2

_NOT_STORED = "not stored"
_PROCESS = uuid.uuid4().hex
_CALLED = re.compile(r"(?<![\w`'.])([A-Za-z_]\w*)\(")
_BUILT_IN = {name.lower() for name in dir(F)} | {"cast", "in", "and", "or", "not", "if", "map"}


def store_pipeline(node: Node) -> Stored:
    """Write a pipeline as data, each step checked against the user's own."""
    steps: list[Any] = []
    unstored: list[dict[str, Any]] = []
    sources: dict[str, Any] = {}
    registered = _Registered(node)
    for number, each in enumerate(node.walk()):
        if isinstance(each.operator, Source):
            sources[each.operator.origin.name] = _source(each.operator)
            step: Any = {"source": each.operator.origin.name}
        else:
            try:
                step = _step(each, registered)
            except NotStorableError as error:
                unstored.append({"step": number, "why": str(error)})
                step = {_NOT_STORED: str(error)}
        steps.append({**step, "referenced": sorted(each.referenced)})
    numbers = {each.id: number for number, each in enumerate(node.walk())}
    return {
        "version": VERSION,
        "steps": json.loads(renumbered(json.dumps(steps), numbers)),
        "settings": settings_of(node.plain.df.sparkSession),
        "sources": sources,
        "unstored": unstored,
    }


def digest_of(pipeline: Mapping[str, Any]) -> str | None:
    """Return a hash of what a stored pipeline does; None if it is not stored as a whole."""
    if pipeline["unstored"]:
        return None
    text = json.dumps([pipeline["steps"], pipeline["settings"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def version_of(shape: str | None, pipeline: Mapping[str, Any], functions: str | None) -> str:
    """Return a hash of a version of a query: its steps, settings and sources, and how it is read.

    Args:
        shape: A hash of its steps as they are drawn.
        pipeline: Its steps as data.
        functions: What tells functions apart that are not stored.
    """
    return _hash([shape, functions, pipeline])


def meaning_of(shape: str, pipeline: Mapping[str, Any], functions: str | None) -> str:
    """Return a hash of what a version of a query does with its rows, wherever they are read."""
    sources = {
        name: {key: value for key, value in said.items() if key != "read"}
        for name, said in pipeline["sources"].items()
    }
    return _hash([shape, functions, {**pipeline, "sources": sources}])


def same_steps(one: Stored, other: Mapping[str, Any] | None) -> bool:
    """Tell whether two pipelines do the same, wherever they read; functions are not compared.

    Args:
        one: A pipeline.
        other: Another, as a store says it; None if the store does not.
    """
    if other is None or other.get("version") != VERSION:
        return True
    return len(one["steps"]) == len(other["steps"]) and all(
        mine == theirs or (_NOT_STORED in mine and _NOT_STORED in theirs)
        for mine, theirs in zip(one["steps"], other["steps"], strict=True)
    )


def _hash(what: object) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def functions_of(node: Node, pipeline: Mapping[str, Any]) -> str | None:
    """Return what tells a pipeline from one whose functions have the same names; None if none has.

    Nothing shows whether a function that is not stored is the same after a restart, or after it
    was written again. So it is only taken for the same in one process, in the same frame.
    """
    nodes = list(node.walk())
    steps = [nodes[each["step"]].id for each in pipeline["unstored"]]
    return f"{_PROCESS} {steps}" if steps else None


def _source(source: Source) -> dict[str, Any]:
    origin = source.origin
    return {
        "schema": origin.schema.jsonValue(),
        "identity": origin.identity.describe(),
        "event_time": origin.event_time,
        "content": origin.keep_content,
        "read": describe_reading(source.df, source.again),
    }


def _step(node: Node, registered: _Registered) -> dict[str, Any]:
    """Write a step as data.

    Raises:
        NotStorableError: It is or holds a function, or a column whose text means something else.
    """
    fields = opened(node.operator)
    columns = list(columns_in(fields))
    names = [name for each in node.inputs for name in each.columns]
    texts = [next(spellings(printed(column), names)) for column in columns]
    name = type(node.operator).__name__
    if columns and not _all_same(node, name, fields, texts):
        texts = [_searched(node, fields, i, names) for i in range(len(columns))]
    written = _written(fields, texts)
    registered.refuse(json.dumps(written))
    return {"operator": name, "with": written}


def _written(fields: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    left = iter(texts)
    return {key: encode(value, left) for key, value in fields.items()}


def _all_same(node: Node, name: str, fields: Mapping[str, Any], texts: Sequence[str]) -> bool:
    if isinstance(node.operator, (Property, Ordered)):
        return all(_one_same(node, fields, i, text) for i, text in enumerate(texts))
    data = _written(fields, texts)

    def again() -> DataFrame:
        operator = made(name, {key: decode(value) for key, value in data.items()})
        return Node(operator, node.inputs, node.id, node.referenced).plain.df

    return same_rows(again, node.plain.df)


def _searched(node: Node, fields: Mapping[str, Any], number: int, names: Sequence[str]) -> str:
    """Find the spelling of one column that means what the user wrote."""
    column = list(columns_in(fields))[number]
    for text in spellings(printed(column), names):
        if _one_same(node, fields, number, text):
            return text
    if _runs_python(node):
        msg = "a Python function (UDF)"
        raise NotStorableError(msg)
    shown = printed(column)
    msg = f"`{shown}`, for which there is no SQL text that is sure to mean the same"
    raise NotStorableError(msg)


def _one_same(node: Node, fields: Mapping[str, Any], number: int, text: str) -> bool:
    """Tell whether a step is the same with a text in the place of one of its columns."""
    columns = list(columns_in(fields))
    if isinstance(node.operator, (Property, Ordered)):
        frame = _frame_of(node, fields)
        kept = frame.select(columns[number].alias("value"))
        return same_rows(lambda: frame.select(column_of(text).alias("value")), kept)

    def again() -> DataFrame:
        tried = [column_of(text) if i == number else each for i, each in enumerate(columns)]
        left = iter(tried)
        changed = {key: with_columns(value, left) for key, value in fields.items()}
        operator = dataclasses.replace(node.operator, **changed)  # type: ignore[type-var]
        return Node(operator, node.inputs, node.id, node.referenced).plain.df

    return same_rows(again, node.plain.df)


def _frame_of(node: Node, fields: Mapping[str, Any]) -> DataFrame:
    """Return a frame that has what the expressions of a step are about, stand-ins included.

    Only for steps whose expressions are in no plan of the query itself.
    """
    df = node.inputs[0].plain.df
    if isinstance(node.operator, Ordered):
        sides = {argument(i): each.schema for i, each in enumerate(node.inputs)}
        return df.select(*[F.lit(None).cast(kind).alias(name) for name, kind in sides.items()])
    assert isinstance(node.operator, Property)
    merged = fields["merge"].get("both")
    if not isinstance(fields["value"], Body) and merged is None:
        return df
    known = interpret(node, PROPERTIES).annotation
    assert isinstance(known, Properties)
    kind = known.kinds[node.operator.name]
    return df.withColumns({argument(i): F.lit(None).cast(kind) for i in range(2)})


def _runs_python(node: Node) -> bool:
    before = sum(explain(each.plain.df).count("EvalPython") for each in node.inputs)
    return explain(node.plain.df).count("EvalPython") > before


class _Registered:
    """The functions that the user has registered in the session, asked for once if at all."""

    def __init__(self, node: Node) -> None:
        self._spark = node.plain.df.sparkSession
        self._names: set[str] | None = None

    def refuse(self, text: str) -> None:
        """Refuse a function that another process would not know, or know as something else."""
        called = {name.lower() for name in _CALLED.findall(text)}
        if not called - _BUILT_IN:
            return
        if self._names is None:
            found = self._spark.sql("SHOW USER FUNCTIONS").collect()
            self._names = {str(row[0]).rsplit(".", 1)[-1].strip("`").lower() for row in found}
        for name in sorted(called & self._names):
            msg = f"the function `{name}`, which was registered in its session"
            raise NotStorableError(msg)
