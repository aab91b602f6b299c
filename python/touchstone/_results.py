"""Queries: rows as dicts, as a data frame, as an Arrow table."""

from __future__ import annotations

import ctypes
import json
import weakref
from ctypes import byref, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Tuple

from ._documents import decode, encode
from ._errors import CancelledError
from ._handles import Handle
from ._library import ColumnValue, _ErrorPointer, call, encoded, handle, lib, raising, text

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from ._database import Database

# The types of columns (touchstone.h).
NULL, BOOL, INT64, DOUBLE, TEXT, JSON = 1, 2, 3, 4, 5, 6

#: How many bytes of JSON a call hands over.
PIECE = 1 << 20


class Prepared:
    """A prepared query. Databases keep the last ones."""

    def __init__(self, database: "Database", query: str, options: Mapping[str, Any]) -> None:
        utf8 = encoded(query)
        given = encode(options) if options else None
        self._handle = handle(
            "touchstone_query_new",
            database._open_handle(),
            utf8,
            len(utf8),
            given,
            len(given or b""),
        )
        self._close = weakref.finalize(self, lib.touchstone_query_free, self._handle)
        self._close.atexit = False
        with database._lock:
            database._prepared.add(self)

    def describe(self) -> Dict[str, List[str]]:
        return decode(text("touchstone_query_describe", self._handle).decode())  # type: ignore[no-any-return]

    def start(self, parameters: bytes, streams: bool) -> "Rows":
        name = "touchstone_query_stream" if streams else "touchstone_query_run"
        return Rows(handle(name, self._handle, parameters, len(parameters)), self)

    def cancel(self) -> None:
        lib.touchstone_query_cancel(self._handle)


class Rows:
    """Rows of the library. One thread at a time reads them; any thread may close them."""

    def __init__(self, pointer: int, query: Optional[Prepared] = None) -> None:
        self._handle = Handle(
            self, pointer, lib.touchstone_rows_free, "the rows were closed, or their database, before the last one"
        )
        self._query = query

    def close(self) -> None:
        self._handle.close()

    def end(self) -> None:
        """Closes them, while another thread may be waiting for them."""
        self._handle.close()
        if self._query is not None:
            self._query.cancel()

    def piece(self, size: int = PIECE) -> List[Dict[str, Any]]:
        """The next rows; none at the end. :class:`MisuseError` when they were closed before."""
        json_, length, place = c_void_p(), c_size_t(), _ErrorPointer()
        with self._handle as pointer:
            count = lib.touchstone_rows_json(pointer, size, byref(json_), byref(length), byref(place))
            if count < 0:
                try:
                    raising(count, place)
                except CancelledError:
                    # Whoever has closed the rows has cancelled them.
                    if self._handle.is_closed:
                        raise self._handle.error() from None
                    raise
            if count == 0:
                return []
            found = ctypes.string_at(json_.value, length.value)  # type: ignore[arg-type]
        return decode(found.decode("utf-8"))  # type: ignore

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        try:
            # The first rows soon, then larger pieces.
            size = 4096
            while True:
                rows = self.piece(size)
                if not rows:
                    return
                yield from rows
                size = PIECE
        finally:
            self.close()

    def count(self) -> int:
        with self._handle as pointer:
            return lib.touchstone_rows_count(pointer)  # type: ignore[no-any-return]

    def column(self, number: int) -> ColumnValue:
        value = ColumnValue()
        with self._handle as pointer:
            call("touchstone_rows_column", pointer, number, byref(value))
        return value


def _memory(address: Optional[int], size: int) -> Any:
    """Memory of the library, without a copy."""
    if not address or not size:
        return b""
    return (ctypes.c_char * size).from_address(address)


