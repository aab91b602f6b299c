"""The functions of libtouchstone.so (touchstone.h), called with ctypes, which releases the GIL in each call."""

from __future__ import annotations

import ctypes
import os
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    byref,
    c_char,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, Optional

from ._errors import KINDS, Error, IOFailure, NotFoundError
from ._handles import Process

INTERFACE = 1


class ErrorValue(Structure):
    """touchstone_error"""

    _fields_ = [
        ("kind", c_int32),
        ("can_retry", c_int32),
        ("code", c_char_p),
        ("message", c_char_p),
        ("path", c_char_p),
        ("document", c_char_p),
        ("offset", c_int64),
        ("line", c_int32),
        ("column", c_int32),
    ]


class RevisionValue(Structure):
    """touchstone_revision"""

    _fields_ = [
        ("sequence", c_uint64),
        ("flags", c_uint32),
        ("revision_length", c_uint32),
        ("revision", c_char * 272),
    ]


class ColumnValue(Structure):
    """touchstone_column"""

    _fields_ = [
        ("type", c_int32),
        ("count", c_int64),
        ("null_count", c_int64),
        ("validity", c_void_p),
        ("values", c_void_p),
        ("offsets", c_void_p),
    ]


TextCallback = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t)
RowsCallback = CFUNCTYPE(None, c_void_p, c_void_p, POINTER(ErrorValue))
BodyCallback = CFUNCTYPE(c_int32, c_void_p)
MapCallback = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, c_size_t)
ProgressCallback = CFUNCTYPE(c_int32, c_void_p, c_char_p, c_int64, c_int64)


def _path() -> str:
    """The file of the library: what LIBTOUCHSTONE names, or the one inside this package, or what the loader finds."""
    named = os.environ.get("LIBTOUCHSTONE")
    if named:
        return named
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "libtouchstone.so.0")
    return own if os.path.exists(own) else "libtouchstone.so.0"


lib = ctypes.CDLL(_path())

_text = [c_char_p, c_size_t]
_result = [c_void_p, c_void_p]
_error = [c_void_p]

