"""Whatever is asked, the server answers as its description says, and never falls over."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from clew.ask.provenance import open_store
from clew.explore.app import create_app
from store.road import build_road

if TYPE_CHECKING:
    from pathlib import Path

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its dependencies', not ours
    import schemathesis
    from schemathesis.python.asgi import HOST

SEED = 20260101
EXAMPLES = 10
KNOWN: dict[str, list[Any]] = {
    "stream": ["accidents", "stopped", "reports", "slow", "nothing"],
    "row": ["pos=5", "part-0.parquet:3", "0" * 32, "car=8", "n=2,car=7", "'"],
    "other": ["car=9", "0" * 32],
    "scope": [["stopped"], ["reports"], ["nowhere"]],
    "column": [["car"], ["n"], ["x"]],
    "direction": ["backward", "forward"],
    "format": ["csv", "svg", "parquet", "png", "prov-n", "exe"],
    "order_by": ["car", "time", ""],
}
"""Values that mean something, mixed in so that answers are reached and not only refusals."""
CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
]
PATHS = [
    *("store", "streams", "flow", "rows", "backward", "forward", "status", "drawing"),
    *("timeline", "compare", "influence", "export", "minimize"),
]


def _choices() -> Any:
    return st.fixed_dictionaries({}, optional={k: st.sampled_from(v) for k, v in KNOWN.items()})


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root: Path = build_road(tmp_path_factory.mktemp("schema") / "prov").root
    app = create_app(open_store(root), hosts=frozenset({HOST}))
    return schemathesis.openapi.from_asgi("/api/openapi.json", app)


@pytest.mark.parametrize("path", PATHS)
def test_answers_are_as_described(schema: Any, path: str) -> None:
    print(f"seed {SEED}")
    operations = [each.ok() for each in schema.include(path=f"/api/{path}").get_all_operations()]
    assert operations
    for operation in operations:

        @seed(SEED)
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(), choice=_choices())
        def check(case: Any, choice: dict[str, Any]) -> None:
            if case.query:
                case.query.update({k: v for k, v in choice.items() if k in case.query})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = case.call()
            assert answer.status_code < 500, answer.text
            case.validate_response(answer, checks=CHECKS)

        check()


def test_every_address_is_described(schema: Any) -> None:
    described = set(schema.raw_schema["paths"])

    assert described == {f"/api/{each}" for each in (*PATHS, "events")}
    for operations in schema.raw_schema["paths"].values():
        for operation in operations.values():
            assert operation["summary"]
            assert {"400", "401", "403", "404", "409", "422"} <= set(operation["responses"])
