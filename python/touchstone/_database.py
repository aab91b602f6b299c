"""Databases."""

from __future__ import annotations

import ctypes
import datetime
import os
import threading
import time
import weakref
from collections import OrderedDict
from contextlib import contextmanager, suppress
from ctypes import byref, c_size_t
from typing import (
    TYPE_CHECKING,
    Any,
    BinaryIO,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    MutableMapping,
    Optional,
    Tuple,
    TypeVar,
    Union,
    overload,
)

from . import _blobs, _observing
from ._documents import CONFLICTED, Change, Document, Revision, RevisionTree, Saved, decode, encode, scan
from ._errors import BusyError, Error, MisuseError, NotFoundError
from ._handles import Process
from ._library import (
    MapCallback,
    RevisionValue,
    _ErrorPointer,
    call,
    encoded,
    handle,
    lib,
    raising,
    text,
)
from ._results import Prepared, Result, Rows

if TYPE_CHECKING:
    from ._sync import Replicator

Body = Mapping[str, Any]
Default = TypeVar("Default")
Path = Union[str, "os.PathLike[str]"]

#: What a save does when the stored document isn't the revision that it is based on.
POLICIES = {"overwrite": 0, "fail": 1, "branch": 2}

#: How long closing waits for the calls of other threads, in seconds.
_PATIENCE = 2.0

# Without the types of its arguments, which cost a fifth of a read: its pointers and lengths fit into what ctypes makes of them.
_read: Any = ctypes.CDLL(lib._name).touchstone_read
_read.restype = ctypes.c_int64
_make_document: Any = Document.__new__


def _policy(name: str) -> int:
    try:
        return POLICIES[name]
    except KeyError:
        raise ValueError("on_conflict is %r; it can be %s" % (name, ", ".join(map(repr, POLICIES)))) from None


class _Buffer:
    """Memory that documents are read into, call after call."""

    __slots__ = ("size", "address", "view", "revision", "revision_view", "lengths")

    def __init__(self, size: int) -> None:
        memory = ctypes.create_string_buffer(size)
        self.size = size
        self.address = ctypes.c_void_p(ctypes.addressof(memory))
        # It keeps the memory.
        self.view = memoryview(memory).cast("B")
        revision = RevisionValue()
        self.revision = ctypes.c_void_p(ctypes.addressof(revision))
        self.revision_view = memoryview(revision).cast("B")
        #: The revision as numbers: the length of its ID is the one at 3.
        self.lengths = self.revision_view.cast("I")


#: Buffers that no read uses. A read takes one, since a signal's handler or a finalizer may read another document, on the same
#: thread, before it has copied what it has read.
_buffers: List[_Buffer] = []
_take_buffer = _buffers.pop
_give_buffer = _buffers.append
#: The size of a new buffer, and the greatest that is kept.
_SMALL, _LARGE = 1 << 16, 1 << 20

_open: "weakref.WeakSet[Database]" = weakref.WeakSet()
#: All databases that live, closed ones too: the library has a handle for each.
_living: "weakref.WeakSet[Database]" = weakref.WeakSet()


