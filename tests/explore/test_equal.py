"""Python, the command line and HTTP give the same answers."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import clew
from clew.cli import main
from clew.show.export import FORMS, encode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import httpx

    from clew.ask.provenance import Provenance

ACCIDENT = {"stream": "accidents", "row": "pos=5"}
REPORT = {"stream": "reports", "row": "part-0.parquet:3"}
CARS = {"stream": "stopped", "row": "00000000000000460000000000000001"}


def _timeless(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "seconds"}


QUESTIONS: dict[str, tuple[str, dict[str, Any], list[str], Callable[[Provenance], Any]]] = {
    "store": ("store", {}, ["about", "{}"], lambda p: p.about().to_dict()),
    "streams": (
        "streams",
        {},
        ["streams", "{}"],
        lambda p: {"streams": [each.to_dict() for each in p.streams()]},
    ),
    "flow": ("flow", {}, ["flow", "{}"], lambda p: p.flow().to_dict()),
    "rows": (
        "rows",
        {"stream": "reports", "limit": 2, "offset": 1},
        ["rows", "{}", "reports", "--limit", "2", "--offset", "1"],
        lambda p: p.rows("reports", limit=2, offset=1).to_dict(),
    ),
    "rows chosen": (
        "rows",
        {
            "stream": "reports",
            "column": ["car", "speed"],
            "op": [">=", "="],
            "value": ["8", "0"],
            "from": "2026-01-01T08:00:05Z",
            "to": "2026-01-01T08:00:15Z",
            "order_by": "car",
            "descending": True,
        },
        [
            *("rows", "{}", "reports", "--filter", "car >= 8", "--filter", "speed = 0"),
            *("--since", "2026-01-01T08:00:05Z", "--until", "2026-01-01T08:00:15Z"),
            *("--sort", "car", "--descending"),
        ],
        lambda p: p.rows(
            "reports",
            filters=[("car", ">=", 8), ("speed", "=", 0)],
            since="2026-01-01T08:00:05Z",
            until="2026-01-01T08:00:15Z",
            sort="car",
            descending=True,
        ).to_dict(),
    ),
    "backward": (
        "backward",
        ACCIDENT,
        ["backward", "{}", "accidents", "pos=5"],
        lambda p: p.backward("accidents", "pos=5").to_dict(),
    ),
    "backward to a scope": (
        "backward",
        {**ACCIDENT, "scope": ["stopped"]},
        ["backward", "{}", "accidents", "pos=5", "--scope", "stopped"],
        lambda p: p.backward("accidents", "pos=5", "stopped").to_dict(),
    ),
    "backward with all on the way": (
        "backward",
        {**ACCIDENT, "intermediate": True, "limit": 3},
        ["backward", "{}", "accidents", "pos=5", "--intermediate", "--limit", "3"],
        lambda p: p.backward("accidents", "pos=5", intermediate=True).to_dict(3),
    ),
    "forward": (
        "forward",
        REPORT,
        ["forward", "{}", "reports", "part-0.parquet:3"],
        lambda p: p.forward("reports", "part-0.parquet:3").to_dict(),
    ),
    "compare": (
        "compare",
        {**CARS, "other": "car=8"},
        ["compare", "{}", "stopped", CARS["row"], "car=8"],
        lambda p: p.compare("stopped", CARS["row"], "car=8").to_dict(),
    ),
    "status": (
        "status",
        REPORT,
        ["status", "{}", "reports", "part-0.parquet:3"],
        lambda p: p.expiry("reports", "part-0.parquet:3").to_dict(),
    ),
    "drawing": (
        "drawing",
        {**ACCIDENT, "direction": "backward", "depth": 1},
        [],
        lambda p: p.backward("accidents", "pos=5").drawing(depth=1).to_dict(),
    ),
    "timeline": (
        "timeline",
        ACCIDENT,
        [],
        lambda p: p.backward("accidents", "pos=5").timeline().to_dict(),
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_three_ways_to_ask_agree(
    name: str,
    client: httpx.Client,
    road: Provenance,
    road_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    address, params, words, ask = QUESTIONS[name]

    over_http = client.get(f"/api/{address}", params=params)
    in_python = ask(road)

    assert over_http.status_code == 200
    assert _timeless(over_http.json()) == _timeless(in_python)
    assert over_http.headers["server-timing"].startswith("total;dur=")
    if words:
        assert main([each.format(road_path) for each in words] + ["--json"]) == 0
        assert _timeless(json.loads(capsys.readouterr().out)) == _timeless(in_python)


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_is_downloaded_as_python_writes_it(
    form: str, client: httpx.Client, road: Provenance
) -> None:
    params = {**ACCIDENT, "direction": "backward", "format": form}

    answer = client.get("/api/export", params=params)

    assert answer.status_code == 200
    expected = b"".join(encode(road.backward("accidents", "pos=5"), form))
    if form not in {"parquet", "png"}:  # these carry what made them, and when
        assert answer.content == expected
    assert abs(len(answer.content) - len(expected)) < 64
    assert answer.headers["content-disposition"].startswith('attachment; filename="accidents-')


def test_an_unknown_form_is_refused(client: httpx.Client) -> None:
    params = {**ACCIDENT, "direction": "backward", "format": "../../etc/passwd"}

    answer = client.get("/api/export", params=params)

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "bad_question"
    assert "prov-json" in answer.json()["error"]["hint"]


def test_the_library_and_the_command_line_start_without_the_server() -> None:
    code = (
        "import sys; sys.modules['fastapi'] = None; sys.modules['uvicorn'] = None\n"
        "import clew, clew.cli\n"
        "print(clew.cli.main(['explore', sys.argv[1]]))"
    )
    store = clew.__file__.rpartition("/")[0]
    done = subprocess.run(
        [sys.executable, "-c", code, store], capture_output=True, text=True, check=True
    )

    assert done.stdout == "1\n"
    assert "is not a clew store" in done.stderr


def test_a_missing_server_says_what_to_install(road_path: Path) -> None:
    code = (
        "import sys; sys.modules['fastapi'] = None\n"
        "import clew.cli\n"
        "print(clew.cli.main(['explore', sys.argv[1]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(road_path)], capture_output=True, text=True, check=True
    )

    assert done.stdout == "1\n"
    assert "pip install 'clew[explore]'" in done.stderr
