import contextlib
import datetime
import json
import signal
import sys
import threading
import time

import pytest

import touchstone


def test_a_database_is_a_mapping(db):
    db["b"] = {"n": 2}
    db["a"] = {"n": 1, "list": [1, 2.5, None, True, {"é": "日本"}]}
    assert db["a"] == {"n": 1, "list": [1, 2.5, None, True, {"é": "日本"}]}
    assert list(db) == ["a", "b"]
    assert len(db) == 2
    assert "a" in db and "c" not in db and 5 not in db
    assert dict(db.items())["b"] == {"n": 2}
    assert [document["n"] for document in db.values()] == [1, 2]
    assert db.get("c") is None and db.get("c", 7) == 7
    del db["a"]
    assert list(db) == ["b"]
    with pytest.raises(KeyError) as caught:
        db["a"]
    assert caught.value.document == "a"
    db.update({"x": {"n": 3}}, y={"n": 4})
    assert db.pop("x") == {"n": 3}
    db.clear()
    assert len(db) == 0


def test_what_was_saved_is_there_after_the_close(opening, engine):
    if engine == "memory":
        pytest.skip("a database in memory is gone after its close")
    with opening() as db:
        db["a"] = {"n": 1}
    with opening(create="never") as db:
        assert db["a"] == {"n": 1}
        assert db.engine == engine


def test_large_documents_don_t_fit_the_first_buffer(db):
    body = {"text": "x" * 300_000}
    db["large"] = body
    assert db["large"] == body
    assert db["large"].revision.startswith("1-")
    assert json.loads(db.get_json("large")) == body


def test_reads_of_a_signal_s_handler_don_t_change_what_is_read(memory):
    memory["outer"] = {"name": "outer"}
    memory["inner"] = {"name": "inner" * 10}
    calls = []

    def read_inner(*_):
        assert memory["inner"]["name"] == "inner" * 10
        assert memory.get_json("inner").startswith(b'{"name":"inner')
        calls.append(1)

    before = signal.signal(signal.SIGALRM, read_inner)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
        while len(calls) < 300:
            assert memory.get_json("outer") == b'{"name":"outer"}'
            assert memory["outer"] == {"name": "outer"}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_document_knows_its_revision(db):
    saved = db.save("a", {"n": 1})
    document = db["a"]
    assert (document.id, document.revision, document.sequence) == ("a", saved.revision, saved.sequence)
    document["n"] = 2
    second = db.save(document)
    assert document.revision == second.revision != saved.revision
    assert db["a"].revision == second.revision
    assert not document.is_deleted and not document.is_conflicted


def test_a_conflict_fails_or_branches(db):
    first = db.save("a", {"n": 1})
    db.save("a", {"n": 2}, base=first.revision)
    with pytest.raises(touchstone.ConflictError) as caught:
        db.save("a", {"n": 3}, base=first.revision, on_conflict="fail")
    assert caught.value.document == "a"
    assert caught.value.code == "DocumentError.conflict"
    db.save("a", {"n": 3}, base=first.revision, on_conflict="branch")
    assert db["a"].is_conflicted
    leaves = db.conflicts("a")
    assert sorted(leaf.body["n"] for leaf in leaves) == [2, 3]
    tree = db.revisions("a")
    assert len(tree.leaves) == 2 and tree.current.is_current
    assert {revision.id for leaf in leaves for revision in tree.path(leaf.id)} >= {first.revision}
    assert db.revision("a", leaves[1].id) == leaves[1].body
    db.resolve("a", leaves[1], merged={"n": 5})
    assert db["a"] == {"n": 5} and not db["a"].is_conflicted
    with pytest.raises(ValueError):
        db.save("a", {}, on_conflict="perhaps")


def test_tombstones_and_purges(db):
    db["a"] = {"n": 1}
    db.delete("a")
    assert [document.id for document in db.documents(mode="includingDeleted")] == ["a"]
    assert db.revisions("a").current.is_deleted
    db.purge("a")
    with pytest.raises(touchstone.NotFoundError):
        db.purge("a")
    with pytest.raises(touchstone.NotFoundError):
        db.revisions("a")


def test_revisions_of_others_are_inserted(db):
    assert db.apply("a", {"n": 1}, ["2-bb", "1-aa"])
    assert not db.apply("a", {"n": 1}, ["2-bb", "1-aa"])
    assert [revision.id for revision in db.revisions("a")] == ["2-bb", "1-aa"]


def test_many_documents_are_saved_in_one_transaction(db):
    assert db.save_many({str(n): {"n": n} for n in range(500)}) == 500
    assert db.save_many([]) == 0
    with pytest.raises(touchstone.BadRequestError):
        db.save_many([("new", {"n": 1}), ("_wrong", {})])
    assert "new" not in db
    with pytest.raises(touchstone.BadRequestError):
        db.save_many([("new", b"[1]")])


