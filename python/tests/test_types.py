"""What type checkers find in the package, and in programs that use it."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("mypy")
HERE = os.path.dirname(os.path.abspath(__file__))


def run(*arguments):
    # The package as it is installed, and not the folder that it is made from.
    done = subprocess.run(
        [sys.executable, "-m", *arguments, "--mypy-config-file" if "stubtest" in arguments[0] else "--config-file"]
        + [os.path.join(HERE, "mypy.ini")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_mypy_is_content_with_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("mypy", "-p", "touchstone")


def test_mypy_is_content_with_programs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("mypy", os.path.join(HERE, "typed_examples.py"))


def test_the_types_are_those_of_the_objects(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # The fields of ctypes' structures are made when the module runs, and pyarrow is known to type checkers only.
    allowed = tmp_path / "allowed"
    allowed.write_text("touchstone\\._library\\.\\w+Value\\.\\w+\ntouchstone\\._results\\.pyarrow\n")
    run("mypy.stubtest", "touchstone", "--allowlist", str(allowed))
