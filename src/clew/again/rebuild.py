"""Rebuild a pipeline from the store, in a process that does not know it.

What is checked before it is used: that every step is stored, that its text is the one whose digest
the batches name, and that the steps give the columns that the steps of the query had. Anything else
is an error that says which pipeline to hand in.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import types as T

from clew.again.blueprint import VERSION, version_of
from clew.again.describe import shape_of
from clew.again.session import make_session, note_own
from clew.again.trust import is_own
from clew.exceptions import GraphError, OtherVersionError, ReplayError
from clew.operators.admissible import admit_settings, admit_type
from clew.operators.plain_data import decode, made
from clew.operators.source import Source
from clew.plan.algebra import Origin
from clew.plan.columns import renumbered
from clew.plan.node import Node
from clew.plan.settings import differing, settings_of, to_set
from clew.plan.sql import quiet
from clew.plan.written import label_of
from clew.sources.described import source_from
from clew.sources.identity import identity_from
from clew.store.commit import read_stream
from clew.store.versions import said_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from clew.plan.node import Operator


_RAW_TEXTS = "spark.sql.parser.escapedStringLiterals"
_PARTS = frozenset({"steps", "settings", "sources", "unstored"})


def check_stored(
    root: Path, stream: str, *, trust: bool = False, version: str | None = None
) -> dict[str, Any]:
    """Return what the store says of the query that fills a stream, if it can be rebuilt from that.

    No Spark is needed. A pipeline that another user's query stored, or that was changed since, is
    only taken with `trust`.

    Args:
        root: The store.
        stream: The results.
        trust: Take what another user's query stored, too.
        version: Which version of the query; the newest if left out.

    Raises:
        ReplayError: It can not.
    """
    newest = read_stream(root, stream) or {}
    said = said_of(newest, version or newest.get("version"))
    if said is None:
        raise OtherVersionError(str(root), stream, version, "it is not stored")

    why = _obstacle(root, said, trust=trust)
    if why is None:
        return said
    if version is None or version == newest.get("version"):
        raise _refused(root, stream, why)
    raise OtherVersionError(str(root), stream, version, why)


def _obstacle(root: Path, said: Mapping[str, Any], *, trust: bool) -> str | None:
    """Say why a version of a query cannot be rebuilt; None if it can."""
    pipeline = said.get("pipeline")
    if pipeline is None:
        masked = (said.get("mask") or {}).get("literals")
        why = "its literals are masked, so its text" if masked else "it"
        return f"{why} was not stored with it"
    if pipeline.get("version") != VERSION:
        return f"it was stored in form {pipeline.get('version')!r}"
    graph = said.get("graph") or {}
    if not pipeline.keys() >= _PARTS or len(graph.get("nodes", ())) != len(pipeline["steps"]):
        return "parts of it are missing there"
    if pipeline["unstored"]:
        return _why(said["graph"]["nodes"], pipeline["unstored"])
    if said["version"] != version_of(said.get("shape"), pipeline, said.get("functions")):
        return "its text in the store is not the one that was run"
    if not trust and not is_own(said):
        return (
            "it is not signed with your key, and to rebuild it is to run what the store says. If "
            f'you trust who wrote the store, write `clew.open("{root}", trust=True)`, or on the '
            "command line `--trust`"
        )
    return None


def rebuild(root: Path, stream: str, *, trust: bool = False, version: str | None = None) -> Node:
    """Build the query that fills a stream from what the store says of it.

    It is built in the running session, or in one that is started. If the query ran with other
    settings, it gets a session of its own, with those.

    Args:
        root: The store.
        stream: The results.
        trust: Take what another user's query stored, too.
        version: Which version of the query; the newest if left out.

    Raises:
        ReplayError: It cannot be rebuilt, or not as it was.
    """
    said = check_stored(root, stream, trust=trust, version=version)
    session = _session_like(make_session(), said["pipeline"]["settings"], root, stream)
    if str(session.conf.get(_RAW_TEXTS, "false")).lower() == "true":
        raise _refused(
            root, stream, f"the session has `{_RAW_TEXTS}`, by which texts end elsewhere"
        )
    try:
        with quiet():
            node = _built(said, session)
            shape = shape_of(node)
    except (PySparkException, GraphError, LookupError, TypeError, ValueError) as error:
        line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _refused(root, stream, f"Spark did not take a step of it ({line})") from error
    if said["shape"] != shape:
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
    schema = T.StructType.fromJson(admit_type(said["schema"]))
    identity = identity_from(said["identity"])
    origin = Origin(name, identity, schema, said["event_time"], said["content"])
    return Source(origin, *source_from(said["read"], spark, schema))


def _session_like(
    spark: SparkSession, settings: Mapping[str, str], root: Path, stream: str
) -> SparkSession:
    """Return a session in which expressions mean what they meant."""
    now = settings_of(spark)
    if now == dict(settings):
        return spark
    try:
        admit_settings(settings)
    except GraphError as error:
        raise _refused(root, stream, str(error)) from error
    try:
        other = spark.newSession()
        for name, value in settings.items():
            other.conf.set(name, value)
        left = differing(settings, settings_of(other))
    except (PySparkException, NotImplementedError) as error:
        names = differing(settings, now)
        why = (
            f"this session has other settings than the one it ran in: {', '.join(names)}. Write "
            f"`{to_set(settings, names)}`"
        )
        raise _refused(root, stream, why) from error
    if left:
        why = f"a session cannot be given the settings that it ran with: {', '.join(left)}"
        raise _refused(root, stream, why)
    return note_own(other)


def _why(nodes: list[dict[str, Any]], unstored: list[dict[str, Any]]) -> str:
    steps = [(nodes[each["step"]], each["why"]) for each in unstored if each["step"] < len(nodes)]
    said = [f"the step `{node['kind']}` ({label_of(node)}) holds {why}" for node, why in steps]
    return "; ".join(said)


def _refused(root: Path, stream: str, why: str) -> ReplayError:
    return ReplayError(
        f"the pipeline that fills `{stream}` cannot be rebuilt from the store: {why}.\n\n"
        f'Hand it in: `clew.open("{root}", pipelines={{"{stream}": frame}})`, or on the command '
        "line `--pipeline module:function`.\n\nMore: docs/how-to/replay.md"
    )
