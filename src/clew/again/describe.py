"""The static part of a query: what the store says of its streams."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

from clew.again.blueprint import (
    digest_of,
    functions_of,
    meaning_of,
    same_steps,
    store_pipeline,
    version_of,
)
from clew.again.reach import is_stateful
from clew.again.trust import sign
from clew.capture.sets import SETS, Sets
from clew.exceptions import GraphError
from clew.expiry.bound import bounds, widest
from clew.operators.named import Named
from clew.operators.source import Source
from clew.plan.columns import renumbered
from clew.plan.duration import micros
from clew.plan.node import describe, interpret
from clew.plan.sql import settled_lambdas
from clew.plan.written import without_origins
from clew.store.commit import now
from clew.store.records import worst

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType

    from clew.again.choose import Choice
    from clew.plan.algebra import Annotation
    from clew.plan.node import Node


def describe_streams(
    node: Node, writer: str, choice: Choice, run: str, checkpoint: str | None = None
) -> list[dict[str, Any]]:
    """Describe the sources, the named frames and the sink of a query."""
    graph = _graph(node)
    numbers = {each.id: number for number, each in enumerate(node.walk())}
    frames = [n for n in node.walk() if isinstance(n.operator, Named)]
    pipeline = store_pipeline(node)
    shape, functions = _shape(node, graph), functions_of(node, pipeline)
    runs = [
        {
            "run": run,
            "started": now(),
            "graph": shape,
            "checkpoint": checkpoint,
            "pipeline": digest_of(pipeline),
            "spark": node.plain.df.sparkSession.version,
        }
    ]
    filled = {
        "writer": writer,
        "capture": choice.capture,
        "why": choice.why,
        "runs": runs,
        "identity": None,
    }
    streams = [_source(s) for s in sources(node)]
    for each in frames:
        inside = _stream(each.operator.label, "named", each, filled)
        streams.append({**inside, "node": numbers[each.id], "sources": graph["sources"]})
    bound = {name: each.to_dict() for name, each in bounds(node).items()}
    own = {
        "graph": graph,
        "bounds": bound,
        "pipeline": pipeline,
        "settings": pipeline["settings"],
        "version": version_of(shape, pipeline, functions),
        "meaning": meaning_of(shape, pipeline, functions),
        "shape": shape,
        "functions": functions,
        "state": _state(node),
    }
    sink = {**_stream(writer, "sink", node, filled), **own}
    streams.append({**sink, "signature": sign(sink)})
    return streams


def _state(node: Node) -> dict[str, Any]:
    """Say whether a query keeps state between batches, and when a row has left it for good.

    That is once the watermark is so far beyond the one that the row led to. Where several
    watermarks are made into one, the row may be younger than that says.
    """
    marks = filter(None, (each.operator.facts.watermark for each in node.walk()))
    delays = [micros(each.delay) for each in marks]
    found = bounds(node).values()
    life = widest(found)
    clears = None
    if len(delays) == 1 and delays[0] is not None and life is not None:
        clears = None if any(each.clock for each in found) else delays[0] + life
    kept = any(is_stateful(each) for each in node.walk())
    return {"kept": kept, "clears_us": clears}


def carried_in_state(node: Node) -> str:
    """Return a hash of what source rows are kept as, with `sets`, where a step keeps state.

    Spark takes the bytes that an aggregate gathered for values of the types that a query has now,
    and does not look at the types that they were written with.

    Args:
        node: The query, with the mask of its store.
    """
    kept = [
        [[name, kind.simpleString()] for name, kind in _types(interpret(before, SETS).annotation)]
        for each in node.walk()
        if is_stateful(each)
        for before in each.inputs
    ]
    return hashlib.sha256(json.dumps(kept).encode()).hexdigest()[:16]


def _types(carried: Annotation) -> list[tuple[str, StructType]]:
    assert isinstance(carried, Sets)
    return list(carried.types.items())


def shape_of(node: Node) -> str:
    """Return a hash of a pipeline's operators, parameters and columns, to tell versions apart."""
    return _shape(node, _graph(node))


