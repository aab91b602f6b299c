"""Documents, revisions, and their JSON."""

from __future__ import annotations

import datetime
import json
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

#: The flags of a revision.
DELETED, CONFLICTED = 1, 2

_decoder = json.JSONDecoder()
decode = _decoder.decode
#: Reads JSON at an offset, and returns it with the offset of its end. It is what `decode` calls.
scan: Callable[[str, int], Tuple[Any, int]] = _decoder.scan_once  # type: ignore[attr-defined]


def _default(value: Any) -> Any:
    """What values are that JSON doesn't have."""
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if hasattr(value, "__json__"):
        return value.__json__()
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return value.item()  # numbers of numpy
    raise TypeError("a document can't hold a %s" % type(value).__name__)


_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default
).encode


def encode(value: Any) -> bytes:
    """The JSON of a value. Dates become text in ISO 8601; NaN and infinity are errors."""
    return _encode(value).encode("utf-8", "surrogatepass")


class Document(Dict[str, Any]):
    """A document that was read: a dict of its properties, with its ID and revision.

    Change it and hand it to :meth:`Database.save`, which then knows what the change is based on.

    >>> import touchstone
    >>> db = touchstone.open(in_memory=True)
    >>> _ = db.save("hotel_1", {"name": "Apple Droid"})
    >>> hotel = db["hotel_1"]
    >>> hotel.id, hotel["name"], hotel.revision[:2]
    ('hotel_1', 'Apple Droid', '1-')
    """

    __slots__ = ("id", "_raw")

    id: str
    _raw: bytes

    def __init__(self, body: Any = (), id: str = "", raw: bytes = b"\0" * 16) -> None:
        super().__init__(body)
        self.id = id
        self._raw = raw

    @property
    def sequence(self) -> int:
        """The sequence of the change that made the revision; 0 for a new document."""
        return int.from_bytes(self._raw[:8], "little")

    @property
    def revision(self) -> Optional[str]:
        """The ID of the revision that was read; None for a new document."""
        return self._raw[16:].decode("ascii") or None

    @property
    def is_deleted(self) -> bool:
        """Whether it is a tombstone."""
        return self._raw[8] & DELETED != 0

    @property
    def is_conflicted(self) -> bool:
        """Whether the document has more than one live leaf (:meth:`Database.conflicts`)."""
        return self._raw[8] & CONFLICTED != 0


class Saved(NamedTuple):
    """What a save made.

    Attributes:
        id: the document.
        revision: the ID of its new revision.
        sequence: the sequence of the change.
    """

    id: str
    revision: str
    sequence: int


class Revision(NamedTuple):
    """One revision of a document.

    Attributes:
        id: its ID, such as ``"2-448bebaeae6f31e1…"``.
        parent: the ID of its parent; None for a root, and where older ones were pruned.
        sequence: of the change that added it.
        is_deleted: whether it is a tombstone.
        is_leaf: whether it is the last of its branch.
        is_current: whether it is the document's current revision.
        has_body: whether its body is still kept.
        body: the body, if it was asked for and is kept.
    """

    id: str
    parent: Optional[str]
    sequence: int
    is_deleted: bool
    is_leaf: bool
    is_current: bool
    has_body: bool
    body: Optional[Dict[str, Any]] = None

    @property
    def generation(self) -> int:
        """The number of revisions up to this one."""
        return int(self.id.split("-", 1)[0])


class RevisionTree:
    """The known revisions of a document.

    >>> import touchstone
    >>> db = touchstone.open(in_memory=True)
    >>> first = db.save("note", {"text": "a"})
    >>> for text in "bc":
    ...     _ = db.save("note", {"text": text}, base=first.revision, on_conflict="branch")
    >>> tree = db.revisions("note", bodies=True)
    >>> tree.is_conflicted, sorted(leaf.body["text"] for leaf in tree.leaves)
    (True, ['b', 'c'])
    >>> [revision.id[:1] for revision in tree.path(tree.current.id)]
    ['2', '1']
    """

    def __init__(self, id: str, revisions: List[Revision]) -> None:
        self.id = id
        self.revisions = revisions
        self._by_id = {revision.id: revision for revision in revisions}

    @property
    def current(self) -> Revision:
        """The current revision, which wins over the other leaves."""
        return self.revisions[0]

    @property
    def leaves(self) -> List[Revision]:
        """The leaves, live ones and tombstones, the current one first."""
        return [revision for revision in self.revisions if revision.is_leaf]

    @property
    def conflicts(self) -> List[Revision]:
        """The live leaves if there is more than one; otherwise none."""
        live = [revision for revision in self.leaves if not revision.is_deleted]
        return live if len(live) > 1 else []

    @property
    def is_conflicted(self) -> bool:
        """Whether more than one leaf is live."""
        return bool(self.conflicts)

    def path(self, id: str) -> List[Revision]:
        """The revision with this ID and its known ancestors, the newest first."""
        found: List[Revision] = []
        next_: Optional[str] = id
        while next_ is not None and next_ in self._by_id:
            found.append(self._by_id[next_])
            next_ = found[-1].parent
        return found

    def __getitem__(self, id: str) -> Revision:
        return self._by_id[id]

    def __iter__(self) -> Any:
        return iter(self.revisions)

    def __len__(self) -> int:
        return len(self.revisions)

    def __repr__(self) -> str:
        return "<RevisionTree %s: %d revisions, %d leaves>" % (self.id, len(self), len(self.leaves))


class Change(NamedTuple):
    """A change of a document.

    Attributes:
        id: the document.
        sequence: of the change; 0 for a purge.
        is_deleted, is_conflicted: what the document is afterwards.
        is_from_sync: whether it came from another database.
        kind: ``"saved"``, ``"purged"`` or ``"expired"``.
        revision: the ID of the current revision, if it is told.
    """

    id: str
    sequence: int
    is_deleted: bool = False
    is_conflicted: bool = False
    is_from_sync: bool = False
    kind: str = "saved"
    revision: Optional[str] = None
