"""The operator graph: immutable nodes that interpretations walk.

A node is an operator and its inputs. What the operator does to rows and to their annotation is
the operator's business; what an annotation is, the capture's. `interpret` joins the two: it walks
the graph and builds one ordinary Spark DataFrame. The query as the user wrote it is such an
interpretation too, with the capture that carries nothing.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from clew.exceptions import GraphError
from clew.plan.columns import at_hand, find_references, named, reference_name, user_columns
from clew.plan.mask import NOTHING, masking_with
from clew.plan.secret import hashing_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from clew.model import Exactness
    from clew.plan.algebra import Annotation, Capture, Move
    from clew.plan.facts import Facts
    from clew.plan.made import Made
    from clew.plan.mask import Mask
    from clew.plan.secret import Secret

_ids = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Annotated:
    """A DataFrame with the user's columns and, hidden, each row's annotation.

    Attributes:
        df: The rows.
        annotation: Which hidden columns hold the annotation, and what they mean.
        references: Hidden copies of columns that the user refers to as `frame["column"]`.
        alias: The name that the user gave the frame, if it is still in force.
        pending: What computes the annotation, while it is not among the columns yet.
    """

    df: DataFrame
    annotation: Annotation
    references: tuple[str, ...] = ()
    alias: str | None = None
    pending: Move | None = None

    @property
    def hidden(self) -> tuple[str, ...]:
        """All hidden columns, in order."""
        return (*self.annotation.columns, *self.references)

    def with_df(self, df: DataFrame) -> Annotated:
        """Return a copy with other rows under the same annotation."""
        return replace(self, df=df)

    def settled(self) -> Annotated:
        """Return a copy with the annotation among the columns."""
        if self.pending is None:
            return self
        return replace(self, df=self.pending.apply(self.df, ()), pending=None)


class Operator(Protocol):
    """One step of a pipeline: what it does to rows, and to annotations in terms of moves."""

    @property
    def kind(self) -> str:
        """A word for the step, as the user would say it."""

    @property
    def label(self) -> str:
        """The step's parameters in a few words."""

    @property
    def exactness(self) -> Exactness:
        """How well the step's rows can be followed."""

    @property
    def facts(self) -> Facts:
        """What becomes of rows, how long they are kept, and what the step rests on."""

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        """Say what a column is made of, for rows from each input; nothing if that is not known."""

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        """Apply the step to rows and, through the capture's moves, to their annotations."""


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """An operator and its inputs.

    Attributes:
        operator: What the step does.
        inputs: Where its rows come from.
        id: A number of its own, unique in the process.
        referenced: Positions of the columns the user took as `frame["column"]`; it only grows.
        said: What the step was called when it was stored, if it was made again from a store.
    """

    operator: Operator
    inputs: tuple[Node, ...] = ()
    id: int = field(default_factory=_ids.__next__)
    referenced: set[int] = field(default_factory=set)
    said: str | None = None
    _plain: dict[frozenset[tuple[int, int]], Annotated] = field(default_factory=dict)
    _bound: dict[tuple[Secret, Mask | None], Node] = field(default_factory=dict)

    def walk(self) -> Iterator[Node]:
        """Yield the node and all it is made from, inputs first, each once."""
        seen: set[int] = set()
        stack: list[tuple[Node, bool]] = [(self, False)]
        while stack:
            node, expanded = stack.pop()
            if expanded:
                yield node
            elif node.id not in seen:
                seen.add(node.id)
                stack.append((node, True))
                stack.extend((each, False) for each in reversed(node.inputs))

    @property
    def plain(self) -> Annotated:
        """The user's own query up to here, without any annotation."""
        from clew.plan.off import OFF

        taken = frozenset((n.id, p) for n in self.walk() for p in n.referenced)
        if taken not in self._plain:
            self._plain.clear()
            inputs = [each.plain for each in self.inputs]
            with at_hand():
                built = self.operator.annotate(inputs, OFF).settled()
            self._plain[taken] = _with_references(self, built)
        return self._plain[taken]

    @property
    def columns(self) -> list[str]:
        """The user's columns."""
        return user_columns(self.plain.df)

    @property
    def schema(self) -> StructType:
        """The schema of the user's columns."""
        from pyspark.sql.types import StructType

        plain = self.plain
        hidden = set(plain.hidden)
        return StructType([f for f in plain.df.schema.fields if f.name not in hidden])


