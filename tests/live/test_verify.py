"""Every way in which the elements of a live graph can break its promises is found and named.

Other random graphs: `CLEW_VERIFY_SEED=7 CLEW_VERIFY_GRAPHS=2000 pytest tests/live/test_verify.py`.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, note, seed, settings
from hypothesis import strategies as st

from clew.exceptions import StoreError
from clew.live.elements import SCHEMA
from clew.live.verify import CHECKS, CHECKS_WHEN_COMPLETE, Report, Violation, verify
from live.model import check

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from random import Random

Element = dict[str, Any]
Key = tuple[str, str, int]
Kinds = dict[tuple[str, str], tuple[str, ...]]

SEED = int(os.environ.get("CLEW_VERIFY_SEED", "2021"))
GRAPHS = int(os.environ.get("CLEW_VERIFY_GRAPHS", "40"))
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone.utc)

R1, R2, R3 = (("source", "reports", number) for number in (1, 2, 3))
K1, K2, K3 = (("sink", "alerts", number) for number in (1, -1, 3))

ZEROS, NULLS = "0" * 16, "?" * 16
REPORT_1, REPORT_2, REPORT_3 = (f"reports:{number:016x}{ZEROS}" for number in (1, 2, 3))
ALERT_1, ALERT_2, ALERT_3 = (
    f"alerts:{half}{ZEROS}" for half in (f"{1:016x}", "f" * 16, f"{3:016x}")
)


def put(element: str, step: int, at: int | None, **fields: Any) -> Element:
    """Return an element; unless `at` is given, step 2 is at 12:02."""
    clock = NOON + dt.timedelta(minutes=step if at is None else at)
    return {**dict.fromkeys(SCHEMA.names), "element": element, "step": step, "at": clock, **fields}


def vertex(key: Key, step: int, at: int | None = None) -> Element:
    return put("vertex", step, at, side=key[0], stream=key[1], a=key[2], b=0)


def label(key: Key, step: int, at: int | None = None) -> Element:
    return put("label", step, at, side=key[0], stream=key[1], a=key[2], b=0)


def edge(source: Key, sink: Key, step: int, at: int | None = None) -> Element:
    ends = {"sink": sink[1], "sink_a": sink[2], "sink_b": 0}
    return put("edge", step, at, stream=source[1], a=source[2], b=0, **ends)


def good() -> list[Element]:
    """Alert 1 is made of both reports, alert 2 of the second one."""
    return [
        vertex(R1, 1),
        vertex(R2, 1),
        vertex(K1, 1),
        edge(R1, K1, 1),
        edge(R2, K1, 1),
        label(K1, 1),
        label(R1, 2),
        vertex(K2, 2),
        edge(R2, K2, 2),
        label(K2, 2),
        label(R2, 3),
    ]


def table(elements: Sequence[Element]) -> pa.Table:
    return pa.Table.from_pylist(list(elements), SCHEMA)


def kinds(report: Report) -> dict[tuple[str, str], tuple[int, tuple[str, ...]]]:
    return {(v.requirement, v.what): (v.count, v.examples) for v in report.violations}


def write(elements: pa.Table, folder: Path) -> list[Path]:
    """Write one file for each step, as a graph is kept."""
    folder.mkdir(parents=True)
    steps = sorted(pc.unique(elements["step"]).to_pylist(), key=str)
    paths = [folder / f"{number:010d}.parquet" for number in range(len(steps))]
    for path, step in zip(paths, steps, strict=True):
        which = pc.is_null(elements["step"]) if step is None else pc.equal(elements["step"], step)
        pq.write_table(elements.filter(which), path)
    return paths


def test_a_good_stream_has_no_violations() -> None:
    report = verify(table(good()), complete=True)

    assert report == Report(4, 3, 4, ())
    assert report.ok
    assert str(report) == "4 vertices, 3 edges, 4 labels: 0 violations"


def test_no_elements_break_no_promise() -> None:
    nothing = Report(0, 0, 0, ())

    assert verify(table([]), complete=True) == nothing
    assert verify([], complete=True) == nothing


def test_a_row_may_be_a_sink_of_one_query_and_a_source_of_another() -> None:
    alert, total = ("source", "alerts", 1), ("sink", "totals", 1)
    further = [vertex(alert, 2), vertex(total, 2), edge(alert, total, 2), label(total, 2)]

    assert verify(table([*good(), *further])).ok
    assert kinds(verify(table([*good(), *further]), complete=True)) == {
        ("R-L", "a vertex has no label"): (1, (ALERT_1,))
    }


def test_a_sink_row_made_of_nothing_needs_no_edge() -> None:
    assert verify(table([*good(), vertex(K3, 3), label(K3, 3)]), complete=True).ok


def test_the_side_of_an_edge_does_not_matter() -> None:
    sided = [{**each, "side": each["side"] or "between"} for each in good()]

    assert verify(table(sided), complete=True).ok


class Plant(NamedTuple):
    """What is taken out of the good stream and put into it, and all that must be found then."""

    found: Kinds
    plus: Sequence[Element] = ()
    minus: Sequence[Element] = ()

    def stream(self) -> list[Element]:
        kept = [each for each in good() if each not in self.minus]
        assert len(kept) == len(good()) - len(self.minus)
        return [*kept, *self.plus]


def malformed(what: str, name: str, element: Element, /, **fields: Any) -> Plant:
    return Plant({("stream", what): (name,)}, plus=[{**element, **fields}])


PLANTS = {
    "unknown element": malformed(
        "an element is neither a vertex, an edge nor a label",
        ALERT_3,
        vertex(K3, 3),
        element="node",
    ),
    "unknown side": malformed(
        "a vertex or label is neither of a source row nor of a sink row",
        ALERT_3,
        label(K3, 3),
        side="middle",
    ),
    "element null": malformed("an element has no `element`", ALERT_3, vertex(K3, 3), element=None),
    "at null": malformed(
        "an element has no `at`", f"{REPORT_1} -> {ALERT_2}", edge(R1, K2, 2), at=None
    ),
    "step null": malformed("an element has no `step`", ALERT_3, label(K3, 3), step=None),
    "stream null": malformed(
        "an element has no `stream`", f"?:{3:016x}{ZEROS}", vertex(K3, 3), stream=None
    ),
    "a null": malformed("an element has no `a`", f"alerts:{NULLS}{ZEROS}", vertex(K3, 3), a=None),
    "b null": malformed("an element has no `b`", f"alerts:{3:016x}{NULLS}", label(K3, 3), b=None),
    "side null": malformed("a vertex or label has no `side`", ALERT_3, vertex(K3, 3), side=None),
    "sink null": malformed(
        "an edge has no `sink`", f"{REPORT_1} -> ?:{'f' * 16}{ZEROS}", edge(R1, K2, 2), sink=None
    ),
    "sink_a null": malformed(
        "an edge has no `sink_a`",
        f"{REPORT_1} -> alerts:{NULLS}{ZEROS}",
        edge(R1, K2, 2),
        sink_a=None,
    ),
    "sink_b null": malformed(
        "an edge has no `sink_b`",
        f"{REPORT_1} -> alerts:{'f' * 16}{NULLS}",
        edge(R1, K2, 2),
        sink_b=None,
    ),
    "at goes back": Plant(
        {("stream", "`at` goes back from a step to a later one"): ("step 9", "step 10")},
        plus=[vertex(K3, 9, at=2), label(K3, 10, at=2)],
    ),
    "vertex twice": Plant(
        {("R-V", "a vertex was delivered more than once"): (REPORT_1,)}, plus=[vertex(R1, 3)]
    ),
    "vertex twice at once": Plant(
        {("R-V", "a vertex was delivered more than once"): (REPORT_1,)}, plus=[vertex(R1, 1)]
    ),
    "no source vertex": Plant(
        {("R-V", "the source vertex of an edge was not delivered"): (f"{REPORT_1} -> {ALERT_1}",)},
        minus=[vertex(R1, 1), label(R1, 2)],
    ),
    "no sink vertex": Plant(
        {
            ("R-V", "the sink vertex of an edge was not delivered"): (
                f"{REPORT_1} -> {ALERT_1}",
                f"{REPORT_2} -> {ALERT_1}",
            )
        },
        minus=[vertex(K1, 1), label(K1, 1)],
    ),
    "vertex on the other side only": Plant(
        {("R-V", "the sink vertex of an edge was not delivered"): (f"{REPORT_2} -> {REPORT_2}",)},
        plus=[edge(R2, R2, 2)],
    ),
    "source without edge": Plant(
        {("R-V", "a source vertex has no edge"): (REPORT_3,)}, plus=[vertex(R3, 3)]
    ),
    "edge twice": Plant(
        {("R-E", "an edge was delivered more than once"): (f"{REPORT_2} -> {ALERT_2}",)},
        plus=[edge(R2, K2, 2)],
    ),
    "edge timed before its source": Plant(
        {
            ("R-E", "the `at` of an edge is before that of one of its vertices"): (
                f"{REPORT_1} -> {ALERT_1}",
            )
        },
        minus=[vertex(R1, 1)],
        plus=[vertex(R1, 1, at=2)],
    ),
    "edge timed before its sink": Plant(
        {
            ("R-E", "the `at` of an edge is before that of one of its vertices"): (
                f"{REPORT_2} -> {ALERT_2}",
            )
        },
        minus=[edge(R2, K2, 2)],
        plus=[edge(R2, K2, 2, at=1)],
    ),
    "edge a step before its source": Plant(
        {
            ("R-E", "an edge was delivered in an earlier step than one of its vertices"): (
                f"{REPORT_1} -> {ALERT_1}",
            )
        },
        minus=[vertex(R1, 1)],
        plus=[vertex(R1, 2, at=1)],
    ),
    "edge a step before its sink": Plant(
        {
            ("R-E", "an edge was delivered in an earlier step than one of its vertices"): (
                f"{REPORT_2} -> {ALERT_2}",
            )
        },
        minus=[edge(R2, K2, 2)],
        plus=[edge(R2, K2, 1, at=2)],
    ),
    "label twice": Plant(
        {("R-L", "a label was delivered more than once"): (REPORT_1,)}, plus=[label(R1, 3)]
    ),
    "label without vertex": Plant(
        {("R-L", "a label is for a vertex that was not delivered"): (REPORT_3,)},
        plus=[label(R3, 3)],
    ),
    "label timed before its vertex": Plant(
        {("R-L", "the `at` of a label is before that of its vertex"): (ALERT_3,)},
        plus=[vertex(K3, 3), label(K3, 3, at=2)],
    ),
    "label a step before its vertex": Plant(
        {("R-L", "a label was delivered in an earlier step than its vertex"): (ALERT_3,)},
        plus=[vertex(K3, 3, at=2), label(K3, 2)],
    ),
    "label timed before an edge": Plant(
        {("R-L", "the `at` of a label is before that of an edge of its vertex"): (ALERT_2,)},
        minus=[edge(R2, K2, 2)],
        plus=[edge(R2, K2, 2, at=3)],
    ),
    "edge after the labels of both ends": Plant(
        {("R-L", "a vertex got an edge after it was labelled as expired"): (ALERT_2, REPORT_1)},
        plus=[edge(R1, K2, 3, at=2)],
    ),
    "no label": Plant({("R-L", "a vertex has no label"): (REPORT_2,)}, minus=[label(R2, 3)]),
}


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_a_planted_violation_is_the_one_that_is_found(plant: Plant) -> None:
    elements = plant.stream()
    complete = ("R-L", "a vertex has no label") in plant.found

    report = verify(table(elements), complete=complete)

    assert kinds(report) == {kind: (len(at), at) for kind, at in plant.found.items()}
    assert check(elements, complete=complete) == {k: list(at) for k, at in plant.found.items()}
    assert not report.ok


def test_every_check_has_a_planted_violation() -> None:
    planted = {kind for plant in PLANTS.values() for kind in plant.found}

    assert planted == {(each.requirement, each.what) for each in CHECKS + CHECKS_WHEN_COMPLETE}


def test_a_label_may_be_missing_while_the_graph_grows() -> None:
    assert verify(table(PLANTS["no label"].stream())).ok


def test_what_comes_again_is_counted_once_and_the_least_are_shown() -> None:
    many = [vertex(("sink", "alerts", number), 3) for number in range(10, 15)] * 3

    [violation] = verify(table([*good(), *many])).violations

    assert violation == Violation(
        "R-V",
        "a vertex was delivered more than once",
        5,
        tuple(f"alerts:{number:016x}{ZEROS}" for number in (10, 11, 12)),
    )


def test_a_report_is_text_for_people_and_data_for_programs() -> None:
    many = [vertex(("sink", "alerts", number), 3) for number in range(1, 1201)]
    report = verify(
        table([*many, label(("sink", "al\x1berts", 1), 2), vertex(R1, 3)]), complete=True
    )

    assert str(report) == (
        "1,201 vertices, 0 edges, 1 label: 3 violations\n"
        f"R-V: a source vertex has no edge; 1 found: {REPORT_1}\n"
        "R-L: a label is for a vertex that was not delivered; 1 found: "
        f"al\\x1berts:{1:016x}{ZEROS}\n"
        "R-L: a vertex has no label; 1,201 found, such as "
        f"{ALERT_1}, alerts:{2:016x}{ZEROS}, {ALERT_3}"
    )
    data = report.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["ok"] is False
    assert data["violations"][0] == {
        "requirement": "R-V",
        "what": "a source vertex has no edge",
        "count": 1,
        "examples": [REPORT_1],
    }


@pytest.mark.parametrize("folder", ["elements", "da[ta]*?", "step=7/side=x"])
def test_files_give_the_report_that_a_table_gives(tmp_path: Path, folder: str) -> None:
    every = [each for plant in PLANTS.values() for each in plant.stream()]
    paths = write(table(every), tmp_path / folder)

    report = verify(paths, complete=True)

    assert len(paths) > 5
    assert len(report.violations) > 20
    assert report == verify(table(every), complete=True)


def test_a_graph_folded_in_parts_gives_the_same_report(monkeypatch: pytest.MonkeyPatch) -> None:
    every = table([each for plant in PLANTS.values() for each in plant.stream()])
    whole = verify(every, complete=True)

    monkeypatch.setattr("clew.live.verify._PART", every.num_rows // 5)

    assert verify(every, complete=True) == whole


def test_only_the_files_given_are_read(tmp_path: Path) -> None:
    first, second, _ = write(table(good()), tmp_path / "elements")

    assert str(verify([first])) == "3 vertices, 2 edges, 1 label: 0 violations"
    assert kinds(verify([second])).keys() == {
        ("R-V", "the source vertex of an edge was not delivered"),
        ("R-L", "a label is for a vertex that was not delivered"),
    }


def test_a_file_that_is_gone_or_damaged_is_named(tmp_path: Path) -> None:
    [first, *_] = write(table(good()), tmp_path / "elements")
    damaged = tmp_path / "damaged.parquet"
    damaged.write_text("not parquet at all")

    with pytest.raises(StoreError, match=r"cannot be read: .*gone\.parquet"):
        verify([first, tmp_path / "gone.parquet"])
    with pytest.raises(StoreError, match=r"cannot be read: .*damaged\.parquet"):
        verify([first, damaged])


def test_a_column_that_is_missing_is_named(tmp_path: Path) -> None:
    lacking = table(good()).drop_columns(["at", "sink_b"])
    [first, *_] = write(table(good()), tmp_path / "elements")
    pq.write_table(lacking, tmp_path / "lacking.parquet")

    with pytest.raises(StoreError, match="there is no column `at`, `sink_b`"):
        verify(lacking)
    with pytest.raises(StoreError, match="there is no column `at`, `sink_b`"):
        verify([tmp_path / "lacking.parquet"])
    with pytest.raises(StoreError, match=r"cannot be read: .*lacking\.parquet"):
        verify([first, tmp_path / "lacking.parquet"])


def test_what_rows_hold_is_not_needed() -> None:
    assert verify(table(good()).drop_columns(["time", "row"]), complete=True).ok


def large(sinks: int) -> list[Element]:
    """Each sink row is made of three source rows in a row, and a step holds a thousand of them."""
    elements = []
    for number in range(sinks):
        step = number // 1000
        sink = ("sink", "alerts", number)
        elements += [vertex(sink, step), label(sink, step)]
        for i in range(number, number + 3):
            elements.append(edge(("source", "reports", i), sink, step))
            if i == number + 2 or number == 0:
                elements.append(vertex(("source", "reports", i), step))
        elements.append(label(("source", "reports", number), step))
    return elements


def test_a_large_stream_is_checked_and_a_single_fault_in_it_found(tmp_path: Path) -> None:
    elements = table(large(15_000))
    folder = tmp_path / "elements"
    fault = table([edge(R3, ("sink", "alerts", 9000), 14)])

    assert elements.num_rows > 100_000
    assert verify(write(elements, folder)).ok
    assert kinds(verify(pa.concat_tables([elements, fault]))) == {
        ("R-L", "a vertex got an edge after it was labelled as expired"): (
            2,
            (f"alerts:{9000:016x}{ZEROS}", REPORT_3),
        ),
        ("R-L", "the `at` of a label is before that of an edge of its vertex"): (
            2,
            (f"alerts:{9000:016x}{ZEROS}", REPORT_3),
        ),
    }


def graph(random: Random) -> list[Element]:
    """Make a graph that keeps every promise; a row may be on both sides, steps may share a time."""
    clocks = [0]
    for _ in range(random.randint(0, 3)):
        clocks.append(clocks[-1] + random.randint(0, 2))
    last = len(clocks) - 1
    elements: list[Element] = []
    busy: dict[Key, list[int]] = {}
    for number in range(random.randint(0, 4)):
        sink = ("sink", random.choice(["alerts", "reports"]), number)
        step = random.randint(0, last)
        elements.append(vertex(sink, step, clocks[step]))
        busy[sink] = [step]
        for i in random.sample(range(-1, 3), random.randint(0, 3)):
            source = ("source", "reports", i)
            when = random.randint(step, last)
            elements.append(edge(source, sink, when, clocks[when]))
            busy[sink].append(when)
            busy.setdefault(source, []).append(when)
    for key, steps in busy.items():
        if key[0] == "source":
            step = random.randint(0, min(steps))
            elements.append(vertex(key, step, clocks[step]))
        if random.random() < 0.7:
            step = random.randint(max(steps), last)
            elements.append(label(key, step, clocks[step]))
    return random.sample(elements, len(elements))


def spoil(random: Random, elements: list[Element]) -> list[Element]:
    """Change one element, or take it out, or deliver it again."""
    if not elements:
        return []
    place = random.randrange(len(elements))
    return [*elements[:place], *spoilt(random, elements[place]), *elements[place + 1 :]]


def spoilt(random: Random, each: Element) -> list[Element]:
    how = random.choice(["drop", "repeat", "later", "step", "at", "at", "null", "odd", "id"])
    if how == "drop":
        return []
    if how == "repeat":
        return [each, each]
    if how == "later":
        return [each, {**each, "step": (each["step"] or 0) + 1}]
    if how == "null":
        return [{**each, random.choice(SCHEMA.names[:10]): None}]
    fields: dict[str, list[tuple[str, Any]]] = {
        "step": [("step", (each["step"] or 0) + by) for by in (-2, -1, 1, 2)],
        "at": [("at", (each["at"] or NOON) + dt.timedelta(minutes=by)) for by in (-2, -1, 1, 2)],
        "odd": [("element", "node"), ("element", "vertex"), ("side", "middle"), ("side", "sink")],
        "id": [("stream", "alerts"), ("a", 1), ("b", 1), ("sink", "reports"), ("sink_a", 1)],
    }
    return [{**each, **dict([random.choice(fields[how])])}]


@seed(SEED)
@settings(max_examples=GRAPHS, deadline=None, print_blob=True)
@given(random=st.randoms(use_true_random=True), faults=st.integers(0, 2), complete=st.booleans())
def test_random_graphs_with_faults_are_judged_as_the_model_judges_them(
    random: Random, faults: int, complete: bool
) -> None:
    print(f"CLEW_VERIFY_SEED={SEED}")
    elements = graph(random)
    assert check(elements) == {}
    for _ in range(faults):
        elements = spoil(random, elements)
    note(f"{elements}")

    expected = check(elements, complete=complete)

    assert kinds(verify(table(elements), complete=complete)) == {
        kind: (len(names), tuple(names[:3])) for kind, names in expected.items()
    }
