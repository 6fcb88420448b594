"""Reduce provenance of other systems to what connects inputs with outputs.

The package can be called: `clew.reduce(source, job=..., store=...)` starts a reduction, as
`clew.reduce.stream` describes it. A function of the same name would hide the package, or be hidden
by it, depending on what is imported first.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.reduce.stream import Reduction


class _Callable(ModuleType):
    def __call__(self, *args: Any, **settings: Any) -> Reduction:
        from clew.reduce.stream import reduce

        return reduce(*args, **settings)


sys.modules[__name__].__class__ = _Callable
