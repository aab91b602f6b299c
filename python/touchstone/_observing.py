"""Observers, and what asyncio makes of them."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Deque, Dict, List, Mapping, Optional, TypeVar

from ._documents import Change, decode, encode
from ._errors import Error
from ._library import RowsCallback, TextCallback, encoded, exception, handle, lib
from ._results import Prepared, Rows

if TYPE_CHECKING:
    from ._database import Database

Item = TypeVar("Item")

# What ctypes needs until the observer is freed: its own callbacks, and those of running callbacks that ended it.
_alive: Dict[int, "Observer"] = {}
# Reentrant, because a signal's handler or a finalizer may come in the middle.
_lock = threading.RLock()


class Observer:
    """Calls a function on a thread of the library until it is closed. A context manager.

    After :meth:`close` no call begins. One that runs on another thread has ended.
    """

    def __init__(self, start: Callable[[Any], int], callback: Any) -> None:
        # The object that C calls. It must stay while C may call it.
        self._callback = callback
        self._handle: Optional[int] = start(callback)
        with _lock:
            _alive[id(self)] = self

    def close(self) -> None:
        """Ends the calls."""
        with _lock:
            pointer, self._handle = self._handle, None
        if pointer is not None:
            lib.touchstone_observer_free(pointer)
            with _lock:
                _alive.pop(id(self), None)

    def __enter__(self) -> "Observer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def forget_locks() -> None:
    """After a fork: locks that threads of the parent hold are never released here."""
    global _lock
    _lock = threading.RLock()


def close_all() -> None:
    """Ends all observers, before the interpreter ends."""
    with _lock:
        observers = list(_alive.values())
    for observer in observers:
        observer.close()


def _guarded(function: Callable[..., Any], *arguments: Any) -> None:
    """Calls a function of the user. What it raises is reported as Python does for threads."""
    try:
        function(*arguments)
    except BaseException:
        sys.excepthook(*sys.exc_info())


def change(value: Mapping[str, Any]) -> Change:
    return Change(
        id=value["id"],
        sequence=value["sequence"],
        is_deleted=value["deleted"],
        is_conflicted=value["conflicted"],
        is_from_sync=value["fromSync"],
        kind=value.get("kind", "saved"),
        revision=value.get("revision"),
    )


def observe_text(start: Callable[[Any], int], function: Callable[[Dict[str, Any]], Any]) -> Observer:
    """An observer whose callback gets JSON."""

    def called(_: Any, address: int, length: int) -> None:
        _guarded(lambda: function(decode(ctypes.string_at(address, length).decode("utf-8"))))

    return Observer(start, TextCallback(called))


def observe(database: "Database", function: Callable[[List[Change]], Any], id: Optional[str]) -> Observer:
    pointer = database._open_handle()
    name = None if id is None else encoded(id)

    def start(callback: Any) -> int:
        return handle("touchstone_observe", pointer, name, len(name or b""), callback, None)

    observer = observe_text(start, lambda value: function([change(item) for item in value["changes"]]))
    database._keep(observer)
    return observer


def observe_query(
    database: "Database",
    prepared: Prepared,
    parameters: Mapping[str, Any],
    function: Callable[[Optional[List[Dict[str, Any]]], Optional[Error]], Any],
) -> Observer:
    given = encode(parameters) if parameters else b""

    def called(_: Any, rows: int, error: Any) -> None:
        def deliver() -> None:
            if rows:
                function(list(Rows(rows)), None)
            else:
                function(None, exception(error.contents))

        _guarded(deliver)

    def start(callback: Any) -> int:
        return handle(
            "touchstone_observe_query", prepared._handle, given, len(given), callback, None
        )

    observer = Observer(start, RowsCallback(called))
    # The query lives as long as its observer.
    observer.prepared = prepared  # type: ignore[attr-defined]
    database._keep(observer)
    return observer


class Stream(AsyncIterator[Item]):
    """What an observer tells, for ``async for``. It ends when it is closed, with the database at the latest.

    Use it in one loop only. Leaving the loop early doesn't end it: use ``async with``, or call ``close()``.
    """

    def __init__(self, start: Callable[["Stream[Item]"], Observer], keeps_latest: bool = False) -> None:
        # Not at the top: it takes as long to import as the rest.
        import asyncio

        self._loop = asyncio.get_running_loop()
        self._queue: Deque[Any] = deque()
        self._arrived = asyncio.Event()
        self._is_closed = False
        self._keeps_latest = keeps_latest
        self._observer = start(self)

    def put(self, item: Any) -> None:
        """Hands over an item, on any thread."""
        try:
            self._loop.call_soon_threadsafe(self._put, item)
        except RuntimeError:
            pass  # the loop is closed

    def _put(self, item: Any) -> None:
        if self._keeps_latest:
            self._queue.clear()
        self._queue.append(item)
        self._arrived.set()

    def __aiter__(self) -> "Stream[Item]":
        return self

    async def __anext__(self) -> Item:
        while not self._queue:
            if self._is_closed:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        item = self._queue.popleft()
        if isinstance(item, Exception):
            self.close()
            raise item
        return item  # type: ignore[no-any-return]

    def close(self) -> None:
        """Ends it. May be called on any thread."""
        self._observer.close()
        try:
            self._loop.call_soon_threadsafe(self._end)
        except RuntimeError:
            pass

    def _end(self) -> None:
        self._is_closed = True
        self._arrived.set()

    async def __aenter__(self) -> "Stream[Item]":
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()
