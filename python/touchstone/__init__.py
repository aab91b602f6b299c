"""Touchstone: a database of JSON documents with revisions, queries and sync, on the storage engine of your choice.

>>> import touchstone
>>> with touchstone.open(in_memory=True) as db:
...     db["hotel_1"] = {"type": "hotel", "name": "Apple Droid", "country": "France"}
...     for row in db.query("SELECT name FROM _ WHERE country = $country", country="France"):
...         print(row["name"])
Apple Droid
"""

from __future__ import annotations

import atexit as _atexit
from typing import Any, Callable, Dict, List, Optional

from ._blobs import Blob, BlobFile
from ._database import Database, Path, close_all as _close_all
from ._documents import Change, Document, Revision, RevisionTree, Saved, decode as _decode, encode as _encode
from ._errors import (
    BadRequestError,
    BusyError,
    CancelledError,
    ConflictError,
    CorruptError,
    DiskFullError,
    DuplicateError,
    Error,
    ForbiddenError,
    IOFailure,
    MisuseError,
    NotFoundError,
    TimeLimitError,
    TooLargeError,
    UnauthorizedError,
    UnsupportedError,
)
from ._library import ProgressCallback as _ProgressCallback, call as _call, encoded as _encoded, lib as _lib
from ._library import text as _text
from ._observing import Observer, Stream
from ._results import Result
from ._sync import Listener, Replicator

__version__: str = _lib.touchstone_version().decode()

_atexit.register(_close_all)

Progress = Callable[[str, int, int], Any]


def open(
    path: Optional[Path] = None,
    *,
    engine: Optional[str] = None,
    require_engine: bool = False,
    create: str = "ifMissing",
    make_parents: bool = False,
    read_only: bool = False,
    in_memory: bool = False,
    durability: str = "normal",
    passphrase: Optional[str] = None,
    key: Optional[bytes] = None,
    key_file: Optional[str] = None,
    cache_bytes: Optional[int] = None,
    tree_depth: Optional[int] = None,
    verify_checksums: bool = False,
    check_file: bool = False,
    watch_others: bool = False,
    scripts: Optional[str] = None,
) -> Database:
    """Opens the database in the directory ``path`` (``.touchstone`` may be left out), or makes one.

    Args:
        engine: of a new database: ``"sqlite"`` (default), ``"lmdb"``, ``"sqlcipher"``, ``"lmdb-encrypted"``, … (:func:`engines`).
        require_engine: converts an existing database to ``engine`` first.
        create: ``"ifMissing"``, ``"never"`` or ``"always"``: must be new.
        make_parents: makes missing parent directories.
        read_only: writes nothing.
        in_memory: keeps everything in memory until the close.
        durability: ``"normal"`` (commits survive the process), ``"full"`` (a power loss too), ``"none"``.
        passphrase, key, key_file: the key of an encrypted database: text, 32 bytes, or a file with one of them.
        cache_bytes: the most memory of the engine's page cache.
        tree_depth: the number of revisions kept per branch.
        verify_checksums: compares each entry that is read with its checksum.
        check_file: checks the engine's file before it is used.
        watch_others: tells observers of the changes of other processes by themselves.
        scripts: the path of ``touchstone-scripts``, which runs the JavaScript of design documents.
    """
    if path is None and not in_memory:
        raise TypeError("open() needs a path, or in_memory=True")
    options = {
        "engine": engine,
        "requireEngine": require_engine,
        "create": create,
        "makeParents": make_parents,
        "readOnly": read_only,
        "inMemory": in_memory,
        "durability": durability,
        "passphrase": passphrase,
        "keyHex": None if key is None else key.hex(),
        "keyFile": key_file,
        "cacheBytes": cache_bytes,
        "treeDepth": tree_depth,
        "verifyChecksums": verify_checksums,
        "checkFile": check_file,
        "watchOthers": watch_others,
        "scripts": scripts,
    }
    return Database(path, {name: value for name, value in options.items() if value is not None})


def engines() -> List[str]:
    """The names of the engines that this build has.

    >>> import touchstone
    >>> "lmdb" in touchstone.engines()
    True
    """
    return _decode(_text("touchstone_engines").decode())  # type: ignore[no-any-return]


def set_log(levels: str) -> None:
    """What the library writes to standard error: ``"none"``, ``"warning"`` (default), ``"info"``, ``"debug"``, …"""
    given = _encoded(levels)
    _call("touchstone_set_log", given, len(given))


