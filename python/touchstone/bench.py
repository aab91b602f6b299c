"""Runs ``touchstone bench`` and reads what it measured.

The command isn't a part of this package: `make install` installs it. ``command=`` or the environment variable
``TOUCHSTONE_COMMAND`` name another one than that on the PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING, Iterable, List, Optional

from . import results

if TYPE_CHECKING:
    import pandas


def _command(named: Optional[str]) -> str:
    found = named or os.environ.get("TOUCHSTONE_COMMAND") or shutil.which("touchstone")
    if not found:
        raise FileNotFoundError(
            "there is no command touchstone on the PATH: install it with `make install`, or name it with command="
        )
    return found


def run(
    engines: Iterable[str] = ("sqlite", "lmdb"),
    suites: Iterable[str] = ("travel",),
    dataset: Optional[str] = None,
    queries: Optional[str] = None,
    *,
    samples: Optional[int] = None,
    arguments: Iterable[str] = (),
    output: Optional[str] = None,
    command: Optional[str] = None,
) -> "pandas.DataFrame":
    """Measures engines, and returns a data frame as :func:`touchstone.results.load` does.

    Args:
        engines: their names.
        suites: names of suites; ``touchstone bench --list`` tells them.
        dataset: the path of a data set, instead of the suites' own.
        queries: the path of a file of queries.
        samples: the runs of each workload.
        arguments: more arguments of the command, such as ``["--docs", "1000"]``.
        output: where to keep the results file.
        command: the path of the command.

    Raises ``subprocess.CalledProcessError`` with the command's message if it fails.
    """
    with tempfile.TemporaryDirectory(prefix="touchstone-bench-") as directory:
        file = output or os.path.join(directory, "results.json")
        line: List[str] = [_command(command), "bench", *suites, "--engines", ",".join(engines), "--output", file]
        if dataset:
            line += ["--dataset", dataset]
        if queries:
            line += ["--queries", queries]
        if samples is not None:
            line += ["--samples", str(samples)]
        line += list(arguments)
        done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, line, done.stdout, done.stderr)
        return results.load(file)
