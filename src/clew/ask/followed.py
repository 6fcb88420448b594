"""Which aggregate a result's column is, and of which source column, read off a stored pipeline.

A store says of each query what its steps are, as data, and which columns each has. A column of the
result is followed down through steps that hand it on or rename it, to the aggregate that makes it,
and what that aggregates further down to the sources. Anything that is not sure to leave a value as
it is ends the way. No Spark is needed for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.exceptions import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FUNCTIONS = ("sum", "avg", "max", "min", "count")
"""The aggregates whose influence has a closed form; those that tell rows apart best come first."""

_SAME = {"mean": "avg"}
_CALL = re.compile(r"(?P<function>\w+)\((?P<distinct>DISTINCT )?(?P<value>.*)\)", re.DOTALL)
_COLUMN = re.compile(r"(?P<plain>\w+)|`(?P<quoted>(?:[^`]|``)+)`")
_ALIAS = re.compile(r"(?P<value>.*) AS (?:\w+|`(?:[^`]|``)+`)", re.DOTALL)
_EVERY_ROW = ("*", "1")
_ALL_COLUMNS = re.compile(r"(.+\.)?\*")
_RENAMED = ("withColumnRenamed", "withColumnsRenamed", "toDF")

Place = tuple[int, str]
"""A step of a pipeline, and one of its columns."""


@dataclass(frozen=True, slots=True)
class Aggregated:
    """How a column of a result is made.

    Attributes:
        text: The aggregate, as SQL.
        function: Which it is, if it is one with a closed form.
        value: What it aggregates, as SQL; `*` for rows whatever they hold.
        columns: The column of each source that it aggregates, if each row of a source brings one
            value as it is; None where that is not sure.
    """

    text: str
    function: str | None = None
    value: str | None = None
    columns: Mapping[str, str | None] | None = field(default=None)


def aggregated(said: Mapping[str, Any]) -> dict[str, Aggregated]:
    """Say how the columns of a result are made, of those that an aggregate makes.

    Args:
        said: What the store says of the result's stream.

    Raises:
        StoreError: The store says what no query can be.
    """
    pipeline = said.get("pipeline")
    if not pipeline or not said.get("graph"):
        return {}
    try:
        return _aggregated(said, pipeline)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        msg = (
            f"the pipeline of `{said.get('name')}` is not as a store's pipeline should be.\n\n"
            "Restore the file of the stream from a backup, or write provenance to a new place."
        )
        raise StoreError(msg) from error


def _aggregated(said: Mapping[str, Any], pipeline: Mapping[str, Any]) -> dict[str, Aggregated]:
    steps = _Steps(pipeline["steps"], said["graph"]["nodes"])
    sink = said["graph"]["sink"]
    found = {name: steps.aggregate((sink, name)) for name in steps.columns(sink)}
    return {name: each for name, each in found.items() if each is not None}


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps of a stored pipeline, and the columns of each."""

    steps: Sequence[Mapping[str, Any]]
    nodes: Sequence[Mapping[str, Any]]

    def columns(self, number: int) -> list[str]:
        return list(self.nodes[number].get("columns") or ())

    def aggregate(self, place: Place) -> Aggregated | None:
        """Find the aggregate that makes a column."""
        while True:
            step = self.steps[place[0]]
            if step.get("operator") == "Aggregate":
                return self._made(*place)
            below = self._below(*place)
            if len(below) != 1:
                return None
            [place] = below

    def _made(self, number: int, column: str) -> Aggregated | None:
        given = self.steps[number]["with"]
        keys = len(given["key_names"]["tuple"])
        columns = self.columns(number)
        at = columns.index(column) - keys if columns.count(column) == 1 else -1
        aggregates = given["aggregates"]["tuple"]
        if not 0 <= at < len(aggregates):
            return None
        text = _without_alias(_sql(aggregates[at]))
        call = _CALL.fullmatch(text)
        function = call and _SAME.get(call["function"], call["function"])
        if call is None or call["distinct"] or function not in FUNCTIONS or _is_cut(call["value"]):
            return Aggregated(text)
        [below] = self.nodes[number]["inputs"]
        if function == "count" and call["value"] in _EVERY_ROW:
            return Aggregated(text, function, "*", self._sources(below, None))
        name = self._named(below, call["value"])
        columns_of = None if name is None else self._sources(below, name)
        return Aggregated(text, function, call["value"], columns_of)

    def _sources(self, number: int, column: str | None) -> dict[str, str | None] | None:
        """Follow a column to the sources; None if it may change on the way.

        Without a column, only that each row of a source stays one row matters.
        """
        step = self.steps[number]
        if "source" in step:
            return {step["source"]: column}
        if column is None:
            kept = self._keeps_rows(number)
            below: list[tuple[int, str | None]] = [(i, None) for i in kept]
        else:
            below = list(self._below(number, column))
        found: dict[str, str | None] = {}
        for number_below, name in below:
            inside = self._sources(number_below, name)
            # A source that comes in twice brings two values for one row.
            if inside is None or inside.keys() & found.keys():
                return None
            found |= inside
        return found or None

    def _keeps_rows(self, number: int) -> list[int]:
        """Name the inputs of a step whose rows it hands on, each as one row or not at all."""
        step, inputs = self.steps[number], list(self.nodes[number]["inputs"])
        operator, given = step.get("operator"), step.get("with") or {}
        if operator == "Project":
            return [] if given["multiplies"] or given["partition"] is not None else inputs
        if operator == "Dedup":
            return inputs if given["contributes"] == "kept" else []
        plain = ("Keep", "Reshape", "DropAt", "Named", "Property", "Union")
        return inputs if operator in plain else []

    def _below(self, number: int, column: str) -> list[Place]:
        """Say which column of each input a column of a step is, as it is; nothing if not sure."""
        inputs = self._keeps_rows(number)
        columns = self.columns(number)
        if not inputs or columns.count(column) != 1:
            return []
        step = self.steps[number]
        operator, given = step["operator"], step["with"]
        if operator == "Union":
            at = columns.index(column)
            sides = [column if given["by_name"] else self.columns(i)[at] for i in inputs]
            return _all([(i, self._found(i, name)) for i, name in zip(inputs, sides, strict=True)])
        [below] = inputs
        if operator == "Project":
            return _all([(below, self._projected(number, below, column))])
        if operator == "Reshape":
            return _all([(below, self._reshaped(number, below, column))])
        return _all([(below, self._found(below, column))])

    def _projected(self, number: int, below: int, column: str) -> str | None:
        given = self.steps[number]["with"]["columns"]
        if "map" in given:
            made = {name.casefold(): value for name, value in given["map"]}
            value = made.get(column.casefold())
            return self._found(below, column) if value is None else self._named(below, _sql(value))
        listed = [_sql(each) for each in given["tuple"]]
        columns = self.columns(number)
        if len(listed) != len(columns) or any(_ALL_COLUMNS.fullmatch(each) for each in listed):
            return self._found(below, column) if column in listed else None
        entry = given["tuple"][columns.index(column)]
        # A name given as text stands for itself; as SQL it may be in quotes, or have another name.
        if isinstance(entry, str):
            return self._found(below, entry)
        return self._named(below, _without_alias(_sql(entry)))

    def _reshaped(self, number: int, below: int, column: str) -> str | None:
        verb = self.steps[number]["with"]["verb"]
        if verb in _RENAMED:
            return self.columns(below)[self.columns(number).index(column)]
        return self._found(below, column) if verb == "drop" else None

    def _named(self, number: int, text: str) -> str | None:
        """Read an expression that is a column of a step and nothing else."""
        match = _COLUMN.fullmatch(text)
        if match is None:
            return None
        name = match["plain"] or match["quoted"].replace("``", "`")
        return self._found(number, name)

    def _found(self, number: int, name: str) -> str | None:
        """Find the one column of a step that a name stands for; Spark minds no case."""
        columns = self.columns(number)
        found = [each for each in columns if each.casefold() == name.casefold()]
        return found[0] if len(found) == 1 else None


def _is_cut(text: str) -> bool:
    """Tell whether a text ends a bracket that it did not begin, as in `a) + (b`."""
    depth = 0
    for each in text:
        depth += {"(": 1, ")": -1}.get(each, 0)
        if depth < 0:
            return True
    return depth != 0


def _all(places: Sequence[tuple[int, str | None]]) -> list[Place]:
    known = [(number, name) for number, name in places if name is not None]
    return known if len(known) == len(places) else []


def _sql(entry: Any) -> str:
    return str(entry["sql"]) if isinstance(entry, dict) else str(entry)


def _without_alias(text: str) -> str:
    match = _ALIAS.fullmatch(text)
    return match["value"] if match is not None else text
