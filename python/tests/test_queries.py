import threading

import pytest

import touchstone


@pytest.fixture
def numbers(memory):
    memory.save_many(
        (
            "%05d" % n,
            {
                "n": n,
                "half": n / 2,
                "name": "näme %d" % n,
                "even": n % 2 == 0,
                "list": [n],
                **({"rare": n} if n % 10 == 0 else {}),
                **({"flag": True} if n % 3 == 0 else {}),
                "mixed": n if n % 2 else "text",
                "none": None,
            },
        )
        for n in range(1000)
    )
    return memory


def test_rows_on_every_engine(db):
    db.save_many({str(n): {"n": n, "s": "x%d" % n} for n in range(2000)})
    db.create_index("byN", ["n"])
    query = "SELECT n, s FROM _ WHERE n >= $least ORDER BY n"
    assert db.query(query, least=1998).fetchall() == [{"n": 1998, "s": "x1998"}, {"n": 1999, "s": "x1999"}]
    assert list(db.query(query, {"least": 1999})) == [{"n": 1999, "s": "x1999"}]
    assert "byN" in db.query("SELECT s FROM _ WHERE n = 7").explain()
    assert db.query(query, least=1).columns == ["n", "s"]
    assert db.query(query, least=1).parameters == ["least"]


def test_rows_one_by_one(numbers):
    result = numbers.query("SELECT n FROM _ ORDER BY n")
    assert result.fetchone() == {"n": 0}
    assert next(result) == {"n": 1}
    assert [row["n"] for row in result.fetchmany(3)] == [2, 3, 4]
    assert len(result.fetchall()) == 995
    assert result.fetchone() is None
    assert numbers.query("SELECT n FROM _ WHERE n < 0").fetchall() == []


def test_a_stream_that_is_left_early_frees_its_snapshot(tmp_path):
    with touchstone.open(tmp_path / "x", engine="lmdb") as db:
        db.save_many(("%06d" % n, {"text": "x" * 1000}) for n in range(5000))
        for _ in range(20):
            for _row in db.query("SELECT text FROM _"):
                break
        result = db.query("SELECT text FROM _")
        result.fetchone()
        # The close ends what still reads.
    assert True


def test_a_large_result_streams_in_constant_memory(tmp_path):
    import resource

    with touchstone.open(tmp_path / "x", engine="sqlite", durability="none", cache_bytes=1 << 20) as db:
        for part in range(40):
            db.save_many(("%d-%d" % (part, n), {"text": "%d" % n + "x" * 20_000}) for n in range(100))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        count = sum(1 for row in db.query("SELECT text FROM _"))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert count == 4000
    # The rows have 80 MB.
    assert grown < 40_000


def test_errors_of_queries_have_places(memory):
    with pytest.raises(touchstone.BadRequestError) as caught:
        memory.query("SELECT *\nFROM _ WHERE (")
    assert (caught.value.line, caught.value.code) == (2, "QueryError.syntax")
    with pytest.raises(touchstone.BadRequestError) as caught:
        memory.query("SELECT $x").fetchall()
    assert caught.value.code == "QueryError.unsetParameter"
    with pytest.raises(touchstone.BadRequestError):
        list(memory.query("SELECT $x"))


def test_limits_of_queries(numbers):
    with pytest.raises(touchstone.TooLargeError):
        numbers.query("SELECT n FROM _", options={"rowLimit": 10}).fetchall()
    with pytest.raises(touchstone.TimeLimitError):
        numbers.query(
            "SELECT COUNT(*) FROM _ a JOIN _ b ON a.n < b.n JOIN _ c ON b.n < c.n",
            options={"timeLimit": 0.05},
        ).fetchall()
    with pytest.raises(touchstone.BadRequestError):
        numbers.query("SELECT n FROM _", options={"rows": 10})


def test_a_query_is_cancelled_from_another_thread(numbers):
    result = numbers.query("SELECT COUNT(*) FROM _ a JOIN _ b ON a.n < b.n JOIN _ c ON b.n < c.n JOIN _ d ON c.n < d.n")
    done = threading.Event()

    def cancel():
        while not done.wait(0.02):
            result.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        with pytest.raises(touchstone.CancelledError):
            result.fetchall()
    finally:
        done.set()
        thread.join()


def test_pandas(numbers):
    pandas = pytest.importorskip("pandas")
    frame = numbers.query(
        "SELECT n, half, name, even, list, rare, flag, mixed, none, absent FROM _ ORDER BY n"
    ).df()
    assert list(frame.columns) == ["n", "half", "name", "even", "list", "rare", "flag", "mixed", "none", "absent"]
    assert frame["n"].dtype == "int64" and frame["n"].tolist() == list(range(1000))
    assert frame["half"].dtype == "float64" and frame["half"][3] == 1.5
    assert frame["name"][7] == "näme 7"
    assert frame["even"].dtype == bool and frame["even"].sum() == 500
    assert frame["list"][5] == [5]
    assert frame["rare"].dtype == "Int64" and frame["rare"].count() == 100 and frame["rare"][20] == 20
    assert frame["flag"].dtype == "boolean" and frame["flag"].count() == 334
    assert frame["mixed"][0] == "text" and frame["mixed"][1] == 1
    assert frame["none"].isna().all() and frame["absent"].isna().all()
    empty = numbers.query("SELECT n FROM _ WHERE n < 0").df()
    assert list(empty.columns) == ["n"] and len(empty) == 0
    assert isinstance(empty, pandas.DataFrame)
    twice = numbers.query("SELECT n AS a, n AS b FROM _").df()
    assert twice.shape == (1000, 2)


