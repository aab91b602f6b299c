"""Replication with other databases, and a listener for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Union

from . import _observing
from ._documents import decode, encode
from ._handles import Handle
from ._library import call, encoded, handle, lib, text

if TYPE_CHECKING:
    from ._database import Database


class Replicator:
    """Replicates a database with another one.

    Options are those of ``touchstone_replicator_new`` in touchstone.h: ``direction``, ``continuous``, ``documentIDs``, ``user``,
    ``password``, …

    >>> import touchstone
    >>> here, there = touchstone.open(in_memory=True), touchstone.open(in_memory=True)
    >>> here["a"] = {"n": 1}
    >>> here.replicate(there, direction="push").wait()
    True
    >>> there["a"]
    {'n': 1}
    """

    def __init__(self, database: "Database", target: Union[str, "Database"], **options: Any) -> None:
        other: Optional[int] = None
        if isinstance(target, str):
            options["url"] = target
        else:
            other = target._open_handle()
        # Both stay open while it runs.
        self._databases = (database, target)
        given = encode(options)
        pointer = handle("touchstone_replicator_new", database._open_handle(), other, given, len(given))
        self._handle = Handle(
            self, pointer, lib.touchstone_replicator_free, "the replicator was closed, or its database"
        )
        self._observers: List[_observing.Observer] = []
        database._keep(self)

    def start(self) -> None:
        """Starts it, if it doesn't run."""
        with self._handle as pointer:
            call("touchstone_replicator_start", pointer)

    def stop(self) -> None:
        """Stops it. What has begun to be stored is stored. Returns at once; :meth:`wait` waits."""
        with self._handle as pointer:
            call("touchstone_replicator_stop", pointer)

    def wait(self, seconds: Optional[float] = None) -> bool:
        """Waits until it has stopped; False if that took longer."""
        with self._handle as pointer:
            return call("touchstone_replicator_wait", pointer, -1.0 if seconds is None else seconds) == 1

    @property
    def status(self) -> Dict[str, Any]:
        """``activity``, ``completed``, ``total``, ``sent``, ``received`` (bytes), and ``error`` or None."""
        with self._handle as pointer:
            return decode(text("touchstone_replicator_status", pointer).decode("utf-8"))  # type: ignore[no-any-return]

    def observe(self, function: Callable[[Dict[str, Any]], Any]) -> _observing.Observer:
        """Calls a function on a thread of the library with each new status, and with ``{"documents": […]}``."""
        with self._handle as pointer:
            observer = _observing.observe_text(
                lambda callback: handle("touchstone_replicator_observe", pointer, callback, None), function
            )
        self._observers.append(observer)
        return observer

    def close(self) -> None:
        """Stops it, and ends its observers."""
        for observer in self._observers:
            observer.close()
        if not self._handle.is_closed:
            self.stop()
            self.wait(10)
            self._handle.close()

    def __enter__(self) -> "Replicator":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Listener:
    """Lets other devices replicate with databases. A context manager that starts and stops it.

    Options are those of ``touchstone_listener_new`` in touchstone.h: ``address``, ``port``, ``http``, ``users``, …

    >>> import touchstone
    >>> here, there = touchstone.open(in_memory=True), touchstone.open(in_memory=True)
    >>> here["a"] = {"n": 1}
    >>> with touchstone.Listener({"here": here}) as listener:
    ...     there.replicate(listener.urls[0], direction="pull").wait()
    True
    >>> there["a"]
    {'n': 1}
    """

    def __init__(self, databases: Dict[str, "Database"], **options: Any) -> None:
        given = encode(options)
        made = handle("touchstone_listener_new", given, len(given))
        self._handle = Handle(self, made, lib.touchstone_listener_free, "the listener was freed")
        # They stay open while it runs.
        self._databases = dict(databases)
        for name, database in databases.items():
            key = encoded(name)
            call("touchstone_listener_add", made, key, len(key), database._open_handle())
            database._keep(self)

    def start(self) -> None:
        """Begins to listen."""
        with self._handle as pointer:
            call("touchstone_listener_start", pointer)

    def stop(self) -> None:
        """Stops, and returns when its connections have ended."""
        with self._handle as pointer:
            call("touchstone_listener_stop", pointer)

    def _describe(self) -> Dict[str, Any]:
        with self._handle as pointer:
            return decode(text("touchstone_listener_describe", pointer).decode("utf-8")) or {}

    @property
    def port(self) -> Optional[int]:
        """The port; None if it doesn't run."""
        return self._describe().get("port")

    @property
    def urls(self) -> List[str]:
        """The URLs of its databases, for :meth:`Database.replicate`."""
        return self._describe().get("urls", [])  # type: ignore[no-any-return]

    @property
    def http_url(self) -> Optional[str]:
        """The URL for clients of CouchDB, if it answers them."""
        return self._describe().get("httpURL")

    @property
    def fingerprint(self) -> Optional[str]:
        """The SHA-256 of its certificate, with TLS."""
        return self._describe().get("fingerprint")

    def close(self) -> None:
        """Stops it."""
        self.stop()

    def __enter__(self) -> "Listener":
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
