"""The requirements on a live graph in plain Python, for streams of a few elements."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Element = Mapping[str, Any]
    Found = dict[tuple[str, str], list[str]]

COMMON = ("element", "at", "step", "stream", "a", "b")
ENDS = ("sink", "sink_a", "sink_b")


def check(elements: Sequence[Element], *, complete: bool = False) -> Found:
    """Return what is wrong, by requirement and sentence, with the names of where it was found."""
    found: Found = defaultdict(list)
    known = [each for each in elements if not _malformed(each, found)]
    _check_steps(known, found)
    vertices = _grouped(known, "vertex")
    edges = _grouped(known, "edge")
    labels = _grouped(known, "label")
    around: dict[Any, list[Element]] = defaultdict(list)
    for key, deliveries in edges.items():
        for side in ("source", "sink"):
            around[_end(key, side)] += deliveries
    for vertex in vertices:
        if len(vertices[vertex]) > 1:
            found["R-V", "a vertex was delivered more than once"].append(_name(vertex))
        if vertex[0] == "source" and vertex not in around:
            found["R-V", "a source vertex has no edge"].append(_name(vertex))
        if complete and vertex not in labels:
            found["R-L", "a vertex has no label"].append(_name(vertex))
    for key, deliveries in edges.items():
        _check_edge(key, deliveries, vertices, found)
    for vertex, deliveries in labels.items():
        _check_label(vertex, deliveries, vertices.get(vertex, []), around[vertex], found)
    return {kind: sorted(names, key=_order) for kind, names in found.items()}


def _malformed(each: Element, found: Found) -> bool:
    element = each["element"]
    wrong = [f"an element has no `{column}`" for column in COMMON if each[column] is None]
    if element in {"vertex", "label"}:
        if each["side"] is None:
            wrong.append("a vertex or label has no `side`")
        elif each["side"] not in {"source", "sink"}:
            wrong.append("a vertex or label is neither of a source row nor of a sink row")
    elif element == "edge":
        wrong += [f"an edge has no `{column}`" for column in ENDS if each[column] is None]
    elif element is not None:
        wrong.append("an element is neither a vertex, an edge nor a label")
    name = _row(each["stream"], each["a"], each["b"])
    if element == "edge":
        name += " -> " + _row(each["sink"], each["sink_a"], each["sink_b"])
    for what in wrong:
        found["stream", what].append(name)
    return bool(wrong)


def _check_steps(known: list[Element], found: Found) -> None:
    newest: dict[int, Any] = {}
    for each in known:
        newest[each["step"]] = max(each["at"], newest.get(each["step"], each["at"]))
    for step, at in newest.items():
        if any(other < step and at < newest[other] for other in newest):
            found["stream", "`at` goes back from a step to a later one"].append(f"step {step}")


def _check_edge(
    key: Any, deliveries: list[Element], vertices: dict[Any, list[Element]], found: Found
) -> None:
    wrong: set[tuple[str, str]] = set()
    if len(deliveries) > 1:
        wrong.add(("R-E", "an edge was delivered more than once"))
    for side in ("source", "sink"):
        ends = vertices.get(_end(key, side), [])
        if not ends:
            wrong.add(("R-V", f"the {side} vertex of an edge was not delivered"))
        for each in deliveries:
            if ends and all(each["at"] < end["at"] for end in ends):
                wrong.add(("R-E", "the `at` of an edge is before that of one of its vertices"))
            if ends and all(each["step"] < end["step"] for end in ends):
                what = "an edge was delivered in an earlier step than one of its vertices"
                wrong.add(("R-E", what))
    for kind in wrong:
        found[kind].append(f"{_name(_end(key, 'source'))} -> {_name(_end(key, 'sink'))}")


def _check_label(
    vertex: Any,
    deliveries: list[Element],
    vertices: list[Element],
    edges: list[Element],
    found: Found,
) -> None:
    wrong: set[str] = set()
    if len(deliveries) > 1:
        wrong.add("a label was delivered more than once")
    if not vertices:
        wrong.add("a label is for a vertex that was not delivered")
    for each in deliveries:
        if vertices and all(each["at"] < other["at"] for other in vertices):
            wrong.add("the `at` of a label is before that of its vertex")
        if vertices and all(each["step"] < other["step"] for other in vertices):
            wrong.add("a label was delivered in an earlier step than its vertex")
        if any(each["at"] < edge["at"] for edge in edges):
            wrong.add("the `at` of a label is before that of an edge of its vertex")
        if any(each["step"] < edge["step"] for edge in edges):
            wrong.add("a vertex got an edge after it was labelled as expired")
    for what in wrong:
        found["R-L", what].append(_name(vertex))


def _grouped(known: list[Element], element: str) -> dict[Any, list[Element]]:
    groups: dict[Any, list[Element]] = defaultdict(list)
    for each in known:
        if each["element"] == element:
            row = (each["stream"], each["a"], each["b"])
            sink = (each["sink"], each["sink_a"], each["sink_b"])
            groups[(*row, *sink) if element == "edge" else (each["side"], *row)].append(each)
    return dict(groups)


def _end(key: Any, side: str) -> Any:
    return (side, *(key[:3] if side == "source" else key[3:]))


def _name(vertex: Any) -> str:
    return _row(*vertex[1:])


def _row(stream: str | None, a: int | None, b: int | None) -> str:
    halves = ("?" * 16 if half is None else f"{half % 2**64:016x}" for half in (a, b))
    return f"{'?' if stream is None else stream}:{''.join(halves)}"


def _order(name: str) -> tuple[int, str]:
    return (int(name.removeprefix("step ")), "") if name.startswith("step ") else (0, name)