def test_arrow(numbers):
    pyarrow = pytest.importorskip("pyarrow")
    table = numbers.query(
        "SELECT n, half, name, even, list, rare, flag, mixed, none FROM _ ORDER BY n"
    ).arrow()
    table.validate(full=True)
    assert table.num_rows == 1000
    assert table.schema.field("n").type == pyarrow.int64()
    assert table["n"].to_pylist() == list(range(1000))
    assert table["half"][3].as_py() == 1.5
    assert table["name"][7].as_py() == "näme 7"
    assert table["even"].to_pylist() == [n % 2 == 0 for n in range(1000)]
    assert table["list"][5].as_py() == "[5]"
    assert table["rare"].null_count == 900 and table["rare"][20].as_py() == 20
    assert table["flag"].null_count == 666
    assert table["mixed"][0].as_py() == '"text"' and table["mixed"][1].as_py() == "1"
    assert table["none"].null_count == 1000
    assert numbers.query("SELECT n FROM _ WHERE n < 0").arrow().num_rows == 0


def test_what_of_icu_s_data_the_wheel_has_is_enough(memory):
    texts = ["z", "ä", "a", "Å", "ß", "日本", "ไทย", "я"]
    memory.save_many({str(number): {"t": text, "long": "ภาษาไทย 日本語の文章"} for number, text in enumerate(texts)})

    def ask(query):
        return [next(iter(row.values())) for row in memory.query(query)]

    assert ask("SELECT t FROM _ ORDER BY t COLLATE UNICODE") == ["a", "Å", "ä", "ß", "z", "я", "ไทย", "日本"]
    assert ask("SELECT t FROM _ WHERE REGEXP_CONTAINS(t, '^\\p{Script=Thai}+$')") == ["ไทย"]
    assert ask("SELECT t FROM _ WHERE REGEXP_CONTAINS(t, '^\\N{LATIN SMALL LETTER SHARP S}$')") == ["ß"]
    assert ask("SELECT UPPER(t) FROM _ WHERE t = 'ß'") == ["SS"]
    assert ask("SELECT MILLIS_TO_TZ(1720000000000, 'Australia/Lord_Howe')") == ["2024-07-03T20:16:40+1030"]
    # Words of languages without spaces are found by dictionaries.
    memory.create_text_index("words", ["long"])
    assert len(ask("SELECT META().id FROM _ WHERE MATCH(words, 'ไทย')")) == len(texts)
    assert len(ask("SELECT META().id FROM _ WHERE MATCH(words, '文章')")) == len(texts)
    memory.define_view("t", lambda document, emit: emit(document["t"]), version="1")
    assert [row["key"] for row in memory.view("t")] == ["a", "Å", "ä", "ß", "z", "я", "ไทย", "日本"]


def test_full_text_and_indexes(memory):
    memory.save_many({"a": {"text": "Two castles"}, "b": {"text": "a house"}})
    assert memory.create_text_index("words", ["text"], language="en", ignore_accents=True)
    assert not memory.create_text_index("words", ["text"], language="en", ignore_accents=True)
    assert memory.query("SELECT META().id FROM _ WHERE MATCH(words, 'castle')").fetchall() == [{"id": "a"}]
    assert memory.create_index("lists", ["i"], unnest="list AS i")
    assert [(index["name"], index["kind"]) for index in memory.indexes()] == [("lists", "value"), ("words", "fulltext")]
    memory.delete_index("lists")
    with pytest.raises(touchstone.NotFoundError):
        memory.delete_index("lists")
    with pytest.raises(touchstone.BadRequestError):
        memory.create_text_index("words", ["text"], language="Klingon")
    with pytest.raises(touchstone.BadRequestError):
        memory.create_index("wrong", ["("])


def test_views(memory):
    memory.save_many({"a": {"city": "Paris", "n": 1}, "b": {"city": "Lyon", "n": 2}, "c": {"city": "Paris", "n": 3}, "d": {}})
    memory.define_view("n", lambda document, emit: emit(document["city"], document["n"]), version="1", reduce="sum")
    assert memory.view("n") == [{"key": None, "value": 6}]
    assert memory.view("n", reduce=False, startKey="M") == [
        {"id": "a", "key": "Paris", "value": 1},
        {"id": "c", "key": "Paris", "value": 3},
    ]
    assert memory.view("n", group=True) == [{"key": "Lyon", "value": 2}, {"key": "Paris", "value": 4}]
    assert memory.view("n", reduce=False, keys=["Lyon"], documents=True)[0]["document"] == {"city": "Lyon", "n": 2}
    memory["b"] = {"city": "Nice", "n": 5}
    assert memory.view("n", group=True)[0] == {"key": "Nice", "value": 5}
    with pytest.raises(touchstone.Error):
        memory.view("n", nonsense=1)
