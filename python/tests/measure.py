"""Measures the Python package: python3 measure.py [FILE]

FILE has JSON lines with IDs in "_id" or "id", plain or gzip; without it, documents are made up. What is compared is measured in turn, in
one run, and the medians are told, with the load of the machine: of the time that passes, and of the processor's time, which others on a
busy machine change less. It needs pandas; DuckDB (`pip install duckdb`) to compare with.
"""

import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import touchstone

#: How often each thing is measured.
ROUNDS = 15
#: The properties that become columns, of documents that have them.
COLUMNS = ("type", "name", "country")


def made_up():
    chance = random.Random(7)
    for number in range(29_396):
        yield "hotel_%05d" % number, {
            "type": "hotel",
            "name": "Hotel %d" % chance.randrange(10**6),
            "country": chance.choice(["France", "Japan", "Peru", "Norway"]),
            "price": chance.randrange(40, 400),
            "reviews": [{"stars": chance.randrange(1, 6), "text": "x" * chance.randrange(200)} for _ in range(5)],
        }


def read(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            body = json.loads(line)
            id = body.pop("_id", None) or "%s_%s" % (body.get("type"), body.get("id", number))
            yield str(id), {name: value for name, value in body.items() if not name.startswith("_")}


def spent():
    """The processor's time of this process and of its children."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


class Time:
    """Seconds that have passed, and seconds of the processor."""

    def __init__(self, passed, used):
        self.passed, self.used = passed, used

    def __sub__(self, other):
        return Time(self.passed - other.passed, self.used - other.used)

    def __truediv__(self, count):
        return Time(self.passed / count, self.used / count)


def in_turn(works, rounds=ROUNDS):
    """The median time of each work. All run in each round, in another order."""
    times = {name: ([], []) for name in works}
    names = list(works)
    for number in range(rounds + 1):
        random.shuffle(names)
        for name in names:
            before, start = spent(), time.perf_counter()
            works[name]()
            passed, used = time.perf_counter() - start, spent() - before
            if number > 0:
                times[name][0].append(passed)
                times[name][1].append(used)
    return {name: Time(*map(statistics.median, values)) for name, values in times.items()}


def tell(name, time_, unit, reach=""):
    scale = {"ms": 1e3, "µs": 1e6}[unit]
    print("%-52s %8.2f %s, processor %8.2f %s %s" % (name, time_.passed * scale, unit, time_.used * scale, unit, reach), flush=True)


def reads(db, ids):
    """Reads of single documents: their JSON, as dicts, and what `json.loads` takes for the same bytes."""
    texts = [db.get_json(id).decode() for id in ids]

    def run(function, items):
        def work():
            for item in items:
                function(item)

        return work

    found = in_turn(
        {
            "empty": run(lambda item: None, ids),
            "json": run(db.get_json, ids),
            "dict": run(db.get, ids),
            "loads": run(json.loads, texts),
        },
        rounds=101,
    )
    return {name: time_ / len(ids) for name, time_ in found.items()}


def frames(db, path):
    """Three columns of all documents as a data frame, beside DuckDB reading the same JSON."""
    query = "SELECT %s FROM _" % ", ".join(COLUMNS)
    works = {
        "df": lambda: db.query(query).df(),
        "arrow": lambda: db.query(query).arrow(),
        "fetchall": lambda: db.query(query).fetchall(),
    }
    try:
        import duckdb
    except ImportError:
        return in_turn(works)
    connection = duckdb.connect()
    source = "SELECT %s FROM read_json('%s', format='newline_delimited'%s)"
    typed = ", columns={%s}" % ", ".join("%s: 'VARCHAR'" % name for name in COLUMNS)
    works["duckdb"] = lambda: connection.sql(source % (", ".join(COLUMNS), path, "")).df()
    works["duckdb, types given"] = lambda: connection.sql(source % (", ".join(COLUMNS), path, typed)).df()
    assert len(works["df"]()) == len(works["duckdb"]()) == len(db)
    return in_turn(works)


def start(code):
    def work():
        subprocess.run([sys.executable, "-c", code], check=True)

    return work


def main():
    given = sys.argv[1] if len(sys.argv) > 1 else None
    documents = dict(read(given) if given else made_up())
    print("load %s, Python %s, touchstone %s" % (os.getloadavg(), sys.version.split()[0], touchstone.__version__))
    found = in_turn({"none": start("pass"), "import": start("import touchstone")})
    tell("import", found["import"] - found["none"], "ms", "(reach 50)")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "documents.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for body in documents.values():
                file.write(json.dumps(body, ensure_ascii=False) + "\n")
        with touchstone.open(os.path.join(folder, "db"), engine="lmdb") as db:
            db.save_many(documents)
            ids = list(documents)
            size = os.path.getsize(path) / len(ids)
            short = [id for id in ids if 0 < len(db.get_json(id)) < 500]
            random.shuffle(ids)
            random.shuffle(short)
            for what, chosen in (("of %d bytes" % size, ids[:1000]), ("of less than 500", short[:1000])):
                if not chosen:
                    continue
                found = reads(db, chosen)
                tell("get_json: %s" % what, found["json"] - found["empty"], "µs", "(reach 3)")
                tell("get: %s" % what, found["dict"] - found["empty"], "µs")
                tell("json.loads: %s" % what, found["loads"] - found["empty"], "µs")
                tell("get, without json.loads: %s" % what, found["dict"] - found["loads"], "µs", "(reach 3)")
            found = frames(db, path)
            for name, time_ in found.items():
                ratio = ""
                if "duckdb" in found:
                    other = found["duckdb"]
                    ratio = "(DuckDB: x %.2f, processor x %.2f)" % (time_.passed / other.passed, time_.used / other.used)
                tell("%d rows of three columns: %s" % (len(ids), name), time_, "ms", ratio)
    print("load %s" % (os.getloadavg(),))


if __name__ == "__main__":
    main()
