"""Two results side by side, on the road store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from clew.cli import main
from clew.exceptions import QueryError, RowNotFoundError
from store.build import StoreBuilder, row

if TYPE_CHECKING:
    from pathlib import Path

    from clew.ask.provenance import Provenance


def places(rows: list[dict[str, object]]) -> list[str]:
    return [f"{str(each['segment'])[-9]}:{each['position']}" for each in rows]


def test_rows_are_told_apart_by_which_result_they_made(road: Provenance) -> None:
    # Two results of car 7: one from two reports, a later one from the second of them.
    found = road.compare("stopped", {"car": 7, "n": 2}, {"car": 7, "n": 1}).to_dict()

    assert (found["left"]["row"], found["right"]["row"]) == ({"car": 7, "n": 2}, {"car": 7, "n": 1})
    assert places(found["common"]) == ["0:3"]
    assert places(found["only_left"]) == ["0:0"]
    assert found["only_right"] == []
    assert found["counts"] == {"common": 1, "only_left": 1, "only_right": 0}
    assert (found["stream"], found["exactness"], found["complete"]) == ("stopped", "exact", True)
    assert found["common"][0]["row"] == {"car": 7, "speed": 0, "pos": 5}


def test_results_with_nothing_in_common(road: Provenance) -> None:
    found = road.compare("stopped", {"car": 8}, {"car": 9})

    assert len(found.common) == 0
    assert places([each.to_dict() for each in found.only_left]) == ["0:1", "1:0"]
    assert places([each.to_dict() for each in found.only_right]) == ["1:4"]
    assert found.to_dict(limit=1)["counts"] == {"common": 0, "only_left": 2, "only_right": 1}
    assert len(found.to_dict(limit=1)["only_left"]) == 1


def test_a_result_has_everything_in_common_with_itself(road: Provenance) -> None:
    found = road.compare("accidents", {"pos": 5}, {"pos": 5})

    assert (len(found.common), len(found.only_left), len(found.only_right)) == (4, 0, 0)


def test_a_comparison_reads_well(road: Provenance) -> None:
    text = repr(road.compare("stopped", {"car": 8}, {"car": 9}))

    head, *_ = text.splitlines()
    assert head == (
        f"Rows {80:016x}{1:016x} and {90:016x}{1:016x} of `stopped`: 0 source rows in common, "
        "2 source rows only behind the first, 1 source row only behind the second."
    )
    assert "in common:" not in text
    assert text.endswith("exactness: exact")


def test_the_command_line_gives_the_same(
    road: Provenance, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", road.path, "stopped", "car=8", "car=9", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)

    assert said == road.compare("stopped", {"car": 8}, {"car": 9}).to_dict()


def test_streams_that_only_one_result_has_rows_of(tmp_path: Path) -> None:
    from clew.ask.provenance import open_store

    store = StoreBuilder(tmp_path / "prov")
    store.sink("s", ["r", "t"])
    edges = [("s", 1, 1, "r", 0, 1), ("s", 1, 1, "t", 0, 1), ("s", 2, 2, "t", 0, 1)]
    rows = [row(1, 1, n=1), row(2, 2, n=2), row(3, 3, n=3)]
    store.batch("s", 0, edges=edges, rows={"s": rows})
    store.batch("s", 1, gap="lost")
    with open_store(tmp_path / "prov") as prov:
        found = prov.compare("s", {"n": 1}, {"n": 2})
        lacking = prov.compare("s", {"n": 1}, {"n": 3})

    assert [each.stream for each in found.common] == ["t"]
    assert [each.stream for each in found.only_left] == ["r"]
    assert (found.complete, lacking.complete) == (True, False)
    assert "incomplete" in repr(lacking)


def test_what_cannot_be_compared(road: Provenance) -> None:
    with pytest.raises(RowNotFoundError):
        road.compare("stopped", {"car": 8}, {"car": 1})
    with pytest.raises(QueryError, match="one row is needed"):
        road.compare("stopped", [{"car": 8}, {"car": 9}], {"car": 8})