def interpret(
    node: Node,
    capture: Capture,
    *,
    check: bool = True,
    after: Callable[[Node, Annotated], Annotated] | None = None,
) -> Annotated:
    """Build the Spark DataFrame of a node under a capture method.

    Args:
        node: The node.
        capture: How provenance is carried.
        check: Compare the columns with those of the plain query.
        after: Changes what a step has made before the next takes it.
    """
    built: dict[int, Annotated] = {}
    with hashing_with(secret_of(node) or capture.secret), masking_with(mask_of(node)):
        for each in node.walk():
            inputs = [built[i.id] for i in each.inputs]
            if not getattr(each.operator, "goes_before_ids", False):
                inputs = [one.settled() for one in inputs]
            capture.enter(each.id)
            made = _with_references(each, each.operator.annotate(inputs, capture))
            built[each.id] = made if after is None else after(each, made.settled())
    out = built[node.id].settled()
    if check and user_columns(out.df) != node.columns:
        msg = f"traced columns {user_columns(out.df)} are not those of the query, {node.columns}"
        raise GraphError(msg)
    return out


def secret_of(node: Node) -> Secret | None:
    """Return the secret with which a pipeline hashes ids; its sources know it."""
    origins = (getattr(each.operator, "origin", None) for each in node.walk())
    return next((each.secret for each in origins if each is not None and each.secret), None)


def mask_of(node: Node) -> Mask:
    """Return what a pipeline keeps otherwise than it is; its sources know it."""
    origins = (getattr(each.operator, "origin", None) for each in node.walk())
    return next((each.mask for each in origins if each is not None), NOTHING)


def with_secret(node: Node, secret: Secret, mask: Mask | None = None) -> Node:
    """Return the same graph with sources that know a store's secret, and a mask if one is given.

    Asked again it is the same object, by which what is known of a running query is found.
    """
    known = node._bound  # noqa: SLF001 (of its own kind)
    bound = known.get((secret, mask))
    if bound is None:
        bound = _with_secret(node, secret, mask)
        known.clear()  # a pipeline that fills store after store keeps the last
        known[secret, mask] = bound
    return bound


def _with_secret(node: Node, secret: Secret, mask: Mask | None) -> Node:
    sources: dict[int, Operator] = {}
    same: dict[int, Any] = {}
    for each in node.walk():
        operator: Any = each.operator
        origin = getattr(operator, "origin", None)
        if origin is None:
            continue
        masked = origin.mask if mask is None else mask.keyed(secret) if mask else NOTHING
        if (origin.secret, origin.mask) != (secret, masked):
            # Two steps that share a source share it afterwards as well.
            known = replace(operator, origin=replace(origin, secret=secret, mask=masked))
            sources[each.id] = same.setdefault(id(operator), known)
    return _with_operators(node, sources, keep_plain=True) if sources else node


def _with_references(node: Node, built: Annotated) -> Annotated:
    if not node.referenced:
        return built
    users = user_columns(built.df)
    copies = {reference_name(node.id, p): named(users[p]) for p in sorted(node.referenced)}
    return replace(built, df=built.df.withColumns(copies), references=(*built.references, *copies))


def rebuilt(node: Node, operators: Mapping[int, Operator]) -> Node:
    """Return the same graph with other operators at some nodes, e.g. other sources.

    Nodes keep their numbers, so that references by `frame["column"]` still find their columns.
    """
    return _with_operators(node, operators, keep_plain=False)


def _with_operators(node: Node, operators: Mapping[int, Operator], *, keep_plain: bool) -> Node:
    made: dict[int, Node] = {}
    for each in node.walk():
        inputs = tuple(made[i.id] for i in each.inputs)
        operator = operators.get(each.id, each.operator)
        plain = each._plain if keep_plain else {}  # noqa: SLF001 (of its own kind)
        made[each.id] = Node(operator, inputs, each.id, each.referenced, each.said, plain)
    return made[node.id]


def describe(node: Node) -> dict[str, Any]:
    """Write the graph as plain data for the store: operators, parameters, topology."""
    numbers: dict[int, int] = {}
    names: dict[str, str] = {}
    nodes = []
    for number, each in enumerate(node.walk()):
        numbers[each.id] = number
        label = each.operator.label if each.said is None else each.said
        described: dict[str, Any] = {
            "id": number,
            "kind": each.operator.kind,
            "label": label,
            "inputs": [numbers[i.id] for i in each.inputs],
            "columns": each.columns,
            "exactness": each.operator.exactness,
        }
        # Only a process knows what its references stand for; whoever reads the label has to.
        copies = {copy for copy, *_ in find_references(label)} & names.keys()
        if copies:
            described["names"] = {copy: names[copy] for copy in sorted(copies)}
        nodes.append(described)
        names |= {reference_name(each.id, p): each.columns[p] for p in each.referenced}
    return {"nodes": nodes, "sink": numbers[node.id]}
