"""The door: what is public, documented and typed; errors survive a journey between processes."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import clew
from clew import exceptions
from clew.capture.kinds import KINDS, asked_for, kind_of
from clew.model import EDGES_COME, EdgesCome

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(clew.__file__).parent


def test_the_public_names_are_pinned() -> None:
    assert clew.__all__ == [
        "ClewError",
        "Edge",
        "Limits",
        "Provenance",
        "RowId",
        "Trace",
        "TracedFrame",
        "__version__",
        "open",
        "prov",
        "trace",
    ]


@pytest.mark.parametrize("name", [n for n in clew.__all__ if not n.startswith("__")])
def test_every_public_name_is_documented_and_typed(name: str) -> None:
    thing = getattr(clew, name)

    assert inspect.getdoc(thing)
    for member in _functions(thing):
        assert member.__annotations__.get("return") is not None, member
        assert inspect.getdoc(member), member


def _functions(thing: Any) -> list[object]:
    if inspect.ismodule(thing):
        return [each for name in thing.__all__ for each in _functions(getattr(thing, name))]
    if inspect.isfunction(thing):
        return [thing]
    found = vars(thing).items()
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


ROOMS = [
    {"exceptions", "limits", "model", "steps", "version"},
    {"plan"},
    {"store"},
    {"capture"},
    {"sources"},
    {"operators"},
    {"expiry"},
    {"again"},
    {"run"},
    {"frame"},
    {"live"},
    {"show"},
    {"upkeep"},
    {"ask"},
    {"prov"},
    {"doctor", "pipelines", "subscriptions", "testing", "workloads"},
    {"explore"},
    {"cli"},
    {"__main__", "__init__"},
]
"""The rooms of the package, in the order a row travels; a module imports from its own or before."""


def _room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def _imports(path: Path) -> Iterator[str]:
    """List the modules that a module imports, also inside functions, but not for types alone."""
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "clew":
            yield from (f"clew.{each.name}" for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@cache
def _of_clew() -> list[tuple[Path, str]]:
    found = [(path, name) for path in SOURCE.rglob("*.py") for name in _imports(path)]
    return [(path, name) for path, name in found if name.startswith("clew.")]


def test_imports_point_one_way() -> None:
    rank = {name: i for i, rooms in enumerate(ROOMS) for name in rooms}

    backwards = [
        (str(path.relative_to(SOURCE)), name)
        for path, name in _of_clew()
        if rank[name.split(".")[1]] > rank[_room(path)]
    ]

    assert backwards == []
    assert {_room(path) for path in SOURCE.rglob("*.py")} == rank.keys()


def test_an_operator_imports_no_capture() -> None:
    found = [name for path, name in _of_clew() if _room(path) == "operators"]

    assert "clew.plan.algebra" in found
    assert not [name for name in found if name.startswith("clew.capture")]


def _compared(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what is compared with something, also as one of several in a list, or in a `case`."""
    for node in ast.walk(tree):
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        sides += [node.value] if isinstance(node, ast.MatchValue) else []
        for side in sides:
            built = isinstance(side, ast.Call) and ast.unparse(side.func) in ("frozenset", "set")
            for each in side.args if built and isinstance(side, ast.Call) else [side]:
                yield each
                yield from each.elts if isinstance(each, (ast.Tuple, ast.List, ast.Set)) else ()


def _names_of_captures(tree: ast.AST) -> list[str]:
    """List the captures that are compared: their names, and the objects themselves."""
    names = KINDS.keys() | {"auto"}
    objects = {
        each.asname or each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "clew.capture.kinds"
        for each in node.names
        if each.name.lower() in names
    }
    return [
        ast.unparse(each)
        for each in _compared(tree)
        if (isinstance(each, ast.Constant) and each.value in names)
        or (isinstance(each, ast.Name) and each.id in objects)
    ]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('capture == "sets"', ["'sets'"]),
        ('"keys" != batch.get("capture")', ["'keys'"]),
        ('capture in ("intervals", "keys")', ["'intervals'", "'keys'"]),
        ('capture not in frozenset({"pointers"})', ["'pointers'"]),
        ('match capture:\n    case "off":\n        pass', ["'off'"]),
        ("from clew.capture.kinds import SETS\nkind is SETS", ["SETS"]),
        ('said["keys"] == said.get("keys")', []),
        ('choose(node, "keys")', []),
    ],
)
def test_comparisons_of_captures_are_found(code: str, found: list[str]) -> None:
    assert _names_of_captures(ast.parse(code)) == found


def test_no_capture_is_compared_outside_its_room() -> None:
    found = {
        str(path.relative_to(SOURCE)): names
        for path in SOURCE.rglob("*.py")
        if _room(path) != "capture" and (names := _names_of_captures(ast.parse(path.read_text())))
    }

    assert found == {}


def test_a_store_may_name_every_capture_that_leaves_edges() -> None:
    assert {name for name, kind in KINDS.items() if kind.edges_come is not None} == set(EDGES_COME)
    assert [name for name, kind in KINDS.items() if kind.edges_come is None] == ["off"]


def test_the_guide_says_of_each_capture_when_edges_come() -> None:
    guide = (SOURCE.parents[1] / "docs/how-to/choose-a-capture.md").read_text()
    told = dict(re.findall(r"^\| `(\w+)` \|[^|]+\| ([^|]+?) \|", guide, re.MULTILINE))
    words = {
        EdgesCome.WITH_THE_BATCH: "with the batch",
        EdgesCome.BEHIND_IT: "seconds behind the query",
        EdgesCome.WHEN_ASKED: "when somebody asks",
        None: "when somebody asks, from the checkpoint",
    }

    assert told.keys() == {name for name, kind in KINDS.items() if not kind.of_jobs}
    # The time that a row of `keys` holds is how they are found, not when.
    assert {
        name: text.replace(", by the time that the result itself holds", "")
        for name, text in told.items()
    } == {name: words[KINDS[name].edges_come] for name in told}


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if not kind.of_jobs])
def test_a_capture_makes_its_own_moves(name: str) -> None:
    assert kind_of(name).moves().name == name


def test_an_unknown_capture_is_refused_with_those_that_are_known() -> None:
    wrong: Any = "reduced"
    with pytest.raises(exceptions.WriterError, match="one of .*\"keys\"; got 'reduced'"):
        asked_for(wrong)
    with pytest.raises(exceptions.StoreError, match="no capture `dust`; clew knows `off`, `sets`"):
        kind_of("dust")


def test_a_capture_can_be_sent_between_processes() -> None:
    assert {name: pickle.loads(pickle.dumps(kind)) for name, kind in KINDS.items()} == KINDS


def test_a_module_has_a_name_of_its_own() -> None:
    modules = [path for path in SOURCE.rglob("*.py") if not path.stem.startswith("__")]

    assert [
        name for name, times in Counter(each.stem for each in modules).items() if times > 1
    ] == []


def test_every_room_stands_in_the_guide_in_order() -> None:
    guide = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text()
    listed = re.findall(r"^\| `(\w+)` +\|", guide, re.MULTILINE)

    folders = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    in_order = [name for rooms in ROOMS for name in sorted(rooms) if name in folders]
    assert listed == in_order
