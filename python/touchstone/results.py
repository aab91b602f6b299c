"""Results files of ``touchstone bench`` as data frames (docs/results.md)."""

from __future__ import annotations

import glob as _glob
import json
import os
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Union

if TYPE_CHECKING:
    import pandas

#: The schema of the files that are read.
SCHEMA = 1

Files = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]


def _paths(files: Files) -> List[str]:
    given = [files] if isinstance(files, (str, os.PathLike)) else files
    found: List[str] = []
    for pattern in [os.fspath(file) for file in given]:
        matches = sorted(_glob.glob(pattern))
        if not matches:
            raise FileNotFoundError("no file matches %s" % pattern)
        found += matches
    return found


def rows(document: Dict[str, Any], file: str = "") -> List[Dict[str, Any]]:
    """The results of one file, each with its run: a dict for each workload, engine and parameters."""
    if document.get("schema") != SCHEMA:
        raise ValueError("%s has the schema %r; this release reads %d" % (file, document.get("schema"), SCHEMA))
    engines = document.get("engines", {})
    found = []
    for result in document["results"]:
        row: Dict[str, Any] = {
            "suite": result["suite"],
            "workload": result["workload"],
            "engine": result["engine"],
            "library": engines.get(result["engine"], {}).get("library"),
            "operations": result["operations"],
            "file": file,
            "started": document.get("started"),
            "touchstone": document.get("touchstone"),
        }
        for name, value in result.get("parameters", {}).items():
            row["parameter." + name] = value
        for name, metric in result["metrics"].items():
            row[name] = metric.get("median")
            if name == "seconds":
                row["samples"] = metric.get("samples")
                row["seconds_low"], row["seconds_high"] = metric.get("ci95", [None, None])
        limit = result.get("limit")
        if limit:
            row["limit"] = limit.get("name")
            row["normalized"] = limit.get("normalized")
        found.append(row)
    return found


def load(files: Files) -> "pandas.DataFrame":
    """Reads results files, named by paths or patterns, into one data frame.

    A row is a workload on an engine. Columns: ``suite``, ``workload``, ``engine``, ``library``, ``operations``, a column for each
    metric with its median (``seconds``, ``ops_per_second``, ``file_bytes``, …), ``seconds_low`` and ``seconds_high`` (the 95 %
    interval of the median), ``samples`` (seconds), ``normalized`` (the ratio to the same work in C), ``parameter.NAME``, ``file``.
    """
    import pandas

    found: List[Dict[str, Any]] = []
    for path in _paths(files):
        with open(path, encoding="utf-8") as file:
            found += rows(json.load(file), path)
    return pandas.DataFrame(found)
