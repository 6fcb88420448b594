"""What is fuzzed: each module here with a function `run(seconds, seed)` that counts its inputs."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_NAMES = ("packed", "prov", "conditions", "stores")


def names() -> list[str]:
    """Return the targets that are there."""
    return [name for name in _NAMES if (Path(__file__).parent / f"{name}.py").is_file()]


def target(name: str) -> Callable[[float, int], int]:
    """Return what fuzzes a target."""
    found: Callable[[float, int], int] = import_module(f"fuzz.{name}").run
    return found