def test_a_batch_is_all_or_nothing(db):
    with db.batch():
        db["a"] = {"n": 1}
        assert db["a"] == {"n": 1}
        assert db.query("SELECT n FROM _").fetchall() == [{"n": 1}]
        assert list(db.query("SELECT n FROM _")) == [{"n": 1}]
        assert list(db) == ["a"]
    with pytest.raises(ZeroDivisionError):
        with db.batch():
            db["b"] = {"n": 2}
            raise ZeroDivisionError
    assert list(db) == ["a"]
    with db.batch():
        with pytest.raises(touchstone.MisuseError):
            with db.batch():
                pass
        with pytest.raises(touchstone.BusyError):
            db.close()
        db["c"] = {}
    assert list(db) == ["a", "c"]


def test_batches_of_threads_come_one_after_another(db):
    db["counter"] = {"n": 0}

    def add():
        for _ in range(10):
            with db.batch():
                db["counter"] = {"n": db["counter"]["n"] + 1}

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db["counter"] == {"n": 40}


class Interrupt(Exception):
    """What a signal's handler raises, as that of Ctrl-C does."""


@contextlib.contextmanager
def interrupted_in(name, then=lambda: None):
    """Raises :class:`Interrupt` in this thread while its innermost function is that of this name."""

    def raise_(*_):
        raise Interrupt

    main, ends = threading.get_ident(), threading.Event()

    def work():
        while sys._current_frames()[main].f_code.co_name != name and not ends.wait(0.001):
            pass
        signal.pthread_kill(main, signal.SIGUSR1)
        then()

    before = signal.signal(signal.SIGUSR1, raise_)
    thread = threading.Thread(target=work)
    try:
        thread.start()
        yield
    finally:
        ends.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)


def test_a_signal_while_a_batch_waits_for_another_leaves_no_batch_behind(db):
    begun, goes_on = threading.Event(), threading.Event()

    def work():
        with db.batch():
            db["a"] = {"n": 1}
            begun.set()
            goes_on.wait()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    # The handler runs when the call has ended, and so when the other batch has.
    with pytest.raises(Interrupt), interrupted_in("call", goes_on.set):
        with db.batch():
            time.sleep(60)
    thread.join()
    # This isn't in a batch: another thread writes after it.
    db["b"] = {"n": 2}
    other = threading.Thread(target=lambda: db.save("c", {"n": 3}), daemon=True)
    other.start()
    other.join(60)
    assert sorted(db) == ["a", "b", "c"]


@pytest.mark.parametrize("function", ["query_stream", "documents", "changes", "blob_open"])
def test_a_signal_during_a_call_frees_what_it_has_made(tmp_path, monkeypatch, function):
    from touchstone._library import lib

    db = touchstone.open(tmp_path / "x", engine="lmdb")
    db.save_many({"d%d" % number: {"text": "x" * 1_000} for number in range(2_000)})
    blob = db.blob(b"x" * 1_000_000)
    original = getattr(lib, "touchstone_" + function)

    def made_and_interrupted(*arguments):
        assert original(*arguments) == 0
        raise Interrupt

    monkeypatch.setattr(lib, "touchstone_" + function, made_and_interrupted)
    works = {
        "query_stream": lambda: next(iter(db.query("SELECT text FROM _"))),
        "documents": lambda: next(db.documents()),
        "changes": lambda: next(db.changes()),
        "blob_open": lambda: db.open_blob(blob),
    }
    with pytest.raises(Interrupt):
        works[function]()
    # It would fail after a while if something were still read.
    db.close()


def test_close_ends_what_other_threads_do(opening):
    database = opening()
    count = 2_000
    database.save_many({"d%d" % number: {"n": number, "text": "x" * 200} for number in range(count)})
    content = b"x" * 500_000
    database["file"] = {"blob": database.blob(content)}
    begun = threading.Barrier(13)
    ends = []

    def loop(rows):
        begun.wait()
        found = sum(1 for _ in rows())
        # A loop that ends has had all rows.
        assert found == count + 1

    def read():
        with database.open_blob(database["file"]["blob"]) as file:
            begun.wait()
            assert len(file.read()) == len(content)

    def ask():
        begun.wait()
        while True:
            database.query("SELECT n FROM _ WHERE n < 50").fetchall()
            database.get("d5")

    def run(work):
        try:
            work()
            ends.append(None)
        except (touchstone.MisuseError, touchstone.CancelledError, ValueError) as error:
            ends.append(error)

    works = [
        lambda: loop(database.documents),
        lambda: loop(lambda: database.query("SELECT n, text FROM _")),
        lambda: loop(database.changes),
        lambda: loop(lambda: iter(database)),
        read,
        ask,
    ]
    threads = [threading.Thread(target=run, args=(work,)) for work in works * 2]
    for thread in threads:
        thread.start()
    begun.wait()
    database.close()
    for thread in threads:
        thread.join()
    assert len(ends) == len(threads)
    # Those that ask again and again never end by themselves.
    assert sum(end is not None for end in ends) >= 2


