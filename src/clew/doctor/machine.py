"""Python and its packages, Java, Spark, and the Python that Spark's workers run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from clew.doctor.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.doctor.findings import State

OLDEST_JAVA = 17
OLDEST_PYTHON = (3, 10)
TESTED_SPARK = "4.3"
_TIMEOUT = 30
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[[\w,-]+\])?\s*(?P<bounds>[^;]*)(;(?P<marker>.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w-]+)['"]""")
_BOUND = re.compile(r"(>=|<=|==|!=|<|>)\s*([0-9][\w.]*)")
_SPARK_EXTRA = "spark"
_NOT_FOR_USERS = frozenset({"dev", "bench", "browser"})


def look() -> list[Finding]:
    """Check this machine; nothing is started but `java -version` and a Python."""
    has_spark = _version("pyspark") is not None
    findings = [_python(), *_packages()]
    findings += [_spark(), _java(needed=has_spark)]
    if has_spark:
        findings.append(_worker_python())
    return [*findings, *_extras()]


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        todo = f"Use Python {'.'.join(map(str, OLDEST_PYTHON))} or later."
        return Finding("python", "problem", found, todo)
    return Finding("python", "ok", f"{found} ({sys.executable})")


def _packages() -> Iterator[Finding]:
    """Check what clew cannot do without."""
    for name, bounds, extra in _requirements():
        if extra is None:
            yield _package(name, bounds)


def _package(name: str, bounds: str, extra: str | None = None) -> Finding:
    found = _version(name)
    install = f"pip install '{name}{bounds}'"
    if found is None:
        return Finding(name, "problem", "not installed", f"{install}")
    if not fits(found, bounds):
        why = f"{found}, but clew{f'[{extra}]' if extra else ''} needs {bounds}"
        return Finding(name, "problem", why, install)
    return Finding(name, "ok", found)


def _spark() -> Finding:
    found = _version("pyspark") or _version("pyspark-client")
    if found is None:
        todo = "Asking needs none. To trace or replay: pip install 'clew[spark]'"
        return Finding("pyspark", "warning", "not installed", todo)
    bounds = next((b for n, b, e in _requirements() if (n, e) == ("pyspark", _SPARK_EXTRA)), "")
    if not fits(found, bounds):
        todo = f"pip install 'pyspark{bounds}'"
        return Finding("pyspark", "problem", f"{found}, but clew needs {bounds}", todo)
    if _numbers(found)[:2] > _numbers(TESTED_SPARK)[:2]:
        todo = "If a query fails here and not there, say so with both versions."
        return Finding("pyspark", "warning", f"{found} is newer than {TESTED_SPARK}", todo)
    return Finding("pyspark", "ok", found)


