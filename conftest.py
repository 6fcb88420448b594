"""One Spark session for all tests, with a scratch folder of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from session import make_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


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