def test_close_does_not_wait_for_ever_for_a_batch(memory):
    begun, goes_on = threading.Event(), threading.Event()

    def work():
        with memory.batch():
            memory["a"] = {"n": 1}
            begun.set()
            goes_on.wait()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    with pytest.raises(touchstone.BusyError):
        memory.close()
    # It stays open, and the batch goes on.
    goes_on.set()
    thread.join()
    assert memory["a"] == {"n": 1}


def test_a_loop_over_rows_of_a_closed_database_says_so(memory):
    memory.save_many({"d%d" % number: {"text": "x" * 2_000} for number in range(2_000)})
    found = 0
    with pytest.raises(touchstone.MisuseError) as closed:
        for _ in memory.documents():
            found += 1
            memory.close()
    assert closed.value.code == "closed"
    assert 0 < found < 2_000


def test_documents_are_enumerated_in_ranges(memory):
    memory.save_many({name: {"n": number} for number, name in enumerate(["a1", "a2", "b1", "b2"])})

    def ids(**options):
        return [document.id for document in memory.documents(**options)]

    assert ids(prefix="a") == ["a1", "a2"]
    assert ids(first="a2", last="b1") == ["a2", "b1"]
    assert ids(descending=True, limit=1) == ["b2"]
    assert ids(skip=1, limit=2) == ["a2", "b1"]
    assert ids(ids=["b2", "none", "a1"]) == ["b2", "a1"]
    assert list(memory.documents(bodies=False))[0] == {}
    with pytest.raises(touchstone.BadRequestError):
        ids(order="name")


def test_changes_are_told_since_a_sequence(memory):
    memory["a"] = {}
    since = memory.info()["lastSequence"]
    memory["b"] = {}
    del memory["a"]
    assert [(change.id, change.is_deleted) for change in memory.changes(since)] == [("b", False), ("a", True)]


def test_documents_expire(memory):
    memory["a"] = {}
    assert memory.expiration("a") is None
    when = datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc)
    memory.expire("a", when)
    assert memory.expiration("a") == when
    memory.expire("a", None)
    assert memory.expiration("a") is None
    with pytest.raises(touchstone.NotFoundError):
        memory.expire("b", when)


@pytest.mark.parametrize("body", [float("nan"), {"x": float("inf")}, [1], "text", {"x": object()}, {"x": {1, 2}}])
def test_bodies_that_json_lacks_are_refused(memory, body):
    with pytest.raises((ValueError, TypeError)):
        memory["a"] = body
    assert len(memory) == 0


@pytest.mark.parametrize("id", ["", "_x", "x" * 1000, "a\0b", "\ud800"])
def test_ids_that_can_t_be_are_refused(memory, id):
    with pytest.raises(touchstone.BadRequestError):
        memory[id] = {}
    with pytest.raises(touchstone.BadRequestError):
        memory.get(id)


def test_integers_and_dates_keep_their_values(memory):
    memory["a"] = {"big": 2**63 - 1, "unsigned": 2**64 - 1, "day": datetime.date(2026, 1, 2), "e": 1e300}
    assert memory["a"] == {"big": 2**63 - 1, "unsigned": 2**64 - 1, "day": "2026-01-02", "e": 1e300}


def test_a_closed_database_says_so(tmp_path):
    db = touchstone.open(tmp_path / "x")
    rows = iter(db.query("SELECT 1"))
    db.close()
    db.close()
    for call in (
        lambda: db["a"],
        lambda: db.get_json("a"),
        lambda: db.save("a", {}),
        lambda: len(db),
        lambda: list(db),
        lambda: db.query("SELECT 1"),
        lambda: db.blob(b""),
        db.check,
        db.compact,
    ):
        with pytest.raises(touchstone.MisuseError):
            call()
    del rows


def test_the_wrong_key_and_other_mistakes_of_opening(tmp_path):
    with touchstone.open(tmp_path / "x", engine="lmdb", passphrase="right") as db:
        db["a"] = {"secret": 1}
    with pytest.raises(touchstone.UnauthorizedError):
        touchstone.open(tmp_path / "x", passphrase="wrong")
    with pytest.raises(touchstone.UnauthorizedError):
        touchstone.open(tmp_path / "x")
    with touchstone.open(tmp_path / "x", passphrase="right") as db:
        db.change_key(passphrase="new")
    with touchstone.open(tmp_path / "x", passphrase="new", read_only=True) as db:
        assert db["a"] == {"secret": 1}
        with pytest.raises(touchstone.ForbiddenError):
            db["b"] = {}
    with pytest.raises(touchstone.NotFoundError):
        touchstone.open(tmp_path / "none", create="never")
    with pytest.raises(touchstone.DuplicateError):
        touchstone.open(tmp_path / "x", passphrase="new", create="always")
    with pytest.raises(touchstone.BadRequestError):
        touchstone.open(tmp_path / "y", engine="none")
    with pytest.raises(TypeError):
        touchstone.open()
