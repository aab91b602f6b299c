"""What a program with types writes. mypy reads it (test_types.py); it isn't run."""

import asyncio
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple, Union

import touchstone
from touchstone import bench, results

if TYPE_CHECKING:
    import pandas
    from typing_extensions import assert_type


def documents(db: touchstone.Database) -> None:
    db["a"] = {"n": 1}
    assert_type(db["a"], touchstone.Document)
    assert_type(db.get("a"), Optional[touchstone.Document])
    assert_type(db.get("a", 7), Union[touchstone.Document, int])
    assert_type(db.get_json("a"), Optional[bytes])
    assert_type(db.pop("a"), touchstone.Document)
    assert_type(db.items(), Iterator[Tuple[str, touchstone.Document]])
    assert_type(db.save("a", {"n": 2}), touchstone.Saved)
    assert_type(db.save(db["a"], on_conflict="fail").revision, str)
    assert_type(db.save_many({"b": {"n": 1}, "c": b"{}"}), int)
    assert_type([leaf.body for leaf in db.conflicts("a")], List[Optional[Dict[str, Any]]])
    assert_type(db.revisions("a").current.parent, Optional[str])
    for change in db.changes(since=1):
        assert_type(change.is_deleted, bool)
    with db.batch() as batch:
        assert_type(batch, touchstone.Database)


def queries(db: touchstone.Database) -> None:
    result = db.query("SELECT name FROM _ WHERE n = $n", n=1)
    assert_type(result.fetchall(), List[Dict[str, Any]])
    assert_type(result.fetchone(), Optional[Dict[str, Any]])
    frame: "pandas.DataFrame" = result.df()
    assert_type(frame.shape, Tuple[int, int])
    assert_type(db.query("SELECT 1", options={"timeLimit": 5}).explain(), str)


async def streams(db: touchstone.Database) -> None:
    async with db.watch() as changes:
        async for change in changes:
            assert_type(change, touchstone.Change)
    async with db.live("SELECT name FROM _") as rows:
        async for found in rows:
            assert_type(found, List[Dict[str, Any]])


def others(db: touchstone.Database) -> None:
    with db.open_blob(db.blob(b"x", "image/png")) as file:
        assert_type(len(file), int)
    assert_type(touchstone.backup(db.path, "monday")["missingBlobs"], Any)
    assert_type(db.replicate("wss://example.com/db").wait(5), bool)
    try:
        touchstone.open("x", engine="lmdb", key=bytes(32))
    except touchstone.NotFoundError as error:
        assert_type(error.path, Optional[str])
    frame: "pandas.DataFrame" = bench.run(engines=["lmdb"])
    frame = results.load("results/*.json")
    del frame


def main() -> None:
    with touchstone.open(in_memory=True) as db:
        asyncio.run(streams(db))