class _Reporter:
    """A function of the user that C calls with the progress, and what it raised."""

    def __init__(self, function: Optional[Progress]) -> None:
        self.error: Optional[BaseException] = None

        def report(_: Any, phase: bytes, done: int, total: int) -> int:
            try:
                if function is not None:
                    function(phase.decode(), done, total)
                return 0
            except BaseException as error:
                self.error = error
                return 1

        self.callback = _ProgressCallback(report)

    def run(self, name: str, *texts: bytes) -> Dict[str, Any]:
        """Calls a function with texts, and returns its report."""
        given = [part for text in texts for part in (text, len(text))]
        try:
            return _decode(_text(name, *given, self.callback, None).decode("utf-8"))  # type: ignore[no-any-return]
        except Error:
            if self.error is not None:
                raise self.error from None
            raise


def _key_options(prefix: str, passphrase: Optional[str], key: Optional[bytes]) -> Dict[str, Any]:
    names = (prefix + "Passphrase", prefix + "KeyHex") if prefix else ("passphrase", "keyHex")
    values = (passphrase, None if key is None else key.hex())
    return {name: value for name, value in zip(names, values) if value is not None}


def convert(
    path: Path,
    engine: str,
    *,
    target: Optional[str] = None,
    passphrase: Optional[str] = None,
    key: Optional[bytes] = None,
    new_passphrase: Optional[str] = None,
    new_key: Optional[bytes] = None,
    progress: Optional[Progress] = None,
) -> Dict[str, Any]:
    """Converts a database that isn't open to another engine, in place or to ``target``. Everything is kept, and verified.

    ``progress(phase, done, total)`` is called meanwhile. If it raises, nothing has changed. Returns what the result lacks because
    the database lacked it already: ``missingBlobs``, a number; ``documents``, the number of those that name them; and ``places``,
    dicts with ``document``, ``digest`` and ``path``, at most 1,000.
    """
    import os

    options = dict(
        _key_options("", passphrase, key), **_key_options("new", new_passphrase, new_key), engine=engine
    )
    if target is not None:
        options["target"] = target
    return _Reporter(progress).run("touchstone_convert", os.fsencode(path), _encode(options))


def backup(
    path: Path,
    target: Path,
    *,
    passphrase: Optional[str] = None,
    key: Optional[bytes] = None,
    key_file: Optional[str] = None,
    progress: Optional[Progress] = None,
) -> Dict[str, Any]:
    """Makes a backup of the database at ``path``: a database at ``target`` that is the same at one moment.

    The database may be open, and others may write meanwhile. The backup has its UUIDs, sequences, engine and key, and appears when
    it is complete, compared with what was read, and synced to disk. Only one of the two should sync: they are the same peer to
    others. ``progress(phase, done, total)`` is called meanwhile; if it raises, no backup is made. Returns what the backup lacks, as
    :func:`convert` says it.

    >>> import os, tempfile, touchstone
    >>> folder = tempfile.mkdtemp()
    >>> with touchstone.open(os.path.join(folder, "travel")) as db:
    ...     db["hotel_1"] = {"name": "Apple Droid"}
    ...     report = touchstone.backup(db.path, os.path.join(folder, "monday"))
    >>> report["missingBlobs"]
    0
    >>> with touchstone.open(os.path.join(folder, "monday"), read_only=True) as db:
    ...     db["hotel_1"]["name"]
    'Apple Droid'
    """
    import os

    options = _key_options("", passphrase, key)
    if key_file is not None:
        options["keyFile"] = key_file
    return _Reporter(progress).run("touchstone_backup", os.fsencode(path), os.fsencode(target), _encode(options))


def upgrade(
    source: Path,
    target: Path,
    *,
    engine: Optional[str] = None,
    passphrase: Optional[str] = None,
    key: Optional[bytes] = None,
    source_passphrase: Optional[str] = None,
    source_key: Optional[bytes] = None,
    winners: bool = False,
    strict: bool = False,
    verify: bool = False,
    progress: Optional[Progress] = None,
) -> Dict[str, Any]:
    """Makes a database from one of Couchbase Lite 1.x, and returns a report of what was carried over."""
    import os

    options: Dict[str, Any] = dict(
        _key_options("", passphrase, key), **_key_options("source", source_passphrase, source_key)
    )
    options.update(winners=winners, strict=strict, verify=verify)
    if engine is not None:
        options["engine"] = engine
    return _Reporter(progress).run("touchstone_upgrade", os.fsencode(source), os.fsencode(target), _encode(options))


__all__ = [
    "BadRequestError",
    "Blob",
    "BlobFile",
    "BusyError",
    "CancelledError",
    "Change",
    "ConflictError",
    "CorruptError",
    "Database",
    "DiskFullError",
    "Document",
    "DuplicateError",
    "Error",
    "ForbiddenError",
    "IOFailure",
    "Listener",
    "MisuseError",
    "NotFoundError",
    "Observer",
    "Replicator",
    "Result",
    "Revision",
    "RevisionTree",
    "Saved",
    "Stream",
    "TimeLimitError",
    "TooLargeError",
    "UnauthorizedError",
    "UnsupportedError",
    "backup",
    "convert",
    "engines",
    "open",
    "set_log",
    "upgrade",
]
