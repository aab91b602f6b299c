"""Blobs: files inside the database that documents refer to."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, BinaryIO, Dict, Optional, Union

from ._documents import decode, encode
from ._handles import Handle
from ._library import call, encoded, handle, lib, text

if TYPE_CHECKING:
    from ._database import Database

#: How many bytes of a blob a call takes.
PIECE = 1 << 16


class Blob:
    """What a document has of a blob: put it into a document and save that.

    >>> import touchstone
    >>> db = touchstone.open(in_memory=True)
    >>> photo = db.blob(b"not really a photo", "image/jpeg")
    >>> _ = db.save("hotel_1", {"name": "Apple Droid", "photo": photo})
    >>> with db.open_blob(db["hotel_1"]["photo"]) as file:
    ...     file.read(10)
    b'not really'
    """

    def __init__(self, reference: Dict[str, Any]) -> None:
        self._reference = reference

    @property
    def digest(self) -> str:
        """The SHA-1 of its bytes: ``"sha1-…"``."""
        return self._reference["digest"]  # type: ignore[no-any-return]

    @property
    def length(self) -> int:
        """Its length in bytes."""
        return self._reference["length"]  # type: ignore[no-any-return]

    @property
    def content_type(self) -> Optional[str]:
        """Its media type, if it has one."""
        return self._reference.get("content_type")

    def __json__(self) -> Dict[str, Any]:
        return self._reference

    def __repr__(self) -> str:
        return "<Blob %s, %d bytes>" % (self.digest, self.length)


def store(database: "Database", content: Union[bytes, bytearray, memoryview, BinaryIO], content_type: str) -> Blob:
    """Stores the bytes of a blob, or those of a file that is read to its end."""
    writer = handle("touchstone_blob_writer_new", database._open_handle())
    try:
        if isinstance(content, (bytes, bytearray, memoryview)):
            content = io.BytesIO(content)
        while True:
            piece = content.read(PIECE)
            if not piece:
                break
            piece = bytes(piece)
            call("touchstone_blob_write", writer, piece, len(piece))
        kind = encoded(content_type)
        return Blob(decode(text("touchstone_blob_finish", writer, kind, len(kind)).decode()))
    finally:
        lib.touchstone_blob_writer_free(writer)


class BlobFile(io.RawIOBase):
    """The bytes of a blob as a file, which can be read and sought, in constant memory."""

    def __init__(self, database: "Database", reference: Any) -> None:
        super().__init__()
        # `close` is called also for an object that wasn't made, since there is no such blob.
        self._handle: Optional[Handle] = None
        if isinstance(reference, str):
            name = encoded(reference)
        else:
            name = encode(reference)
        pointer = handle("touchstone_blob_open", database._open_handle(), name, len(name))
        self._handle = Handle(self, pointer, lib.touchstone_blob_free, "the blob was closed, or its database")
        self._length: int = lib.touchstone_blob_length(pointer)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        import ctypes

        open_handle = self._check()
        view = memoryview(buffer).cast("B")
        place = (ctypes.c_char * len(view)).from_buffer(view)
        with open_handle as pointer:
            count = call("touchstone_blob_read", pointer, place, len(view))
        self._position += count
        return count

    def readall(self) -> bytes:
        # Without this, the bytes would come in many small pieces.
        content = bytearray(max(self._length - self._position, 0))
        view, count = memoryview(content), 0
        while count < len(content):
            got = self.readinto(view[count:])
            if got == 0:
                break
            count += got
        return bytes(view[:count])

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        open_handle = self._check()
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._length}[whence]
        # As in any file, one can be behind the end; there is nothing to read there.
        position = min(max(start + offset, 0), self._length)
        with open_handle as pointer:
            call("touchstone_blob_seek", pointer, position)
        self._position = position
        return position

    def tell(self) -> int:
        return self._position

    def __len__(self) -> int:
        return self._length

    def _check(self) -> Handle:
        if self.closed or self._handle is None:
            raise ValueError("I/O operation on a closed blob")
        return self._handle

    def close(self) -> None:
        if self._handle is not None:
            self._handle.close()
        super().close()
