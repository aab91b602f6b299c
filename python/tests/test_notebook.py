"""The notebook in Examples: run from its first cell to its last, as its reader would."""

import os
import pathlib
import shutil

import pytest

command = os.environ.get("TOUCHSTONE_COMMAND") or shutil.which("touchstone")
notebook = os.environ.get("TOUCHSTONE_NOTEBOOK")


@pytest.mark.skipif(not (command and notebook), reason="make test-python NOTEBOOK=1 runs it, after make build")
def test_the_notebook_answers_which_engine(monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    for name, value in {"SECONDS": "1", "SAMPLES": "2", "ENGINES": "sqlite,lmdb,lmdb-encrypted"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TOUCHSTONE_COMMAND", command)
    cells = nbformat.read(pathlib.Path(notebook), as_version=4)
    # No time limit: a busy machine is slow.
    nbclient.NotebookClient(cells, timeout=None, kernel_name="python3").execute()
    outputs = [output.get("data", {}) for cell in cells.cells for output in cell.get("outputs", [])]
    pictures = [data for data in outputs if "image/png" in data]
    assert len(pictures) == 2
    answer = outputs[-1]["text/plain"]
    for workload in ("cheap", "by-country", "five-stars", "mix"):
        assert workload in answer
