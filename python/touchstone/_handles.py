"""Handles of the library that one thread may close while others use them."""

from __future__ import annotations

import threading
import weakref
from typing import Any, Callable

from ._errors import MisuseError


class Process:
    """What is known of this process.

    After a fork in a process with databases, nothing calls the library, which would refuse that, and nothing waits for a lock:
    those of other threads are never released there.
    """

    is_forked = False

    @staticmethod
    def refusal() -> MisuseError:
        """What a call in a forked process raises."""
        return MisuseError(
            "the process was forked while it had databases open, so it can't use the library: open databases after the fork,"
            ' or start the process anew (multiprocessing\'s "spawn")',
            code="Misuse.forked",
        )


class Handle:
    """A handle of the library. It is freed when it is closed and no call uses it any more, or with its owner.

    ``with handle as pointer:`` around each call. After :meth:`close` that raises :class:`MisuseError`.
    """

    def __init__(self, owner: Any, pointer: int, free: Callable[[int], None], closed: str) -> None:
        self._pointer = pointer
        self._closed = closed
        # Reentrant, because the collector may close something in the middle.
        self._lock = threading.RLock()
        self._users = 0
        #: Whether it was closed.
        self.is_closed = False
        self._free = weakref.finalize(owner, free, pointer)
        self._free.atexit = False

    def __enter__(self) -> int:
        if Process.is_forked:
            raise Process.refusal()
        with self._lock:
            if self.is_closed:
                raise self.error()
            self._users += 1
        return self._pointer

    def __exit__(self, *_: Any) -> None:
        if Process.is_forked:
            return
        with self._lock:
            self._users -= 1
            self._settle()

    def close(self) -> None:
        """Frees it, at once or when the calls that use it have ended."""
        if Process.is_forked:
            self.is_closed = True
            return
        with self._lock:
            self.is_closed = True
            self._settle()

    def _settle(self) -> None:
        if self.is_closed and self._users == 0:
            self._free()

    def error(self) -> MisuseError:
        """What using it after its end raises."""
        return MisuseError(self._closed, code="closed")
