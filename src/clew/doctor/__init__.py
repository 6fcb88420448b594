"""Is everything there that clew needs, and is a store as it should be?

`check` looks at this machine and, given a path, at a store. It changes nothing, and starts Spark
only if asked to. Each finding says what to do about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.doctor.findings import Finding, Health, State

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

__all__ = ["Finding", "Health", "State", "check"]


def check(
    path: str | os.PathLike[str] | None = None,
    *,
    spark: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Health:
    """Check this machine and, given one, a store.

    Args:
        path: The store; only the machine is checked if left out.
        spark: Also run a small Spark job, which takes some seconds.
        progress: Called with what is looked at now.

    Examples:
        >>> health = check()
        >>> [each.name for each in health.findings][:2]
        ['python', 'duckdb']
    """
    from clew.doctor import machine

    tell = progress or (lambda _: None)
    tell("looking at this machine")
    findings = machine.look()
    if spark:
        tell("starting Spark")
        findings.append(machine.run_job())
    if path is not None:
        from clew.doctor import stores

        tell(f"looking at {path}")
        findings += stores.look(path)
    return Health(tuple(findings))
