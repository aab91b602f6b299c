"""The same scenarios with each client, against what a naive model says. A client that isn't installed is skipped."""

import importlib.util
import os
import random
import unittest

from adapters import ADAPTERS
from model import Conflict, Missing, Model

SEED = int(os.environ.get("TOUCHSTONE_SEED", "1"))
HEX = "0123456789abcdef"


class Scenarios:
    adapter = None
    number = 0

    @classmethod
    def setUpClass(cls):
        if importlib.util.find_spec(cls.adapter.package) is None:
            raise unittest.SkipTest(f"the package {cls.adapter.package} is not installed")

    def setUp(self):
        Scenarios.number += 1
        self.random = random.Random(SEED)
        self.name = f"client-{self.adapter.package}-{Scenarios.number}"
        self.client = self.adapter(self.name)
        self.addCleanup(self.client.drop)
        self.model = Model()

    # Writes of both, and what is expected of them.

    def put(self, id, body, base=None):
        document = dict(body, _id=id)
        if base is not None:
            document["_rev"] = base
        if self.model.must_conflict(id, base):
            with self.assertRaises(Conflict):
                self.client.put(document)
            return None
        rev = self.client.put(document)
        self.model.written(id, base, rev, body)
        return rev

    def delete(self, id, base):
        if self.model.must_conflict(id, base):
            with self.assertRaises((Conflict, Missing)):
                self.client.delete(id, base)
            return
        rev = self.client.delete(id, base)
        if rev is None:
            (rev,) = self.client.leaves(id) - set(self.model.documents[id].leaves)
        self.model.written(id, base, rev, {}, deleted=True)

    def apply(self, id, history, body, deleted=False):
        document = dict(body, _id=id, _rev=history[0])
        document["_revisions"] = {
            "start": int(history[0].split("-")[0]), "ids": [rev.split("-", 1)[1] for rev in history]}
        if deleted:
            document["_deleted"] = True
        self.client.bulk([document], new_edits=False)
        self.model.applied(id, history, body, deleted)

    def check(self):
        """The whole database is what the model says."""
        total, rows = self.client.all_docs(include_docs=True)
        live = self.model.live()
        self.assertEqual([row["id"] for row in rows], live)
        self.assertEqual(total, len(live))
        for row in rows:
            rev, body = self.model.get(row["id"])
            self.assertEqual(row["doc"]["_rev"], rev)
            found = {name: value for name, value in row["doc"].items() if name not in ("_id", "_rev", "_attachments")}
            self.assertEqual(found, body)
        last, changes = self.client.changes()
        self.assertEqual(
            [(row["id"], row["changes"][0]["rev"], row.get("deleted", False)) for row in changes],
            self.model.changes())

    # Scenarios.

    def test_documents(self):
        ids = ["a", "b:c", "with space", "ünï", "comma,sign", "Z", "😀", "x", "y"]
        if self.adapter.escapes:
            ids[1::6] = ["b/c", "percent%41"]
            # In a path, a plus that isn't escaped is a blank.
            ids[4] = "plus+sign"
            ids[8] = "a b&c=d?e"
        revs = {id: self.put(id, {"n": number, "text": f"é {id}"}) for number, id in enumerate(ids)}
        self.check()
        for id in ids:
            self.assertEqual(self.client.get(id)["_rev"], revs[id])
            self.put(id, {"n": 0})  # conflicts
        for id in ids[::2]:
            revs[id] = self.put(id, {"n": -1.5, "nested": {"a": [1, None, True, "x"]}}, base=revs[id])
        self.put("a", {"n": 3}, base="1-" + "0" * 32)
        self.check()
        for id in ids[1::2]:
            self.delete(id, revs[id])
            with self.assertRaises(Missing):
                self.client.get(id)
        self.put(ids[1], {"again": True})
        self.check()
        with self.assertRaises(Missing):
            self.client.get("nosuch")

    def test_random_writes(self):
        """A walk through creations, updates, deletions, conflicts and revisions from elsewhere."""
        ids = [f"doc{number}" for number in range(12)]
        for step in range(150):
            id = self.random.choice(ids)
            body = {"step": step, "key": self.random.randrange(10), "word": self.random.choice("xyz")}
            kind = self.random.randrange(10)
            document = self.model.documents.get(id)
            if kind < 4 or document is None:
                base = None if document is None or document.is_deleted() else document.winner()
                if self.random.random() < 0.15:
                    base = "1-" + "f" * 32 if document is not None else None
                self.put(id, body, base)
            elif kind < 6:
                if not document.is_deleted():
                    self.delete(id, document.winner())
            else:
                # A branch from a leaf, or from the root.
                leaf = self.random.choice(sorted(document.leaves))
                history = document.leaves[leaf][2][-self.random.randrange(1, 3):]
                suffix = "".join(self.random.choice(HEX) for _ in range(32))
                generation = int(history[0].split("-")[0]) + 1
                self.apply(id, [f"{generation}-{suffix}"] + history, body, deleted=kind == 9)
            if step % 25 == 24:
                self.check()
        for id, document in self.model.documents.items():
            if document.is_deleted():
                continue
            found = self.client.get(id, conflicts=True)
            self.assertEqual(sorted(found.get("_conflicts", [])), self.model.conflicts(id))

    def test_bulk(self):
        documents = [{"_id": f"{number:04}", "n": number} for number in range(500)]
        for result, document in zip(self.client.bulk(documents), documents):
            self.assertEqual(result["id"], document["_id"])
            self.model.written(document["_id"], None, result["rev"], {"n": document["n"]})
        self.check()
        _, rows = self.client.all_docs(startkey="0100", endkey="0109")
        self.assertEqual([row["id"] for row in rows], [f"{number:04}" for number in range(100, 110)])
        _, rows = self.client.all_docs(limit=3, skip=2, descending=True)
        self.assertEqual([row["id"] for row in rows], ["0497", "0496", "0495"])

    def test_changes_since(self):
        for number in range(20):
            self.put(f"d{number}", {"n": number})
        last, rows = self.client.changes()
        self.assertEqual(len(rows), 20)
        self.put("later", {})
        self.put("d3", {"n": "new"}, base=self.model.documents["d3"].winner())
        _, rows = self.client.changes(since=rows[-1]["seq"])
        self.assertEqual([row["id"] for row in rows], ["later", "d3"])

    def test_views(self):
        design = {
            "language": "javascript",
            "views": {
                "by_key": {"map": "function (doc) { if (doc.key !== undefined) { emit(doc.key, doc.n); } }"},
                "sums": {
                    "map": "function (doc) { if (doc.key !== undefined) { emit(doc.key, doc.n); } }",
                    "reduce": "_sum",
                },
            },
        }
        self.client.put(dict(design, _id="_design/d"))

        def rows_of(id, body):
            return [(body["key"], body["n"])] if "key" in body else []

        for round in range(3):
            for number in range(40):
                id = f"d{self.random.randrange(60)}"
                base = self.model.documents[id].winner() if id in self.model.documents else None
                self.put(id, {"key": self.random.randrange(8), "n": number} if number % 5 else {"n": 0}, base)
            expected = self.model.view(rows_of)
            found = self.client.view("d", "by_key")
            self.assertEqual([(row["key"], row["id"], row["value"]) for row in found], expected)
            found = self.client.view("d", "by_key", startkey=2, endkey=5)
            self.assertEqual(
                [(row["key"], row["id"]) for row in found], [(key, id) for key, id, _ in expected if 2 <= key <= 5])
            sums = {}
            for key, _, value in expected:
                sums[key] = sums.get(key, 0) + value
            found = self.client.view("d", "sums", group=True)
            self.assertEqual([(row["key"], row["value"]) for row in found], sorted(sums.items()))
            found = self.client.view("d", "sums")
            self.assertEqual([row["value"] for row in found], [sum(sums.values())])

    def test_attachments(self):
        rev = self.client.put({"_id": "doc", "n": 1})
        contents = {
            "a.txt": (b"some text " * 100, "text/plain"),
            "noise.bin": (bytes(self.random.randrange(256) for _ in range(5000)), "application/octet-stream"),
            "empty": (b"", "application/octet-stream"),
        }
        if not self.adapter.sends_empty:
            del contents["empty"]
        for name, (content, type) in contents.items():
            rev = self.client.put_attachment("doc", rev, name, content, type)
            rev = self.client.get("doc")["_rev"]
        document = self.client.get("doc")
        self.assertEqual(sorted(document["_attachments"]), sorted(contents))
        for name, (content, type) in contents.items():
            stub = document["_attachments"][name]
            self.assertEqual(stub["content_type"], type)
            if not self.adapter.compresses:
                self.assertEqual(stub["length"], len(content))
            self.assertTrue(stub["stub"])
            self.assertEqual(self.client.get_attachment("doc", name), content)
        self.client.delete_attachment("doc", rev, "a.txt")
        document = self.client.get("doc")
        self.assertNotIn("a.txt", document["_attachments"])
        self.assertEqual(document["n"], 1)
        with self.assertRaises(Missing):
            self.client.get_attachment("doc", "a.txt")


for adapter in ADAPTERS:
    name = f"{adapter.__name__}Scenarios"
    globals()[name] = type(name, (Scenarios, unittest.TestCase), {"adapter": adapter})

if __name__ == "__main__":
    unittest.main()
