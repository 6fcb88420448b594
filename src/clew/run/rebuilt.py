"""Rebuild a pipeline from the store, in a process that does not know it.

What is checked before it is used: that every step is stored, that its text is the one that every
run noted, and that the steps give the columns that the steps of the query had. Anything else is an
error that says which pipeline to hand in.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import types as T

from clew.capture.algebra import Origin
from clew.exceptions import ReplayError
from clew.graph.columns import renumbered
from clew.graph.node import Node
from clew.graph.text import quiet
from clew.operators.source import Source
from clew.operators.stored import decode, made
from clew.run.describe import shape_of
from clew.run.session import make_session
from clew.run.stored import VERSION, digest_of, settings_of
from clew.sources.identity import identity_from
from clew.sources.stored import source_from
from clew.store.commit import read_stream

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from clew.graph.node import Operator


def check_stored(root: Path, stream: str) -> dict[str, Any]:
    """Return what the store says of the query that fills a stream, if it can be rebuilt from that.

    No Spark is needed.

    Raises:
        ReplayError: It can not.
    """
    said = read_stream(root, stream) or {}
    pipeline, runs = said.get("pipeline"), said.get("runs", [])
    if pipeline is None:
        raise _refused(root, stream, "it was not stored with it")
    if pipeline.get("version") != VERSION:
        raise _refused(root, stream, f"it was stored in form {pipeline.get('version')!r}")
    if pipeline["unstored"]:
        raise _refused(root, stream, _why(said["graph"]["nodes"], pipeline["unstored"]))
    noted = {run.get("pipeline") for run in runs}
    if len(noted) > 1:
        raise _refused(root, stream, "it was filled by several versions of it")
    if noted != {digest_of(pipeline)}:
        raise _refused(root, stream, "its text in the store is not the one that was run")
    return said


def rebuild(root: Path, stream: str) -> Node:
    """Build the query that fills a stream from what the store says of it.

    It is built in the running session, or in one that is started. If the query ran with other
    settings, it gets a session of its own, with those.

    Args:
        root: The store.
        stream: The results.

    Raises:
        ReplayError: It cannot be rebuilt, or not as it was.
    """
    said = check_stored(root, stream)
    session = _session_like(make_session(), said["pipeline"]["settings"], root, stream)
    try:
        with quiet():
            node = _built(said, session)
            shape = shape_of(node)
    except (PySparkException, LookupError, TypeError, ValueError) as error:
        line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _refused(root, stream, f"Spark did not take a step of it ({line})") from error
    if {run["graph"] for run in said["runs"]} != {shape}:
        raise _refused(root, stream, "what is rebuilt has other steps or columns")
    return node


def _built(said: Mapping[str, Any], spark: SparkSession) -> Node:
    pipeline, graph = said["pipeline"], said["graph"]
    nodes: list[Node] = []
    ids: dict[int, int] = {}
    sources: dict[str, Operator] = {}
    for number, (step, drawn) in enumerate(zip(pipeline["steps"], graph["nodes"], strict=True)):
        operator: Operator
        if "source" in step:
            name = step["source"]
            if name not in sources:
                sources[name] = _source(name, pipeline["sources"][name], spark)
            operator = sources[name]
        else:
            fields = json.loads(renumbered(json.dumps(step["with"]), ids))
            operator = made(step["operator"], {k: decode(v) for k, v in fields.items()})
        inputs = tuple(nodes[i] for i in drawn["inputs"])
        node = Node(operator, inputs, referenced=set(step["referenced"]), said=drawn["label"])
        ids[number] = node.id
        nodes.append(node)
    sink: int = graph["sink"]
    return nodes[sink]


def _source(name: str, said: Mapping[str, Any], spark: SparkSession) -> Source:
    schema = T.StructType.fromJson(said["schema"])
    identity = identity_from(said["identity"])
    origin = Origin(name, identity, schema, said["event_time"], said["content"])
    return Source(origin, *source_from(said["read"], spark, schema))


def _session_like(
    spark: SparkSession, settings: Mapping[str, str], root: Path, stream: str
) -> SparkSession:
    """Return a session in which expressions mean what they meant."""
    if settings_of(spark) == dict(settings):
        return spark
    try:
        other = spark.newSession()
    except (PySparkException, NotImplementedError) as error:
        writing = "; ".join(f'spark.conf.set("{k}", "{v}")' for k, v in settings.items())
        why = f"this session has other settings than the one it ran in: write `{writing}`"
        raise _refused(root, stream, why) from error
    for name, value in settings.items():
        other.conf.set(name, value)
    return other


def _why(nodes: list[dict[str, Any]], unstored: list[dict[str, Any]]) -> str:
    steps = [(nodes[each["step"]], each["why"]) for each in unstored]
    said = [f"the step `{node['kind']}` ({node['label']}) holds {why}" for node, why in steps]
    return "; ".join(said)


def _refused(root: Path, stream: str, why: str) -> ReplayError:
    return ReplayError(
        f"the pipeline that fills `{stream}` cannot be rebuilt from the store: {why}.\n\n"
        f'Hand it in: `clew.open("{root}", pipelines={{"{stream}": frame}})`, or on the command '
        "line `--pipeline module:function`.\n\nMore: docs/how-to/replay.md"
    )
