"""One Spark session for all tests, with a scratch folder of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from session import make_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-spark", action="store_true", help="leave out tests that start Spark")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--no-spark"):
        # What starts Spark all the same must say so, not take half a minute.
        os.environ["JAVA_HOME"] = str(config.rootpath / "no-java")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--no-spark"):
        config.hook.pytest_deselected(items=[each for each in items if _starts_spark(each)])
        items[:] = [each for each in items if not _starts_spark(each)]


def _starts_spark(item: pytest.Item) -> bool:
    if isinstance(item, pytest.DoctestItem):
        return "spark" in _source(item)
    return (
        "spark" in getattr(item, "fixturenames", ()) or item.get_closest_marker("spark") is not None
    )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = make_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, Any], request: pytest.FixtureRequest) -> None:
    """Give docstring examples a session, but only those that use one."""
    if isinstance(request.node, pytest.DoctestItem) and "spark" in _source(request.node):
        doctest_namespace["spark"] = request.getfixturevalue("spark")


def _source(item: pytest.DoctestItem) -> str:
    return "".join(example.source for example in item.dtest.examples) if item.dtest else ""
