import array
import asyncio
import io
import json
import os
import subprocess
import sys
import threading

import pytest

import touchstone

from conftest import KEYS


def test_blobs_are_files(db):
    content = bytes(range(256)) * 2000
    blob = db.blob(io.BytesIO(content), "image/png")
    assert blob.length == len(content) and blob.content_type == "image/png"
    db["a"] = {"photo": blob}
    assert db["a"]["photo"]["@type"] == "blob"
    with db.open_blob(db["a"]["photo"]) as file:
        assert file.read() == content
        assert file.seek(-3, io.SEEK_END) == len(content) - 3
        assert file.read(2) == content[-3:-1]
        assert file.tell() == len(content) - 1
        assert len(file) == len(content)
    with io.BufferedReader(db.open_blob(blob.digest)) as file:
        assert file.read(5) == content[:5]
    empty = db.blob(b"")
    db["b"] = {"empty": empty}
    assert db.open_blob(empty).read() == b""
    with pytest.raises(touchstone.NotFoundError):
        db.open_blob("sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=")
    with pytest.raises(touchstone.BadRequestError):
        db.open_blob("nothing")


def test_a_blob_s_file_reads_into_buffers_of_any_kind(db):
    content = bytes(range(256)) * 1000
    file = db.open_blob(db.blob(content))
    buffer = bytearray(1000)
    assert file.readinto(buffer) == 1000 and buffer == content[:1000]
    assert file.readinto(memoryview(buffer)[500:]) == 500 and buffer[500:] == content[1000:1500]
    numbers = array.array("I", [0] * 100)
    assert file.readinto(numbers) == numbers.itemsize * 100
    assert numbers.tobytes() == content[1500 : 1500 + len(numbers.tobytes())]
    with pytest.raises(TypeError):
        file.readinto(bytes(10))
    assert file.readinto(bytearray()) == 0
    file.seek(200_000)
    assert file.read() == content[200_000:] and file.read() == b"" and file.readall() == b""
    file.seek(-2, io.SEEK_END)
    assert file.readinto(buffer) == 2 and buffer[:2] == content[-2:]
    assert file.readinto(buffer) == 0
    file.close()
    with pytest.raises(ValueError):
        file.readinto(buffer)


def test_observers_hear_of_commits(db):
    heard, arrived = [], threading.Event()

    def hear(changes):
        heard.extend(changes)
        if len({change.id for change in heard}) == 2:
            arrived.set()

    with db.observe(hear):
        db["a"] = {"n": 1}
        db["b"] = {"n": 1}
        db.purge("b")
        assert arrived.wait(60)
    db["c"] = {}
    assert {change.id for change in heard} == {"a", "b"}
    one, got = threading.Event(), []
    with db.observe(lambda changes: (got.extend(changes), one.set()), id="a"):
        db["b"] = {}
        db["a"] = {"n": 2}
        assert one.wait(60)
    assert {change.id for change in got} == {"a"}
    assert got[-1].revision == db["a"].revision


def test_an_observer_may_end_itself(memory):
    done = threading.Event()

    def hear(changes):
        observer.close()
        done.set()

    observer = memory.observe(hear)
    memory["a"] = {}
    assert done.wait(60)


def test_live_queries_by_callback(memory):
    counts, arrived = [], threading.Event()

    def hear(rows, error):
        assert error is None
        counts.append(len(rows))
        if counts[-1] == 1:
            arrived.set()

    with memory.observe_query("SELECT n FROM _ WHERE n = $n", hear, n=1):
        memory["a"] = {"n": 1}
        assert arrived.wait(60)
    assert counts in ([0, 1], [1])


def test_asyncio_and_threads_at_once(db):
    async def work():
        async with db.watch() as changes, db.live("SELECT COUNT(*) AS n FROM _") as counts:
            threads = [
                threading.Thread(target=lambda part=part: [db.save("%d-%d" % (part, n), {}) for n in range(25)])
                for part in range(4)
            ]
            for thread in threads:
                thread.start()

            async def all_changes():
                seen = set()
                async for change in changes:
                    seen.add(change.id)
                    if len(seen) == 100:
                        return

            async def last_count():
                async for rows in counts:
                    if rows == [{"n": 100}]:
                        return

            await asyncio.wait_for(asyncio.gather(all_changes(), last_count()), 120)
            for thread in threads:
                thread.join()

    asyncio.run(work())


def test_a_stream_ends_with_its_database():
    async def work():
        db = touchstone.open(in_memory=True)
        changes = db.watch()
        db.close()
        return [change async for change in changes]

    assert asyncio.run(work()) == []