class Likeness:
    """Tells whether a pipeline is the one that a store says of a version of a query.

    Args:
        node: The pipeline.
    """

    def __init__(self, node: Node) -> None:
        self._node = node

    def fits(self, said: Mapping[str, Any]) -> bool:
        """Compare steps, parameters and columns, as far as they can be told apart.

        Args:
            said: What the store says of the version.
        """
        if self._shape != said.get("shape"):
            return False
        # A text and a column of its name are drawn alike: what is stored of the steps tells more.
        # Steps that were rebuilt from there may be spelled otherwise.
        return self._node.said is not None or same_steps(self._stored, said.get("pipeline"))

    @cached_property
    def _shape(self) -> str:
        return shape_of(self._node)

    @cached_property
    def _stored(self) -> dict[str, Any]:
        return store_pipeline(self._node)


def _shape(node: Node, graph: dict[str, Any]) -> str:
    numbers = {each.id: number for number, each in enumerate(node.walk())}
    # Nodes are numbered anew in each process, and so are references to their columns and the
    # variables of functions.
    nodes = [
        {
            **{key: value for key, value in each.items() if key != "names"},
            "label": settled_lambdas(without_origins(each["label"])),
        }
        for each in graph["nodes"]
    ]
    read = {
        s.origin.name: [s.origin.identity.describe(), s.origin.event_time, _columns(s)]
        for s in sources(node)
    }
    said = {**graph, "nodes": nodes, "read": read}
    text = renumbered(json.dumps(said, sort_keys=True), numbers)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _columns(source: Source) -> list[list[str]]:
    return [[each.name, each.dataType.simpleString()] for each in source.origin.schema.fields]


def _graph(node: Node) -> dict[str, Any]:
    graph = describe(node)
    graph["sources"] = [s.origin.name for s in sources(node)]
    numbers = {each.id: number for number, each in enumerate(node.walk())}
    frames = [n for n in node.walk() if isinstance(n.operator, Named)]
    graph["named"] = {n.operator.label: numbers[n.id] for n in frames}
    return graph


def sources(node: Node) -> list[Source]:
    """List the sources of a pipeline, each once, in the order they are met.

    Raises:
        GraphError: Two sources have one name.
    """
    found: dict[str, Source] = {}
    for each in node.walk():
        if not isinstance(each.operator, Source):
            continue
        name = each.operator.origin.name
        if found.setdefault(name, each.operator) is not each.operator:
            msg = (
                f"two sources of the pipeline are called `{name}`, so answers could not tell their "
                f"rows apart.\n\nGive each its own name: `clew.trace(df, {name + '_2'!r})`; or "
                "trace the frame once and use it twice."
            )
            raise GraphError(msg)
    return list(found.values())


def check_name(node: Node, writer: str) -> None:
    """Refuse a name for the results that something else in the pipeline has.

    Raises:
        GraphError: A source or a named frame is called the same.
    """
    taken = {s.origin.name for s in sources(node)}
    taken |= {n.operator.label for n in node.walk() if isinstance(n.operator, Named)}
    if writer in taken:
        msg = (
            f"the results are called `{writer}`, and so is a source or named frame of the same "
            "pipeline.\n\nChoose another name for one of them."
        )
        raise GraphError(msg)


def _source(source: Source) -> dict[str, Any]:
    origin = source.origin
    return {
        "name": origin.name,
        "kind": "source",
        "writer": None,
        "capture": None,
        "exactness": "exact",
        "schema": origin.schema.jsonValue(),
        "identity": origin.identity.describe(),
        "event_time": origin.event_time,
        "runs": [],
    }


def _stream(name: str, kind: str, node: Node, filled: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "exactness": worst([n.operator.exactness for n in node.walk()]),
        "schema": node.schema.jsonValue(),
        "event_time": None,
        **filled,
    }