class Database(MutableMapping[str, Document]):
    """A database of JSON documents: a mapping of IDs to dicts, with revisions, queries and more.

    :func:`touchstone.open` makes one. It may be used from any number of threads. Close it, or use it in a ``with``.

    >>> import touchstone
    >>> with touchstone.open(in_memory=True) as db:
    ...     db["hotel_1"] = {"type": "hotel", "name": "Apple Droid", "country": "France"}
    ...     db["hotel_1"]["name"]
    'Apple Droid'
    """

    def __init__(self, path: Optional[Path], options: Mapping[str, Any]) -> None:
        name = b"" if path is None else os.fsencode(path)
        given = encode(options)
        self._handle = handle("touchstone_open", name, len(name), given, len(given))
        self._read_handle = ctypes.c_void_p(self._handle)
        self._is_closed = False
        self._free = weakref.finalize(self, lib.touchstone_database_free, self._handle)
        self._free.atexit = False
        # Reentrant, because a signal's handler or a finalizer may come in the middle.
        self._lock = threading.RLock()
        self._queries: "OrderedDict[str, Prepared]" = OrderedDict()
        #: All prepared queries that live.
        self._prepared: "weakref.WeakSet[Prepared]" = weakref.WeakSet()
        #: Streams, observers and replicators, which end before the database closes.
        self._children: "weakref.WeakSet[Any]" = weakref.WeakSet()
        #: The thread that has a batch open.
        self._batch_thread: Optional[int] = None
        #: The map functions of views, which C calls until the database is closed.
        self._maps: Dict[str, Any] = {}
        _open.add(self)
        _living.add(self)

    # The handle

    def _open_handle(self) -> int:
        if Process.is_forked:
            raise Process.refusal()
        if self._is_closed:
            raise MisuseError("the database is closed", code="closed")
        return self._handle

    def _keep(self, child: Any) -> None:
        with self._lock:
            if not self._is_closed:
                self._children.add(child)
                return
        child.close()
        self._open_handle()

    def close(self) -> None:
        """Closes the database. What still reads or observes it ends first: on other threads, loops over its rows raise
        :class:`MisuseError`. Calls that run there have two seconds to end, then this raises :class:`BusyError`, and the database
        stays open. A second call does nothing."""
        if Process.is_forked:
            raise Process.refusal()
        if not self._is_closed:
            self._end("touchstone_close")

    def delete_files(self) -> None:
        """Closes the database and removes its files."""
        self._open_handle()
        self._end("touchstone_delete_database")

    def _end(self, function: str) -> None:
        self._end_children()
        with self._lock:
            # No other call begins.
            self._is_closed = True
            queries = list(self._prepared)
            self._queries.clear()
        try:
            self._end_children()
            for query in queries:
                query.cancel()
            limit = time.monotonic() + _PATIENCE
            while True:
                try:
                    # The library would wait for the end of the batch, however long it takes.
                    if self._batch_thread not in (None, threading.get_ident()):
                        raise BusyError("another thread has a batch open", code="busy")
                    call(function, self._handle)
                    break
                except BusyError:
                    if time.monotonic() > limit:
                        raise
                time.sleep(0.001)
        except BaseException:
            self._is_closed = False
            raise
        _open.discard(self)

    def _end_children(self) -> None:
        with self._lock:
            children = list(self._children)
        for child in children:
            if isinstance(child, Rows):
                child.end()
            else:
                child.close()

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<touchstone.Database %s>" % ("closed" if self._is_closed else self.info()["path"])

    # A database is itself: two of them aren't compared document by document.
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def info(self) -> Dict[str, Any]:
        """What the database is: path, name, engine, library, encrypted, readOnly, documents, tombstones, lastSequence,
        publicUUID."""
        return decode(text("touchstone_describe", self._open_handle()).decode())  # type: ignore[no-any-return]

    @property
    def path(self) -> str:
        """The database's directory."""
        return self.info()["path"]  # type: ignore[no-any-return]

    @property
    def engine(self) -> str:
        """The name of the engine that stores it."""
        return self.info()["engine"]  # type: ignore[no-any-return]

    # Reading

    def get_json(self, id: str) -> Optional[bytes]:
        """The body of a document as JSON in UTF-8; None if there is none. This is the fastest way to read.

        >>> import touchstone
        >>> db = touchstone.open(in_memory=True)
        >>> db["a"] = {"n": 1}
        >>> db.get_json("a")
        b'{"n":1}'
        """
        if self._is_closed:
            self._open_handle()
        key = id.encode("utf-8", "surrogatepass")
        try:
            buffer = _take_buffer()
        except IndexError:
            buffer = _Buffer(_SMALL)
        count = _read(self._read_handle, key, len(key), buffer.address, buffer.size, None, None)
        if 0 <= count <= buffer.size:
            found = buffer.view[:count].tobytes()
            _give_buffer(buffer)
            return found
        return self._read_slowly(key, count, buffer)[0]

    def _read_slowly(self, key: bytes, count: int, buffer: _Buffer) -> Tuple[Optional[bytes], bytes]:
        """Reads what is larger than the buffer, or finds out what is wrong."""
        small = buffer
        while count > buffer.size:
            buffer = _Buffer(count + count // 4)
            count = _read(
                self._read_handle, key, len(key), buffer.address, buffer.size, buffer.revision, None
            )
            if 0 <= count <= buffer.size:
                found = buffer.view[:count].tobytes(), _raw(buffer)
                _give_buffer(buffer if buffer.size <= _LARGE else small)
                return found
        _give_buffer(small)
        if count >= 0 or count == -NotFoundError.kind:
            return None, b""
        place = _ErrorPointer()
        count = _read(self._read_handle, key, len(key), None, 0, None, byref(place))
        raising(count, place)
        return None, b""

    @overload
    def get(self, id: str, default: None = None) -> Optional[Document]: ...

    @overload
    def get(self, id: str, default: Union[Document, Default]) -> Union[Document, Default]: ...

    def get(self, id: str, default: Any = None) -> Any:
        """A document as a :class:`Document`, a dict with its ID and revision; ``default`` if there is none."""
        if self._is_closed:
            self._open_handle()
        key = id.encode("utf-8", "surrogatepass")
        try:
            buffer = _take_buffer()
        except IndexError:
            buffer = _Buffer(_SMALL)
        count = _read(
            self._read_handle, key, len(key), buffer.address, buffer.size, buffer.revision, None
        )
        if 0 <= count <= buffer.size:
            text_, raw = str(buffer.view[:count], "utf-8"), _raw(buffer)
            _give_buffer(buffer)
            # As Document(…) does, in a third of its time. What the library writes has no blanks around it.
            document = _make_document(Document)
            document.update(scan(text_, 0)[0])
            document.id = id
            document._raw = raw
            return document
        body, raw = self._read_slowly(key, count, buffer)
        return default if body is None else Document(decode(body.decode("utf-8")), id, raw)

    def __getitem__(self, id: str) -> Document:
        found = self.get(id)
        if found is None:
            raise NotFoundError("there is no such document: %r" % id, document=id)
        return found

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.get_json(id) is not None

    def __len__(self) -> int:
        return call("touchstone_count", self._open_handle())

    def documents(
        self,
        *,
        bodies: bool = True,
        mode: str = "live",
        order: str = "id",
        first: Optional[str] = None,
        last: Optional[str] = None,
        prefix: Optional[str] = None,
        ids: Optional[List[str]] = None,
        descending: bool = False,
        skip: int = 0,
        limit: Optional[int] = None,
    ) -> Iterator[Document]:
        """Enumerates documents of one snapshot, as a stream.

        ``mode`` is ``"live"``, ``"includingDeleted"`` or ``"onlyConflicts"``; ``order`` is ``"id"`` or ``"sequence"``;
        ``first`` and ``last`` are included. Without ``bodies`` the documents are empty.

        >>> import touchstone
        >>> db = touchstone.open(in_memory=True)
        >>> _ = db.save_many({"a": {"n": 1}, "b": {"n": 2}})
        >>> [(document.id, document["n"]) for document in db.documents(descending=True)]
        [('b', 2), ('a', 1)]
        """
        options = {
            "bodies": bodies,
            "mode": mode,
            "order": order,
            "from": first,
            "to": last,
            "prefix": prefix,
            "ids": ids,
            "descending": descending,
            "skip": skip,
            "limit": limit,
        }
        given = encode({name: value for name, value in options.items() if value is not None})
        rows = Rows(handle("touchstone_documents", self._open_handle(), given, len(given)))
        self._keep(rows)
        return (
            Document(row.get("body") or (), row["id"], _raw_of(row)) for row in rows
        )

    def __iter__(self) -> Iterator[str]:
        return (document.id for document in self.documents(bodies=False))

    def items(self) -> Iterator[Tuple[str, Document]]:  # type: ignore[override]
        """The IDs and documents, as a stream."""
        return ((document.id, document) for document in self.documents())

    def values(self) -> Iterator[Document]:  # type: ignore[override]
        """The documents, as a stream."""
        return self.documents()

    def changes(self, since: int = 0) -> Iterator[Change]:
        """The changes after a sequence, the oldest first; each document once, with its latest change."""
        rows = Rows(handle("touchstone_changes", self._open_handle(), since))
        self._keep(rows)
        return (_observing.change(row) for row in rows)

    # Writing

    def save(
        self,
        id: Union[str, Document],
        body: Union[Body, bytes, None] = None,
        *,
        base: Optional[str] = None,
        on_conflict: str = "overwrite",
    ) -> Saved:
        """Saves a document: a :class:`Document` that was read and changed, or an ID and a dict or JSON in UTF-8.

        ``base`` is the revision that it is based on; a ``Document`` knows it. ``on_conflict`` says what happens if another one
        is stored: ``"overwrite"``, ``"fail"`` (:class:`ConflictError`) or ``"branch"``, which keeps both.

        >>> import touchstone
        >>> db = touchstone.open(in_memory=True)
        >>> _ = db.save("note", {"text": "a"})
        >>> note = db["note"]
        >>> _ = db.save("note", {"text": "from elsewhere"})
        >>> note["text"] = "b"
        >>> try:
        ...     db.save(note, on_conflict="fail")
        ... except touchstone.ConflictError as error:
        ...     print(error.document)
        note
        """
        document = id if isinstance(id, Document) else None
        if document is not None:
            id, body, base = document.id, document if body is None else body, base or document.revision
        elif body is None:
            raise TypeError("save() needs a Document, or an ID and a body")
        key = id.encode("utf-8", "surrogatepass")  # type: ignore[union-attr]
        json_ = body if isinstance(body, bytes) else encode(body)
        parent = None if base is None else base.encode("ascii", "replace")
        saved, place = RevisionValue(), _ErrorPointer()
        status = lib.touchstone_save(
            self._open_handle(),
            key,
            len(key),
            json_,
            len(json_),
            parent,
            len(parent or b""),
            _policy(on_conflict),
            byref(saved),
            byref(place),
        )
        if status != 0:
            raising(status, place)
        if document is not None:
            document._raw = bytes(saved)[: 16 + saved.revision_length]
        return Saved(id, saved.revision.decode(), saved.sequence)  # type: ignore[arg-type]

    def __setitem__(self, id: str, body: Body) -> None:
        self.save(id, encode(body))

    def save_many(
        self,
        documents: Union[Mapping[str, Any], Iterable[Tuple[str, Any]]],
        *,
        on_conflict: str = "overwrite",
    ) -> int:
        """Saves many documents in one transaction, all or none, and returns their number. Bodies are dicts or JSON in UTF-8.

        >>> import touchstone
        >>> db = touchstone.open(in_memory=True)
        >>> db.save_many((str(n), {"n": n}) for n in range(1000))
        1000
        """
        pairs = documents.items() if isinstance(documents, Mapping) else documents
        parts: List[bytes] = []
        for id, body in pairs:
            parts.append(id.encode("utf-8", "surrogatepass"))
            parts.append(body if isinstance(body, bytes) else encode(body))
        count = len(parts) // 2
        lengths = (ctypes.c_uint64 * len(parts))(*map(len, parts))
        failed, place = c_size_t(), _ErrorPointer()
        status = lib.touchstone_save_many(
            self._open_handle(), b"".join(parts), lengths, count, _policy(on_conflict), None, byref(failed), byref(place)
        )
        if status != 0:
            raising(status, place)
        return count

    def delete(
        self, id: Union[str, Document], *, base: Optional[str] = None, on_conflict: str = "overwrite"
    ) -> Saved:
        """Deletes a document: its new current revision is a tombstone."""
        if isinstance(id, Document):
            base = base or id.revision
            id = id.id
        key = encoded(id)
        parent = None if base is None else base.encode("ascii", "replace")
        saved = RevisionValue()
        call(
            "touchstone_delete",
            self._open_handle(),
            key,
            len(key),
            parent,
            len(parent or b""),
            _policy(on_conflict),
            byref(saved),
        )
        return Saved(id, saved.revision.decode(), saved.sequence)

    def __delitem__(self, id: str) -> None:
        self.delete(id)

    def purge(self, id: str, *, branch: Optional[str] = None) -> None:
        """Removes a document with all its revisions, without a tombstone; or only the branch of a leaf."""
        key = encoded(id)
        leaf = None if branch is None else encoded(branch)
        call("touchstone_purge", self._open_handle(), key, len(key), leaf, len(leaf or b""))

    def clear(self) -> None:
        """Deletes all documents, in one transaction."""
        with self.batch():
            for id in list(self):
                self.delete(id)

    def update(self, other: Any = (), /, **documents: Any) -> None:
        """Saves many documents in one transaction."""
        self.save_many(dict(other, **documents))

    def expire(self, id: str, at: Optional[datetime.datetime]) -> None:
        """Sets when the document is purged; None for never."""
        key = encoded(id)
        milliseconds = 2**63 - 1 if at is None else round(at.timestamp() * 1000)
        call("touchstone_set_expiration", self._open_handle(), key, len(key), milliseconds)

    def expiration(self, id: str) -> Optional[datetime.datetime]:
        """When the document is purged, in UTC; None for never."""
        key = encoded(id)
        place = _ErrorPointer()
        milliseconds = lib.touchstone_expiration(self._open_handle(), key, len(key), byref(place))
        if place:
            raising(500, place)
        if milliseconds == 2**63 - 1:
            return None
        return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.timezone.utc)

    # Batches

    @contextmanager
    def batch(self) -> Iterator["Database"]:
        """One transaction: all that this thread writes in it is stored, or nothing if it ends with an exception.

        Reads of this thread see its writes; other threads see nothing of it and wait with theirs. For many documents at once
        :meth:`save_many` is faster.

        >>> import touchstone
        >>> db = touchstone.open(in_memory=True)
        >>> with db.batch():
        ...     db["a"] = {"n": 1}
        ...     db["b"] = {"n": db["a"]["n"] + 1}
        >>> db["b"]
        {'n': 2}
        """
        pointer = self._open_handle()
        try:
            call("touchstone_begin", pointer)
        except Error:
            raise
        except BaseException:
            # A signal, such as Ctrl-C, while it waited for others. It may have begun.
            with suppress(MisuseError):
                call("touchstone_rollback", pointer)
            raise
        self._batch_thread = threading.get_ident()
        try:
            try:
                yield self
            finally:
                self._batch_thread = None
        except BaseException:
            call("touchstone_rollback", pointer)
            raise
        call("touchstone_commit", pointer)

    # Revisions and conflicts

    def revisions(self, id: str, *, bodies: bool = False) -> RevisionTree:
        """All known revisions of a document."""
        key = encoded(id)
        found = decode(
            text("touchstone_revisions", self._open_handle(), key, len(key), int(bodies)).decode("utf-8")
        )
        return RevisionTree(
            id,
            [
                Revision(
                    id=item["id"],
                    parent=item["parent"],
                    sequence=item["sequence"],
                    is_deleted=item["deleted"],
                    is_leaf=item["leaf"],
                    is_current=item["current"],
                    has_body=item["hasBody"],
                    body=item.get("body"),
                )
                for item in found
            ],
        )

    def revision(self, id: str, revision: str) -> Dict[str, Any]:
        """The body of one revision."""
        key, name = encoded(id), encoded(revision)
        found = text(
            "touchstone_revision_body", self._open_handle(), key, len(key), name, len(name)
        )
        return decode(found.decode("utf-8"))  # type: ignore[no-any-return]

    def conflicts(self, id: str) -> List[Revision]:
        """The live leaves of a document in conflict with their bodies, the current one first; none if there is no conflict."""
        return self.revisions(id, bodies=True).conflicts

    def resolve(self, id: str, keep: Union[str, Revision], merged: Optional[Body] = None) -> None:
        """Resolves a conflict: keeps the branch of a leaf and ends the others. ``merged`` is the body of a new revision on top.

        >>> import touchstone
        >>> db = touchstone.open(in_memory=True)
        >>> first = db.save("note", {"text": ""})
        >>> for text in ("a", "b"):
        ...     _ = db.save("note", {"text": text}, base=first.revision, on_conflict="branch")
        >>> leaves = db.conflicts("note")
        >>> db.resolve("note", leaves[0], {"text": "".join(sorted(leaf.body["text"] for leaf in leaves))})
        >>> db["note"]["text"], db["note"].is_conflicted
        ('ab', False)
        """
        key = encoded(id)
        leaf = encoded(keep.id if isinstance(keep, Revision) else keep)
        body = None if merged is None else encode(merged)
        call("touchstone_resolve", self._open_handle(), key, len(key), leaf, len(leaf), body, len(body or b""))

    def apply(self, id: str, body: Body, history: List[str], *, deleted: bool = False) -> bool:
        """Inserts a revision of another database. ``history`` has its ID and those of its ancestors, the newest first. Returns
        False if it was known."""
        key, json_, known = encoded(id), encode(body), encode(history)
        return (
            call(
                "touchstone_apply",
                self._open_handle(),
                key,
                len(key),
                json_,
                len(json_),
                known,
                len(known),
                int(deleted),
            )
            == 1
        )

    # Queries

    def query(
        self,
        query: str,
        parameters: Optional[Mapping[str, Any]] = None,
        *,
        options: Optional[Mapping[str, Any]] = None,
        **named: Any,
    ) -> Result:
        """A query in N1QL. Parameters, ``$name`` in the text, are keyword arguments or a mapping.

        ``options`` may have ``useIndexes``, ``memoryLimit`` (bytes), ``temporaryFileLimit`` (bytes), ``temporaryDirectory``,
        ``rowLimit`` and ``timeLimit`` (seconds).

        >>> import touchstone
        >>> db = touchstone.open(in_memory=True)
        >>> db["hotel_1"] = {"type": "hotel", "name": "Apple Droid", "country": "France"}
        >>> db.query("SELECT name FROM _ WHERE country = $country", country="France").fetchall()
        [{'name': 'Apple Droid'}]
        """
        values = dict(parameters or {}, **named)
        if options:
            return Result(self, Prepared(self, query, options), query, values)
        self._open_handle()
        with self._lock:
            prepared = self._queries.pop(query, None)
            if prepared is not None:
                self._queries[query] = prepared
        if prepared is None:
            prepared = Prepared(self, query, {})
            with self._lock:
                self._queries[query] = prepared
                while len(self._queries) > 64:
                    self._queries.popitem(last=False)
        return Result(self, prepared, query, values)

    def create_index(
        self,
        name: str,
        on: Iterable[str] = (),
        *,
        where: Optional[str] = None,
        unnest: Optional[str] = None,
    ) -> bool:
        """Makes an index of the values of expressions, or of the items of an array. Returns False if it was there.

        >>> import touchstone
        >>> db = touchstone.open(in_memory=True)
        >>> db.create_index("byType", ["type", "LOWER(name)"])
        True
        """
        return self._create_index(name, {"on": list(on), "where": where, "unnest": unnest})

    def create_text_index(
        self,
        name: str,
        on: Iterable[str],
        *,
        where: Optional[str] = None,
        language: Optional[str] = None,
        ignore_accents: bool = False,
        stop_words: Union[bool, List[str]] = True,
        weights: Optional[List[float]] = None,
    ) -> bool:
        """Makes an index of the words in expressions, for ``MATCH``. Returns False if it was there.

        >>> import touchstone
        >>> db = touchstone.open(in_memory=True)
        >>> db["a"] = {"text": "two castles"}
        >>> db.create_text_index("words", ["text"], language="english")
        True
        >>> db.query("SELECT META().id FROM _ WHERE MATCH(words, 'castle')").fetchall()
        [{'id': 'a'}]
        """
        return self._create_index(
            name,
            {
                "fullText": True,
                "on": list(on),
                "where": where,
                "language": language,
                "ignoreAccents": ignore_accents,
                "stopWords": stop_words,
                "weights": weights,
            },
        )

    def _create_index(self, name: str, options: Mapping[str, Any]) -> bool:
        key, given = encoded(name), encode(options)
        return call("touchstone_create_index", self._open_handle(), key, len(key), given, len(given)) == 1

    def delete_index(self, name: str) -> None:
        """Removes an index."""
        key = encoded(name)
        call("touchstone_delete_index", self._open_handle(), key, len(key))

    def indexes(self) -> List[Dict[str, str]]:
        """All indexes: ``name``, ``kind`` (``value`` or ``fulltext``) and ``definition``."""
        return decode(text("touchstone_indexes", self._open_handle()).decode("utf-8"))  # type: ignore[no-any-return]

    # Views

    def define_view(
        self,
        name: str,
        map: Callable[[Dict[str, Any], Callable[..., None]], Any],
        *,
        version: str,
        reduce: Optional[str] = None,
        document_type: Optional[str] = None,
        collation: str = "unicode",
    ) -> None:
        """Gives a view its map function, which gets each document and a function that emits a key and a value.

        ``version`` names the function: another one builds the rows again. ``reduce`` is ``"count"``, ``"sum"``, ``"min"``,
        ``"max"``, ``"average"``, ``"median"``, ``"stddev"`` or ``"stats"``.

        >>> import touchstone
        >>> db = touchstone.open(in_memory=True)
        >>> _ = db.save_many({"a": {"city": "Paris"}, "b": {"city": "Lyon"}, "c": {"city": "Paris"}})
        >>> db.define_view("byCity", lambda document, emit: emit(document["city"]), version="1", reduce="count")
        >>> [(row["key"], row["value"]) for row in db.view("byCity", group=True)]
        [('Lyon', 1), ('Paris', 2)]
        """

        def mapped(_: Any, emitter: int, address: int, length: int) -> int:
            def emit(key: Any, value: Any = None) -> None:
                first = encode(key)
                second = None if value is None else encode(value)
                lib.touchstone_emit(emitter, first, len(first), second, len(second or b""))

            try:
                map(decode(ctypes.string_at(address, length).decode("utf-8")), emit)
                return 0
            except Exception:
                return 1

        options = {
            "version": version,
            "reduce": reduce,
            "documentType": document_type,
            "collation": collation,
        }
        key, given, function = encoded(name), encode(options), MapCallback(mapped)
        # An update that runs may still call the old function.
        self._maps.setdefault(name, []).append(function)
        call("touchstone_view_define", self._open_handle(), key, len(key), given, len(given), function, None)

    def view(self, name: str, **options: Any) -> List[Dict[str, Any]]:
        """The rows of a view, which is brought up to date: dicts with ``key``, ``value`` and, unless reduced, ``id``.

        Options: ``startKey``, ``endKey``, ``keys``, ``startID``, ``endID``, ``includeStart``, ``includeEnd``, ``prefixMatch``,
        ``descending``, ``skip``, ``limit``, ``reduce``, ``group``, ``groupLevel``, ``update``, ``documents``.
        """
        key, given = encoded(name), encode(options)
        found = text("touchstone_view_query", self._open_handle(), key, len(key), given, len(given))
        return decode(found.decode("utf-8"))["rows"]  # type: ignore[no-any-return]

    # Blobs

    def blob(
        self, content: Union[bytes, bytearray, memoryview, BinaryIO], content_type: str = ""
    ) -> _blobs.Blob:
        """Stores the bytes of a blob, or those of a file that is read to its end. Put the result into a document."""
        return _blobs.store(self, content, content_type)

    def open_blob(self, reference: Union[_blobs.Blob, Mapping[str, Any], str]) -> _blobs.BlobFile:
        """Opens a blob of a document as a file. ``reference`` is what the document has, or the digest."""
        file = _blobs.BlobFile(self, reference)
        self._keep(file)
        return file

    # Observing

    def observe(
        self, function: Callable[[List[Change]], Any], id: Optional[str] = None
    ) -> _observing.Observer:
        """Calls a function with the changes of each commit from now on, of all documents or of one.

        It is called on a thread of the library, until the observer is closed.
        """
        return _observing.observe(self, function, id)

    def watch(self, id: Optional[str] = None) -> _observing.Stream[Change]:
        """The changes that are committed from now on, for ``async for``.

        >>> import asyncio, touchstone
        >>> async def first():
        ...     with touchstone.open(in_memory=True) as db:
        ...         async with db.watch() as changes:
        ...             db["a"] = {"n": 1}
        ...             async for change in changes:
        ...                 return change.id, change.kind
        >>> asyncio.run(first())
        ('a', 'saved')
        """

        def start(stream: _observing.Stream[Change]) -> _observing.Observer:
            def tell(changes: List[Change]) -> None:
                for change in changes:
                    stream.put(change)

            return self.observe(tell, id)

        stream = _observing.Stream(start)
        self._keep(stream)
        return stream

    def observe_query(
        self,
        query: str,
        function: Callable[[Optional[List[Dict[str, Any]]], Optional[Error]], Any],
        **parameters: Any,
    ) -> _observing.Observer:
        """Calls a function with the rows of a query, now and whenever a commit has changed them: ``function(rows, None)``, or
        ``function(None, error)`` if the query failed."""
        return _observing.observe_query(self, Prepared(self, query, {}), parameters, function)

    def live(self, query: str, **parameters: Any) -> _observing.Stream[List[Dict[str, Any]]]:
        """The rows of a query, now and whenever a commit has changed them, for ``async for``. A slow reader gets the latest.

        >>> import asyncio, touchstone
        >>> async def names():
        ...     with touchstone.open(in_memory=True) as db:
        ...         async with db.live("SELECT name FROM _") as results:
        ...             async for rows in results:
        ...                 if rows:
        ...                     return rows
        ...                 db["a"] = {"name": "Ada"}
        >>> asyncio.run(names())
        [{'name': 'Ada'}]
        """

        def start(stream: _observing.Stream[List[Dict[str, Any]]]) -> _observing.Observer:
            return self.observe_query(
                query,
                lambda rows, error: stream.put(rows if error is None else error),
                **parameters,
            )

        stream = _observing.Stream(start, keeps_latest=True)
        self._keep(stream)
        return stream

    def notice_changes(self) -> None:
        """Looks for commits of other processes, and tells observers of them."""
        call("touchstone_notice_changes", self._open_handle())

    # Maintenance

    def compact(self) -> None:
        """Drops the bodies of replaced revisions, and returns space to the file system."""
        call("touchstone_compact", self._open_handle())

    def check(self, *, deep: bool = False) -> List[str]:
        """The faults of the database; none if it is sound. ``deep`` reads every body and blob."""
        return decode(text("touchstone_check", self._open_handle(), int(deep)).decode("utf-8"))  # type: ignore

    def verify(self, other: "Database", *, sequences: bool = False, only_current: bool = False) -> List[str]:
        """The differences between two databases, on any engines; none if they are equal. At most 1,000."""
        found = text(
            "touchstone_verify", self._open_handle(), other._open_handle(), int(sequences) + 2 * int(only_current)
        )
        return [item["text"] for item in decode(found.decode("utf-8"))["differences"]]

    def change_key(self, *, passphrase: Optional[str] = None, key: Optional[bytes] = None) -> None:
        """Changes the key of an encrypted database."""
        given = encode({"newPassphrase": passphrase, "newKeyHex": None if key is None else key.hex()})
        call("touchstone_change_key", self._open_handle(), given, len(given))

    # Sync

    def replicate(self, target: Union[str, "Database"], **options: Any) -> "Replicator":
        """A replicator of this database with another one or with a URL (:class:`Replicator`), which was started."""
        from ._sync import Replicator

        replicator = Replicator(self, target, **options)
        replicator.start()
        return replicator


def _raw(buffer: _Buffer) -> bytes:
    """The revision that a read has told, without what its text doesn't need."""
    return buffer.revision_view[: 16 + buffer.lengths[3]].tobytes()


def _raw_of(row: Mapping[str, Any]) -> bytes:
    """The same of a row of documents."""
    flags = int(row["deleted"]) + CONFLICTED * int(row["conflicted"])
    revision: bytes = row["revision"].encode()
    sequence: int = row["sequence"]
    return (
        sequence.to_bytes(8, "little")
        + flags.to_bytes(4, "little")
        + len(revision).to_bytes(4, "little")
        + revision
    )


def _after_fork() -> None:
    """In a child of a process with databases, lets no call come to the library, and nothing wait for locks of the parent's threads."""
    living = list(_living)
    if not living:
        return
    Process.is_forked = True
    _observing.forget_locks()
    for database in living:
        database._lock = threading.RLock()
        database._batch_thread = None
        # Reads look at this alone.
        database._is_closed = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def close_all() -> None:
    """Closes all databases, before the interpreter ends: threads of the library must not call it any more."""
    _observing.close_all()
    for database in list(_open):
        try:
            database.close()
        except Error:
            pass