class Result:
    """The rows of a query. It runs when they are asked for.

    Iterating streams the rows: a result that is larger than memory is no problem. The other methods collect them.

    >>> import touchstone
    >>> db = touchstone.open(in_memory=True)
    >>> db.save_many({"a": {"n": 1}, "b": {"n": 2}, "c": {"n": 3}})
    3
    >>> [row["n"] for row in db.query("SELECT n FROM _ WHERE n > $least ORDER BY n", least=1)]
    [2, 3]
    >>> db.query("SELECT COUNT(*) AS documents FROM _").fetchone()
    {'documents': 3}
    """

    def __init__(
        self, database: "Database", prepared: Prepared, query: str, parameters: Mapping[str, Any]
    ) -> None:
        self._database = database
        self._text = query
        self._prepared = prepared
        self._parameters = encode(parameters) if parameters else b""
        self._rows: Optional[Rows] = None
        self._iterator: Optional[Iterator[Dict[str, Any]]] = None

    @property
    def columns(self) -> List[str]:
        """The names of the columns."""
        return self._prepared.describe()["columns"]

    @property
    def parameters(self) -> List[str]:
        """The names of the parameters that the query has."""
        return self._prepared.describe()["parameters"]

    def cancel(self) -> None:
        """Ends all runs of this query that are going on, from another thread: they raise :class:`CancelledError`."""
        self._prepared.cancel()

    def _start(self, streams: bool) -> Rows:
        rows = self._prepared.start(self._parameters, streams)
        if streams:
            self._database._keep(rows)
        return rows

    # One row after another

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return iter(self._start(streams=True))

    def __next__(self) -> Dict[str, Any]:
        if self._iterator is None:
            self._iterator = iter(self)
        return next(self._iterator)

    def fetchone(self) -> Optional[Dict[str, Any]]:
        """The next row; None after the last one."""
        return next(self, None)

    def fetchmany(self, size: int = 1000) -> List[Dict[str, Any]]:
        """The next rows, at most ``size``; none after the last one."""
        found: List[Dict[str, Any]] = []
        for _ in range(size):
            row = self.fetchone()
            if row is None:
                break
            found.append(row)
        return found

    def fetchall(self) -> List[Dict[str, Any]]:
        """All rows, or those that haven't been fetched yet."""
        if self._iterator is not None:
            return list(self._iterator)
        rows = self._start(streams=False)
        found: List[Dict[str, Any]] = []
        try:
            while True:
                piece = rows.piece()
                if not piece:
                    return found
                found += piece
        finally:
            rows.close()

    def explain(self) -> str:
        """How the query is run: its plan, with indexes and estimates."""
        plan = Prepared(self._database, "EXPLAIN " + self._text, {})
        rows = plan.start(self._parameters, streams=False)
        return "\n".join(row["plan"] for row in rows)

    def close(self) -> None:
        """Ends an iteration that was begun with ``fetchone`` or ``fetchmany``, and closes its snapshot."""
        if self._iterator is not None:
            self._iterator.close()  # type: ignore[attr-defined]

    # All rows in columns

    def df(self) -> "pandas.DataFrame":
        """All rows as a data frame of pandas.

        Integers are ``int64``, or ``Int64`` where rows lack a value; numbers ``float64``; booleans ``bool`` or ``boolean``;
        text, arrays and objects are Python's own.
        """
        import pandas

        rows = self._start(streams=False)
        try:
            count = rows.count()
            names = self.columns
            frame = {
                number: _series(pandas, rows.column(number)) for number in range(len(names))
            }
            result = pandas.DataFrame(frame, index=pandas.RangeIndex(count), copy=False)
            result.columns = names
            return result
        finally:
            rows.close()

    def arrow(self) -> "pyarrow.Table":
        """All rows as a table of pyarrow, whose buffers are the library's memory. Arrays, objects and mixed columns are JSON
        text."""
        import pyarrow

        rows = self._start(streams=False)
        arrays = [_arrow(pyarrow, rows, rows.column(number)) for number in range(len(self.columns))]
        return pyarrow.Table.from_arrays(arrays, names=self.columns)

    def __repr__(self) -> str:
        return "<Result %s>" % ", ".join(self.columns)


def _text_parts(column: ColumnValue) -> Tuple[Any, bytes]:
    import numpy

    offsets = numpy.frombuffer(_memory(column.offsets, 8 * (column.count + 1)), dtype=numpy.int64)
    return offsets.tolist(), bytes(_memory(column.values, int(offsets[-1])))


def _texts(column: ColumnValue) -> List[str]:
    """The texts of a column; empty ones where there is no value."""
    offsets, utf8 = _text_parts(column)
    whole = utf8.decode("utf-8")
    if len(whole) == len(utf8):
        # Offsets in bytes are offsets in characters.
        return [whole[a:b] for a, b in zip(offsets, offsets[1:])]
    return [utf8[a:b].decode("utf-8") for a, b in zip(offsets, offsets[1:])]


def _validity(column: ColumnValue) -> Any:
    """True for each row that has a value; None if all have one."""
    import numpy

    if not column.validity:
        return None
    return _bits(numpy, column.validity, column.count)


def _bits(numpy: Any, address: int, count: int) -> Any:
    bytes_ = numpy.frombuffer(_memory(address, (count + 7) // 8), dtype=numpy.uint8)
    return numpy.unpackbits(bytes_, count=count, bitorder="little").view(bool)


def _series(pandas: Any, column: ColumnValue) -> Any:
    import numpy

    count = column.count
    valid = _validity(column)
    if column.type in (INT64, DOUBLE):
        dtype = numpy.int64 if column.type == INT64 else numpy.float64
        numbers = numpy.frombuffer(_memory(column.values, 8 * count), dtype=dtype, count=count).copy()
        if valid is None:
            return numbers
        if column.type == DOUBLE:
            numbers[~valid] = numpy.nan
            return numbers
        return pandas.arrays.IntegerArray(numbers, ~valid)
    if column.type == BOOL:
        flags = _bits(numpy, column.values, count).copy()
        return flags if valid is None else pandas.arrays.BooleanArray(flags, ~valid)
    objects = numpy.empty(count, dtype=object)
    if column.type == TEXT:
        objects[:] = _texts(column)
    elif column.type == JSON:
        offsets, utf8 = _text_parts(column)
        values = [utf8[a:b] if a < b else b"null" for a, b in zip(offsets, offsets[1:])]
        parsed = json.loads(b"[" + b",".join(values) + b"]")
        for number, value in enumerate(parsed):
            objects[number] = value
    if valid is not None:
        objects[~valid] = None
    return objects


def _arrow(pyarrow: Any, rows: Rows, column: ColumnValue) -> Any:
    count = column.count

    def buffer(address: Optional[int], size: int) -> Any:
        # The rows live as long as the buffer.
        return pyarrow.foreign_buffer(address, size, rows) if address else pyarrow.py_buffer(b"")

    bitmap = (count + 7) // 8
    validity = buffer(column.validity, bitmap) if column.validity else None
    if column.type == NULL:
        return pyarrow.nulls(count)
    if column.type in (INT64, DOUBLE):
        type_ = pyarrow.int64() if column.type == INT64 else pyarrow.float64()
        buffers = [validity, buffer(column.values, 8 * count)]
    elif column.type == BOOL:
        type_, buffers = pyarrow.bool_(), [validity, buffer(column.values, bitmap)]
    else:
        type_ = pyarrow.large_string()
        size = ctypes.c_int64.from_address(column.offsets + 8 * count).value
        buffers = [validity, buffer(column.offsets, 8 * (count + 1)), buffer(column.values, size)]
    return pyarrow.Array.from_buffers(type_, count, buffers, null_count=column.null_count)