def _java(*, needed: bool) -> Finding:
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    state: State = "problem" if needed else "warning"
    get = f"Install Java {OLDEST_JAVA} or later, and set JAVA_HOME to its folder."
    if program is None:
        return Finding("java", state, "not found: JAVA_HOME is not set, no java in PATH", get)
    try:
        done = subprocess.run(  # noqa: S603 (what Spark itself would start)
            [program, "-version"], capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        where = f"JAVA_HOME is {home}" if home else program
        return Finding("java", state, f"{where}, which does not run: {type(error).__name__}", get)
    said = re.search(r'version "(?:1\.)?(\d+)([^"]*)"', done.stderr + done.stdout)
    if said is None:
        return Finding("java", state, f"{program} does not say its version", get)
    found = f"{said[1]}{said[2]} ({program})"
    if int(said[1]) < OLDEST_JAVA:
        return Finding("java", state, f"{found}, but Spark 4 needs {OLDEST_JAVA}", get)
    return Finding("java", "ok", found)


def _worker_python() -> Finding:
    """Check the Python that Spark's workers run: its version must be that of this one."""
    program = os.environ.get("PYSPARK_PYTHON") or "python3"
    ours = ".".join(map(str, sys.version_info[:2]))
    todo = f"export PYSPARK_PYTHON={sys.executable}"
    code = "import sys; print('.'.join(map(str, sys.version_info[:2]))); import pandas, pyarrow"
    try:
        done = subprocess.run(  # noqa: S603 (what Spark itself would start)
            [program, "-c", code], capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = f"{program} does not run: {type(error).__name__}"
        return Finding("worker python", "problem", why, todo)
    found = done.stdout.strip()
    if found != ours:
        why = f"{program} is {found or 'none'}, and this is {ours}; Spark refuses such a pair"
        return Finding("worker python", "problem", why, todo)
    if done.returncode:
        why = f"{found} ({program}), without pandas or pyarrow: functions in Python will fail"
        return Finding("worker python", "warning", why, todo)
    return Finding("worker python", "ok", f"{found} ({program})")


def _extras() -> Iterator[Finding]:
    """Say which extras are complete, and check the versions of what is there."""
    extras: dict[str, list[tuple[str, str]]] = {}
    for name, bounds, extra in _requirements():
        if extra is not None and extra not in _NOT_FOR_USERS and name not in ("clew", "pyspark"):
            extras.setdefault(extra, []).append((name, bounds))
    for extra, wanted in sorted(extras.items()):
        missing = [name for name, _ in wanted if _version(name) is None]
        wrong = [
            f"{name} {found}, needs {bounds}"
            for name, bounds in wanted
            if (found := _version(name)) is not None and not fits(found, bounds)
        ]
        install = f"pip install 'clew[{extra}]'"
        if wrong:
            yield Finding(f"extra {extra}", "warning", "; ".join(wrong), install)
        elif missing:
            text = f"optional, not installed: {', '.join(missing)}"
            yield Finding(f"extra {extra}", "ok", text, install)
        else:
            there = ", ".join(f"{name} {_version(name)}" for name, _ in wanted)
            yield Finding(f"extra {extra}", "ok", there or "installed")


def run_job() -> Finding:
    """Start Spark, or take the session that runs, and let a worker's Python handle some rows."""
    began = time.monotonic()
    try:
        from clew.again.session import make_session

        spark = make_session()
        rows = spark.range(0, 1000, 1, 2).mapInArrow(lambda batches: batches, "id bigint")
        total = rows.agg({"id": "sum"}).collect()[0][0]
    except Exception as error:  # noqa: BLE001 (whatever goes wrong is the finding)
        first = str(error).strip().splitlines()
        why = f"{type(error).__name__}: {first[0][:200] if first else ''}"
        todo = "Mend what is a problem above; then try `clew demo`."
        return Finding("spark job", "problem", why, todo)
    seconds = time.monotonic() - began
    if total != 499_500:
        return Finding("spark job", "problem", f"the sum is {total}, and should be 499500", "")
    return Finding("spark job", "ok", f"1,000 rows through Python in {seconds:.1f} s")


def fits(version: str, bounds: str) -> bool:
    """Tell whether a version is within bounds, by its numbers alone.

    Examples:
        >>> fits("2.3.3", ">=2.2,<3"), fits("3.0.1", ">=2.2,<3")
        (True, False)
    """
    found = _numbers(version)
    for sign, text in _BOUND.findall(bounds):
        wanted = _numbers(text)
        width = max(len(found), len(wanted))
        left, right = ((*n, *[0] * (width - len(n))) for n in (found, wanted))
        holds = {
            ">=": left >= right,
            "<=": left <= right,
            "==": left == right,
            "!=": left != right,
            "<": left < right,
            ">": left > right,
        }
        if not holds[sign]:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version.split("+", maxsplit=1)[0])[:3])


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _requirements() -> Iterator[tuple[str, str, str | None]]:
    """List what clew needs: the package, its bounds, and the extra that wants it."""
    try:
        lines = metadata.requires("clew") or []
    except metadata.PackageNotFoundError:
        lines = ["duckdb>=1.4", "numpy>=2", "pyarrow>=18", "rich>=13"]
    for line in lines:
        match = _REQUIREMENT.fullmatch(line.strip())
        if match is not None:
            extra = _EXTRA.search(match["marker"] or "")
            bounds = (match["bounds"] or "").strip().strip("()")
            yield match["name"].lower(), bounds, extra[1] if extra else None