# name: the types of the arguments, and of the result (c_int32 unless said)
_functions: "dict[str, Any]" = {
    "error_free": ([c_void_p], None),
    "free": ([c_void_p], None),
    "version": ([], c_char_p),
    "set_log": (_text + _error,),
    "engines": (_result + _error,),
    "check_handles": ([c_int32] + _error,),
    "open": (_text + _text + [c_void_p] + _error,),
    "close": ([c_void_p] + _error,),
    "database_free": ([c_void_p], None),
    "delete_database": ([c_void_p] + _error,),
    "describe": ([c_void_p] + _result + _error,),
    "count": ([c_void_p] + _error, c_int64),
    "read": ([c_void_p] + _text + [c_void_p, c_size_t, c_void_p] + _error, c_int64),
    "get": ([c_void_p] + _text + [c_uint32] + _result + [c_void_p] + _error,),
    "save": ([c_void_p] + _text + _text + _text + [c_int32, c_void_p] + _error,),
    "save_many": ([c_void_p, c_char_p, c_void_p, c_size_t, c_int32, c_void_p, c_void_p] + _error,),
    "delete": ([c_void_p] + _text + _text + [c_int32, c_void_p] + _error,),
    "purge": ([c_void_p] + _text + _text + _error,),
    "set_expiration": ([c_void_p] + _text + [c_int64] + _error,),
    "expiration": ([c_void_p] + _text + _error, c_int64),
    "revisions": ([c_void_p] + _text + [c_int32] + _result + _error,),
    "revision_body": ([c_void_p] + _text + _text + _result + _error,),
    "resolve": ([c_void_p] + _text + _text + _text + _error,),
    "apply": ([c_void_p] + _text + _text + _text + [c_int32] + _error,),
    "batch": ([c_void_p, BodyCallback, c_void_p, c_int32] + _error,),
    "begin": ([c_void_p] + _error,),
    "commit": ([c_void_p] + _error,),
    "rollback": ([c_void_p] + _error,),
    "query_new": ([c_void_p] + _text + _text + [c_void_p] + _error,),
    "query_free": ([c_void_p], None),
    "query_describe": ([c_void_p] + _result + _error,),
    "query_run": ([c_void_p] + _text + [c_void_p] + _error,),
    "query_stream": ([c_void_p] + _text + [c_void_p] + _error,),
    "query_cancel": ([c_void_p], None),
    "documents": ([c_void_p] + _text + [c_void_p] + _error,),
    "changes": ([c_void_p, c_uint64, c_void_p] + _error,),
    "rows_free": ([c_void_p], None),
    "rows_width": ([c_void_p],),
    "rows_name": ([c_void_p, c_int32, c_void_p], c_char_p),
    "rows_count": ([c_void_p], c_int64),
    "rows_json": ([c_void_p, c_size_t, c_void_p, c_void_p] + _error, c_int64),
    "rows_next": ([c_void_p] + _error,),
    "row_type": ([c_void_p, c_int32],),
    "row_int64": ([c_void_p, c_int32], c_int64),
    "row_double": ([c_void_p, c_int32], c_double),
    "row_text": ([c_void_p, c_int32, c_void_p], c_void_p),
    "rows_column": ([c_void_p, c_int32, c_void_p] + _error,),
    "create_index": ([c_void_p] + _text + _text + _error,),
    "delete_index": ([c_void_p] + _text + _error,),
    "indexes": ([c_void_p] + _result + _error,),
    "blob_writer_new": ([c_void_p, c_void_p] + _error,),
    "blob_write": ([c_void_p, c_void_p, c_size_t] + _error,),
    "blob_finish": ([c_void_p] + _text + _result + _error,),
    "blob_writer_free": ([c_void_p], None),
    "blob_open": ([c_void_p] + _text + [c_void_p] + _error,),
    "blob_length": ([c_void_p], c_uint64),
    "blob_read": ([c_void_p, c_void_p, c_size_t] + _error, c_int64),
    "blob_seek": ([c_void_p, c_uint64] + _error,),
    "blob_free": ([c_void_p], None),
    "observe": ([c_void_p] + _text + [TextCallback, c_void_p, c_void_p] + _error,),
    "observe_query": ([c_void_p] + _text + [RowsCallback, c_void_p, c_void_p] + _error,),
    "notice_changes": ([c_void_p] + _error,),
    "observer_free": ([c_void_p], None),
    "view_define": ([c_void_p] + _text + _text + [MapCallback, c_void_p] + _error,),
    "emit": ([c_void_p] + _text + _text,),
    "view_query": ([c_void_p] + _text + _text + _result + _error,),
    "compact": ([c_void_p] + _error,),
    "check": ([c_void_p, c_int32] + _result + _error,),
    "verify": ([c_void_p, c_void_p, c_uint32] + _result + _error,),
    "convert": (_text + _text + [ProgressCallback, c_void_p] + _result + _error,),
    "backup": (_text + _text + _text + [ProgressCallback, c_void_p] + _result + _error,),
    "upgrade": (_text + _text + _text + [ProgressCallback, c_void_p] + _result + _error,),
    "change_key": ([c_void_p] + _text + _error,),
    "replicator_new": ([c_void_p, c_void_p] + _text + [c_void_p] + _error,),
    "replicator_start": ([c_void_p] + _error,),
    "replicator_stop": ([c_void_p] + _error,),
    "replicator_wait": ([c_void_p, c_double] + _error,),
    "replicator_status": ([c_void_p] + _result + _error,),
    "replicator_observe": ([c_void_p, TextCallback, c_void_p, c_void_p] + _error,),
    "replicator_free": ([c_void_p], None),
    "listener_new": (_text + [c_void_p] + _error,),
    "listener_add": ([c_void_p] + _text + [c_void_p] + _error,),
    "listener_start": ([c_void_p] + _error,),
    "listener_stop": ([c_void_p] + _error,),
    "listener_describe": ([c_void_p] + _result + _error,),
    "listener_free": ([c_void_p], None),
}

