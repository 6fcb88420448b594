"""The door: what is public, documented and typed; errors survive a journey between processes."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import clew
from clew import exceptions

SOURCE = Path(clew.__file__).parent


def test_the_public_names_are_pinned() -> None:
    assert clew.__all__ == [
        "ClewError",
        "Edge",
        "Limits",
        "Provenance",
        "Reduction",
        "RowId",
        "Trace",
        "TracedFrame",
        "__version__",
        "emit",
        "open",
        "reduce",
        "reduce_table",
        "repository",
        "trace",
    ]


@pytest.mark.parametrize("name", [n for n in clew.__all__ if not n.startswith("__")])
def test_every_public_name_is_documented_and_typed(name: str) -> None:
    thing = getattr(clew, name)

    assert inspect.getdoc(thing)
    members = [thing] if inspect.isfunction(thing) else _methods(thing)
    for member in members:
        assert member.__annotations__.get("return") is not None, member
        assert inspect.getdoc(member), member


def _methods(kind: type) -> list[object]:
    found = vars(kind).items()
    return [m for n, m in found if inspect.isfunction(m) and not n.startswith("_")]


def _errors() -> list[type[exceptions.ClewError]]:
    kinds = [k for _, k in inspect.getmembers(exceptions, inspect.isclass)]
    return [k for k in kinds if issubclass(k, exceptions.ClewError)]


@pytest.mark.parametrize("kind", _errors(), ids=lambda k: k.__name__)
def test_errors_can_be_sent_between_processes(kind: type[exceptions.ClewError]) -> None:
    parameters = inspect.signature(kind.__init__).parameters
    names = [n for n, p in parameters.items() if n != "self" and p.kind is p.POSITIONAL_OR_KEYWORD]
    values = (
        {"known": ("a",), "found": 2} if kind.__name__ == "UnknownStreamError" else {"known": 1}
    )
    error = kind(*[values.get(name, "x") for name in names]) if names else kind("what happened")

    back = pickle.loads(pickle.dumps(error))

    assert type(back) is kind
    assert str(back) == str(error)


def test_every_error_is_drawn_in_the_header() -> None:
    assert exceptions.__doc__ is not None
    drawn = set(re.findall(r"\w+Error", exceptions.__doc__))

    assert {kind.__name__ for kind in _errors()} <= drawn


def test_the_library_stays_on_the_dataframe_api() -> None:
    forbidden = {"_jdf", "_jvm", "_jc", "_jsparkSession", "rdd", "_sc"}
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        assert not used & forbidden, path
        if path.name != "demo.py":
            assert "sparkContext" not in used, path


def test_asking_needs_no_spark() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import clew, clew.cli\n"
        "try: clew.open('nowhere')\n"
        "except clew.ClewError as error: print(type(error).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "NotAStoreError\n"


LAYERS = [
    {"exceptions", "limits", "model", "steps", "version"},
    {"graph"},
    {"capture", "sources", "windows"},
    {"operators"},
    {"store"},
    {"emit", "repository"},
    {"unfold"},
    {"assertions"},
    {"live", "reduce"},
    {"run"},
    {"frame"},
    {"query"},
    {"export"},
    {"notebook"},
    {"doctor", "pipelines", "subscriptions", "testing", "workloads"},
    {"explore"},
    {"cli"},
    {"__main__", "__init__"},
]


def test_imports_point_one_way() -> None:
    rank = {name: i for i, layer in enumerate(LAYERS) for name in layer}
    for path in SOURCE.rglob("*.py"):
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.parse(path.read_text()).body:
            names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for name in names:
                if name.startswith("clew."):
                    other = name.split(".")[1]
                    assert rank[other] <= rank[own], f"{path}: {own} imports {other}"
