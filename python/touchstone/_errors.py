"""Exceptions by kind. Each tells what was tried, what was found and what to do."""

from __future__ import annotations

from typing import Dict, Optional, Type


class Error(Exception):
    """What all errors of the library have in common.

    Attributes:
        kind: the number of the kind: that of HTTP where there is one.
        code: the finer name, such as ``"DocumentError.conflict"``.
        message: what happened, for people.
        can_retry: whether the same call may succeed later although nothing is changed.
        path: the file or directory concerned.
        document: the ID of the document concerned.
        offset: the place in a query or in JSON, in bytes from 0.
        line, column: the place in a query, from 1.

    >>> import touchstone
    >>> db = touchstone.open(in_memory=True)
    >>> try:
    ...     db.query("SELECT name FORM _").fetchall()
    ... except touchstone.Error as error:
    ...     print(type(error).__name__, error.line, error.column)
    BadRequestError 1 18
    """

    kind = 590

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        can_retry: bool = False,
        path: Optional[str] = None,
        document: Optional[str] = None,
        offset: Optional[int] = None,
        line: Optional[int] = None,
        column: Optional[int] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.can_retry = can_retry
        self.path = path
        self.document = document
        self.offset = offset
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return self.message


class BadRequestError(Error, ValueError):
    """An argument, a body, a name or a query is wrong. The same call fails again."""

    kind = 400


class UnauthorizedError(Error):
    """The key is wrong, or a key is needed."""

    kind = 401


class ForbiddenError(Error, PermissionError):
    """The database is open for reading only, the system denies access, or a validation function rejects the change."""

    kind = 403


class NotFoundError(Error, KeyError):
    """There is no such database, document, revision, blob or index."""

    kind = 404


class TimeLimitError(Error, TimeoutError):
    """The operation took longer than its time limit."""

    kind = 408


class ConflictError(Error):
    """Another writer has changed the document."""

    kind = 409


class DuplicateError(Error, FileExistsError):
    """A file or database with this name exists already."""

    kind = 412


class TooLargeError(Error):
    """A value, a result or a transaction is above a limit."""

    kind = 413


class CancelledError(Error):
    """The operation was cancelled."""

    kind = 499


class CorruptError(Error):
    """Stored data can't be read."""

    kind = 500


class UnsupportedError(Error):
    """This release, this engine or this database can't do it."""

    kind = 501


class BusyError(Error):
    """Another writer, reader or process is in the way."""

    kind = 503


class DiskFullError(Error, OSError):
    """The disk or the file is full."""

    kind = 507


class IOFailure(Error, OSError):
    """The operating system or a library failed."""

    kind = 590


class MisuseError(Error, RuntimeError):
    """The database is closed, or a call was made where it can't be: a mistake in the program."""

    kind = 591


KINDS: Dict[int, Type[Error]] = {
    kind.kind: kind
    for kind in (
        BadRequestError,
        UnauthorizedError,
        ForbiddenError,
        NotFoundError,
        TimeLimitError,
        ConflictError,
        DuplicateError,
        TooLargeError,
        CancelledError,
        CorruptError,
        UnsupportedError,
        BusyError,
        DiskFullError,
        IOFailure,
        MisuseError,
    )
}