def run(program, **variables):
    return subprocess.run(
        [sys.executable, "-c", program],
        env=dict(os.environ, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
    )


def test_after_a_fork_calls_fail_with_misuse(tmp_path):
    done = run(
        """
import os, sys, warnings
warnings.simplefilter("ignore")
import touchstone
db = touchstone.open(sys.argv[1] if len(sys.argv) > 1 else %r, engine="lmdb")
db["a"] = {"n": 1}
child = os.fork()
if child == 0:
    try:
        db["a"]
    except touchstone.MisuseError as error:
        assert "fork" in str(error)
        try:
            touchstone.open(in_memory=True)
        except touchstone.MisuseError as error:
            if error.code == "Misuse.forked":
                os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7 if hasattr(os, "waitstatus_to_exitcode") else True
assert db["a"] == {"n": 1}
assert [row["n"] for row in db.query("SELECT n FROM _")] == [1]
db.close()
del db
child = os.fork()
if child == 0:
    # Nothing was open at the fork.
    with touchstone.open(in_memory=True) as other:
        other["a"] = {}
        # Streams need threads, and those of the parent aren't here.
        if [row["n"] for row in other.query("SELECT 1 AS n", options={"timeLimit": 60})] == [1]:
            os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
print("done")
"""
        % str(tmp_path / "forked")
    )
    assert done.stdout == "done\n", done.stderr


def test_forks_while_threads_work_leave_children_that_fail_and_don_t_hang(tmp_path):
    done = run(
        """
import os, threading, warnings
warnings.simplefilter("ignore")
import touchstone
db = touchstone.open(%r, engine="lmdb", durability="none")
db.save_many((str(n), {"n": n}) for n in range(200))
ends = threading.Event()
def work(number):
    while not ends.is_set():
        db.query("SELECT COUNT(*) FROM _ WHERE n > $x", x=number).fetchall()
        next(db.documents())
        with db.batch():
            db[str(number)] = {"n": number}
threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
def child():
    works = [lambda: db["1"], lambda: db.query("SELECT 1").fetchall(), lambda: next(db.documents()), db.batch().__enter__,
        lambda: db.save("x", {}), lambda: touchstone.open(in_memory=True), db.close]
    for work in works:
        try:
            work()
            return 1
        except touchstone.MisuseError as error:
            if "fork" not in str(error):
                return 2
    return 0
for _ in range(20):
    process = os.fork()
    if process == 0:
        status = 3
        try:
            status = child()
        finally:
            os._exit(status)
    assert os.waitpid(process, 0)[1] == 0
ends.set()
for thread in threads:
    thread.join()
assert len(db) == 200
db.close()
print("done")
"""
        % str(tmp_path / "forked")
    )
    assert done.stdout == "done\n", done.stderr


def test_the_interpreter_ends_with_everything_open(tmp_path):
    done = run(
        """
import touchstone
db = touchstone.open(%r, engine="sqlite")
observer = db.observe(lambda changes: None)
live = db.observe_query("SELECT COUNT(*) FROM _", lambda rows, error: None)
db.save_many((str(n), {"n": n}) for n in range(1000))
rows = iter(db.query("SELECT n FROM _"))
next(rows)
print("done")
"""
        % str(tmp_path / "left")
    )
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


def test_checked_handles_catch_use_after_free():
    done = run(
        """
import ctypes
from touchstone._library import lib, call, handle
import touchstone
db = handle("touchstone_open", b"", 0, b'{"inMemory": true}', 18)
lib.touchstone_database_free(db)
for wrong in (db, 4096):
    try:
        call("touchstone_count", wrong)
    except touchstone.MisuseError as error:
        print(error)
db = handle("touchstone_open", b"", 0, b'{"inMemory": true}', 18)
try:
    call("touchstone_query_run", db, None, 0, ctypes.byref(ctypes.c_void_p()))
except touchstone.MisuseError as error:
    print("another type" in str(error))
""",
        TOUCHSTONE_HANDLES="checked",
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3 and "was freed" in lines[0] and "is no handle" in lines[1] and lines[2] == "True", done


def test_a_backup_is_the_same_database(opening, engine, tmp_path):
    if engine == "memory":
        pytest.skip("a database in memory has no path")
    passphrase = KEYS.get(engine)
    phases = set()
    with opening() as db:
        db.save_many((str(n), {"n": n}) for n in range(200))
        first = db.save("c", {"n": 1})
        for n in (2, 3):
            db.save("c", {"n": n}, base=first.revision, on_conflict="branch")
        db["photo"] = {"photo": db.blob(b"not really a photo", "image/jpeg")}
        report = touchstone.backup(
            db.path, tmp_path / "backup", passphrase=passphrase, progress=lambda phase, done, total: phases.add(phase)
        )
        assert report == {"missingBlobs": 0, "documents": 0, "places": []}
        assert "copying" in phases
        with touchstone.open(tmp_path / "backup", create="never", passphrase=passphrase) as backup:
            assert backup.engine == engine
            assert backup.info()["publicUUID"] == db.info()["publicUUID"]
            assert backup.verify(db, sequences=True) == []
            assert backup.check(deep=True) == []
            assert len(backup.conflicts("c")) == 2
        with pytest.raises(touchstone.DuplicateError):
            touchstone.backup(db.path, tmp_path / "backup", passphrase=passphrase)

        def stop(phase, done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            touchstone.backup(db.path, tmp_path / "none", passphrase=passphrase, progress=stop)
        assert not (tmp_path / "none.touchstone").exists()
        if passphrase is not None:
            with pytest.raises(touchstone.UnauthorizedError):
                touchstone.backup(db.path, tmp_path / "none", passphrase="wrong")
        path = db.path
    with pytest.raises(touchstone.NotFoundError):
        touchstone.backup(tmp_path / "nothing", tmp_path / "none")
    for file in os.listdir(os.path.join(path, "Attachments")):
        os.remove(os.path.join(path, "Attachments", file))
    report = touchstone.backup(path, tmp_path / "second", passphrase=passphrase)
    assert (report["missingBlobs"], report["documents"], len(report["places"])) == (1, 1, 1)
    place = report["places"][0]
    assert (place["document"], place["path"], place["digest"][:5]) == ("photo", "/photo", "sha1-")
    assert touchstone.convert(path, "sqlite", target=str(tmp_path / "third"), passphrase=passphrase) == report


def test_conversion_keeps_everything(tmp_path):
    phases = set()
    with touchstone.open(tmp_path / "x", engine="sqlite") as db:
        db.save_many((str(n), {"n": n}) for n in range(200))
        db.create_index("byN", ["n"])
        first = db.save("c", {"n": 1})
        for n in (2, 3):
            db.save("c", {"n": n}, base=first.revision, on_conflict="branch")
    touchstone.convert(
        tmp_path / "x", "lmdb", target=str(tmp_path / "y"), progress=lambda phase, done, total: phases.add(phase)
    )
    assert "copying" in phases
    with touchstone.open(tmp_path / "x") as old, touchstone.open(tmp_path / "y") as new:
        assert new.engine == "lmdb"
        assert old.verify(new, sequences=True) == []
        new["0"] = {"n": -1}
        assert any("0" in difference for difference in old.verify(new))
        assert new.check(deep=True) == []
        new.compact()

    def stop(phase, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        touchstone.convert(tmp_path / "x", "lmdb", progress=stop)
    with touchstone.open(tmp_path / "x", create="never") as db:
        assert db.engine == "sqlite"


def test_replication_over_a_listener(tmp_path):
    with touchstone.open(in_memory=True) as here, touchstone.open(tmp_path / "there") as there:
        here.save_many((str(n), {"n": n}) for n in range(50))
        with touchstone.Listener({"here": here}, users={"ada": "pw"}) as listener:
            statuses = []
            replicator = touchstone.Replicator(there, listener.urls[0], direction="pull", user="ada", password="pw")
            with replicator, replicator.observe(statuses.append):
                replicator.start()
                assert replicator.wait(60)
                assert replicator.status["error"] is None and replicator.status["received"] > 0
            refused = there.replicate(listener.urls[0], direction="pull", user="ada", password="no")
            assert refused.wait(60) and refused.status["error"]["code"] == 401
        assert len(there) == 50
        assert there.verify(here, only_current=True) == []
        with pytest.raises(touchstone.BadRequestError):
            there.replicate("ftp://x/y")


def test_an_upgrade_of_nothing_says_what_is_missing(tmp_path):
    with pytest.raises(touchstone.NotFoundError) as caught:
        touchstone.upgrade(tmp_path / "none.cblite2", tmp_path / "new")
    assert "none.cblite2" in caught.value.path


def test_results_files_become_data_frames(tmp_path):
    pytest.importorskip("pandas")
    from touchstone import results

    value = {
        "schema": 1,
        "engines": {"lmdb": {"library": "LMDB 0.9.24"}},
        "results": [
            {
                "suite": "travel",
                "workload": "load",
                "engine": "lmdb",
                "operations": 10,
                "parameters": {"threads": 2},
                "metrics": {"seconds": {"median": 0.5, "samples": [0.5], "ci95": [0.4, 0.6]}},
                "limit": {"name": "C", "normalized": 1.5},
            }
        ],
    }
    (tmp_path / "a.json").write_text(json.dumps(value))
    frame = results.load(str(tmp_path / "*.json"))
    row = frame.iloc[0]
    assert (row["engine"], row["seconds"], row["normalized"], row["parameter.threads"]) == ("lmdb", 0.5, 1.5, 2)
    with pytest.raises(FileNotFoundError):
        results.load(str(tmp_path / "none*.json"))
    (tmp_path / "b.json").write_text(json.dumps(dict(value, schema=2)))
    with pytest.raises(ValueError):
        results.load(tmp_path / "b.json")