for _name, _signature in _functions.items():
    _function = getattr(lib, "touchstone_" + _name)
    _function.argtypes = _signature[0]
    _function.restype = _signature[1] if len(_signature) > 1 else c_int32


def exception(value: ErrorValue) -> Error:
    """The exception that an error of C means."""

    def text(bytes_: Optional[bytes]) -> Optional[str]:
        return None if bytes_ is None else bytes_.decode("utf-8", "replace")

    kind = KINDS.get(value.kind, IOFailure)
    return kind(
        text(value.message) or "",
        code=text(value.code) or "",
        can_retry=value.can_retry != 0,
        path=text(value.path),
        document=text(value.document),
        offset=None if value.offset < 0 else value.offset,
        line=value.line or None,
        column=value.column or None,
    )


def raising(status: int, place: "ctypes._Pointer[ErrorValue]") -> None:
    """Raises the error that a call has put into `place`, and frees it."""
    if not place:
        raise KINDS.get(abs(status), IOFailure)("the call failed with the status %d" % status)
    error = exception(place.contents)
    lib.touchstone_error_free(place)
    raise error


_ErrorPointer = POINTER(ErrorValue)


def call(name: str, *arguments: Any) -> int:
    """Calls a function whose last argument is an error, and raises that."""
    if Process.is_forked:
        raise Process.refusal()
    place = _ErrorPointer()
    result: int = getattr(lib, name)(*arguments, byref(place))
    if place:
        raising(result, place)
    return result


#: What frees the handles that functions make.
_frees = {
    "open": lib.touchstone_database_free,
    "query_new": lib.touchstone_query_free,
    "query_run": lib.touchstone_rows_free,
    "query_stream": lib.touchstone_rows_free,
    "documents": lib.touchstone_rows_free,
    "changes": lib.touchstone_rows_free,
    "blob_writer_new": lib.touchstone_blob_writer_free,
    "blob_open": lib.touchstone_blob_free,
    "observe": lib.touchstone_observer_free,
    "observe_query": lib.touchstone_observer_free,
    "replicator_new": lib.touchstone_replicator_free,
    "replicator_observe": lib.touchstone_observer_free,
    "listener_new": lib.touchstone_listener_free,
}


def handle(name: str, *arguments: Any) -> int:
    """Calls a function that makes a handle."""
    if Process.is_forked:
        raise Process.refusal()
    free = _frees[name[len("touchstone_") :]]
    place = _ErrorPointer()
    made = c_void_p()
    try:
        result = getattr(lib, name)(*arguments, byref(made), byref(place))
    except BaseException:
        # A signal has come during the call, and nobody else knows the handle.
        free(made)
        raise
    if result != 0 or made.value is None:
        raising(result, place)
    return made.value  # type: ignore[return-value]


def text(name: str, *arguments: Any) -> bytes:
    """Calls a function that hands out a text."""
    if Process.is_forked:
        raise Process.refusal()
    place = _ErrorPointer()
    bytes_, length = c_void_p(), c_size_t()
    try:
        result = getattr(lib, name)(*arguments, byref(bytes_), byref(length), byref(place))
        if result != 0 or bytes_.value is None:
            raising(result, place)
        return ctypes.string_at(bytes_.value, length.value)  # type: ignore[arg-type]
    finally:
        lib.touchstone_free(bytes_)


def encoded(value: str) -> bytes:
    """The UTF-8 of a text. Lone surrogates are an error of the library's."""
    return value.encode("utf-8", "surrogatepass")


__all__ = ["Error", "NotFoundError"]
