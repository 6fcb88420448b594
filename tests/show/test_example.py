"""The example notebook runs from top to bottom, and shows what its text says."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import clew

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "explore.ipynb"


@pytest.mark.spark
def test_the_example_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(clew.__file__).parents[1]))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    # A Java that compiles less starts faster.
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the kernel's own machinery
        asyncio.run(
            NotebookClient(
                notebook,
                timeout=300,
                kernel_name="python3",
                resources={"metadata": {"path": str(tmp_path)}},
            ).async_execute()
        )

    shown = [
        output["data"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output["output_type"] == "execute_result"
    ]
    store, rows, why, line, forward, again = (each["text/html"] for each in shown)
    assert "readings" in store
    assert "<td" in rows
    assert "was made from 4 rows of `readings`" in why
    assert why.count("<rect") == 4 + 2 + 1  # readings, steps, the result
    assert line.count("<rect") == 1 + 4 + 1  # the window, the readings, the result
    assert "took part in 1 row of `high`" in forward
    assert "high: 1 result as before, none differs" in again


def test_the_example_notebook_is_kept_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]

    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) == 9
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
