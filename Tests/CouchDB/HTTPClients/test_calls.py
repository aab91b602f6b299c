"""What only one of the clients does: logins, feeds, pages, bulk operations."""

import asyncio
import importlib.util
import threading
import unittest

import adapters
from adapters import PASSWORD, URL, USER, url_with_login


def needs(package):
    return unittest.skipIf(
        importlib.util.find_spec(package) is None, f"the package {package} is not installed")


@needs("couchdb3")
class CouchDB3Calls(unittest.TestCase):
    def setUp(self):
        self.client = adapters.CouchDB3("calls-couchdb3")
        self.addCleanup(self.client.drop)

    def test_server(self):
        server = self.client.server
        self.assertTrue(server.up())
        self.assertIn("calls-couchdb3", server.all_dbs())
        self.assertTrue(server.check("calls-couchdb3"))
        self.assertFalse(server.check("nosuch"))
        self.assertEqual(server.info()["couchdb"], "Welcome")
        self.assertIsInstance(server.active_tasks(), list)
        self.assertEqual(server.dbs_info(keys=["calls-couchdb3"])[0]["info"]["db_name"], "calls-couchdb3")

    def test_wrong_password(self):
        import couchdb3
        server = couchdb3.Server(URL, user=USER, password=PASSWORD + "x")
        with self.assertRaises(couchdb3.exceptions.UnauthorizedError):
            server.all_dbs()

    def test_create_twice(self):
        import couchdb3
        with self.assertRaises(couchdb3.exceptions.PreconditionFailedError):
            self.client.server.create("calls-couchdb3")

    def test_copy(self):
        database = self.client.database
        database.create({"_id": "a", "n": 1})
        id, ok, rev = database.copy("a", "b")
        self.assertEqual(database.get("b")["n"], 1)
        database.copy("a", "b", destrev=rev)
        self.assertEqual(database.rev("b").split("-")[0], "2")

    def test_bulk_get(self):
        database = self.client.database
        first = self.client.put({"_id": "a", "n": 1})
        second = self.client.put({"_id": "a", "_rev": first, "n": 2})
        results = database.bulk_get([{"id": "a", "rev": first}, {"id": "a"}, {"id": "nosuch"}])
        self.assertEqual(len(results), 3)

    def test_design(self):
        database = self.client.database
        database.put_design("d", views={"all": {"map": "function (doc) { emit(doc._id, 1); }", "reduce": "_count"}})
        self.client.put({"_id": "x"})
        self.assertEqual(database.view("d", "all").rows[0]["value"], 1)
        self.assertEqual(database.view("d", "all", keys=["x", "y"], reduce=False).rows[0]["id"], "x")
        self.assertIn("views", database.get_design("d"))
        self.assertTrue(database.compact())

    def test_purge(self):
        rev = self.client.put({"_id": "gone"})
        self.client.database.purge({"gone": [rev]})
        with self.assertRaises(adapters.Missing):
            self.client.get("gone")
        self.assertNotIn("gone", [row["id"] for row in self.client.changes()[1]])


@needs("couchdb")
class CouchDBPythonCalls(unittest.TestCase):
    def setUp(self):
        self.client = adapters.CouchDBPython("calls-couchdb")
        self.addCleanup(self.client.drop)

    def test_session(self):
        import couchdb
        server = couchdb.Server(URL + "/")
        token = server.login(USER, PASSWORD)
        self.assertTrue(server.verify_token(token))
        self.assertTrue(server.logout(token))
        with self.assertRaises(couchdb.http.Unauthorized):
            server.login(USER, PASSWORD + "x")

    def test_server(self):
        server = self.client.server
        self.assertIn("calls-couchdb", list(server))
        self.assertIn("calls-couchdb", server)
        self.assertNotIn("nosuch", server)
        self.assertEqual(len(server.uuids(5)), 5)
        self.assertEqual(server.tasks(), [])
        self.assertTrue(server.version())

    def test_mapping(self):
        database = self.client.database
        database["foo"] = {"n": 1}
        self.assertIn("foo", database)
        self.assertEqual(database["foo"]["n"], 1)
        self.assertEqual(len(database), 1)
        id, rev = database.save({"n": 2})
        self.assertEqual(sorted(database), sorted(["foo", id]))
        database.delete(database["foo"])
        self.assertNotIn("foo", database)
        self.assertTrue(database.compact())
        self.assertTrue(database.commit())
        self.assertTrue(database.cleanup())

    def test_revisions(self):
        database = self.client.database
        document = {"_id": "doc", "n": 0}
        for number in range(3):
            document["n"] = number
            database.save(document)
        self.assertEqual([revision["n"] for revision in database.revisions("doc")], [2, 1, 0])

    def test_pages(self):
        database = self.client.database
        database.update([{"_id": f"{number:03}", "n": number % 3} for number in range(100)])
        database.save({
            "_id": "_design/d", "language": "javascript",
            "views": {"n": {"map": "function (doc) { emit(doc.n, null); }"}},
        })
        rows = [row.id for row in database.iterview("d/n", 7)]
        self.assertEqual(len(rows), 100)
        self.assertEqual(len(set(rows)), 100)
        self.assertEqual(rows, [row.id for row in database.view("d/n")])

    def test_continuous_feed(self):
        database = self.client.database
        database.save({"_id": "before"})
        timer = threading.Timer(0.3, lambda: adapters_put(self.client.name, "after"))
        timer.start()
        seen = []
        for change in database.changes(feed="continuous", since=0, heartbeat=100, include_docs=True):
            seen.append(change["id"])
            if len(seen) == 2:
                break
        self.assertEqual(seen, ["before", "after"])
        timer.join()

    def test_longpoll(self):
        database = self.client.database
        since = database.changes()["last_seq"]
        timer = threading.Timer(0.3, lambda: adapters_put(self.client.name, "woken"))
        timer.start()
        found = database.changes(feed="longpoll", since=since, timeout=20_000)
        self.assertEqual([row["id"] for row in found["results"]], ["woken"])
        timer.join()


def adapters_put(database, id):
    """Writes a document beside a client that waits."""
    import base64
    import urllib.request
    request = urllib.request.Request(f"{URL}/{database}/{id}", data=b"{}", method="PUT")
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    request.add_header("Authorization", f"Basic {login}")
    request.add_header("Content-Type", "application/json")
    urllib.request.urlopen(request).read()


@needs("pycouchdb")
class PyCouchDBCalls(unittest.TestCase):
    def setUp(self):
        self.client = adapters.PyCouchDB("calls-pycouchdb")
        self.addCleanup(self.client.drop)

    def test_server(self):
        server = self.client.server
        self.assertIn("calls-pycouchdb", server)
        self.assertIn("calls-pycouchdb", list(server))
        self.assertEqual(server.info()["couchdb"], "Welcome")
        self.assertEqual(self.client.database.config()["db_name"], "calls-pycouchdb")

    def test_revisions(self):
        database = self.client.database
        document = database.save({"_id": "doc", "n": 1})
        document["n"] = 2
        database.save(document)
        self.assertEqual([revision["n"] for revision in database.revisions("doc")], [2, 1])

    def test_conflict(self):
        import pycouchdb
        database = self.client.database
        database.save({"_id": "doc"})
        with self.assertRaises(pycouchdb.exceptions.Conflict):
            database.save({"_id": "doc", "n": 2})

    def test_delete_bulk(self):
        database = self.client.database
        made = database.save_bulk([{"_id": f"{number}"} for number in range(10)], transaction=False)
        database.delete_bulk(made[:5], transaction=False)
        self.assertEqual(len(database), 5)

    def test_pages(self):
        database = self.client.database
        database.save_bulk([{"_id": f"{number:03}", "n": number} for number in range(50)], transaction=False)
        database.save({"_id": "_design/d", "views": {"n": {"map": "function (doc) { emit(doc.n, 1); }", "reduce": "_sum"}}})
        rows = list(database.query("d/n", pagesize=7, reduce=False))
        self.assertEqual([row["key"] for row in rows], list(range(50)))
        self.assertEqual(database.one("d/n", flat="value"), 50)
        self.assertTrue(database.commit()["ok"])
        self.assertTrue(database.compact()["ok"])
        self.assertTrue(database.cleanup()["ok"])


@needs("ibmcloudant")
class CloudantCalls(unittest.TestCase):
    def setUp(self):
        self.client = adapters.Cloudant("calls-cloudant")
        self.addCleanup(self.client.drop)

    def test_server(self):
        service = self.client.service
        self.assertEqual(service.get_server_information().get_result()["couchdb"], "Welcome")
        self.assertEqual(service.get_up_information().get_result()["status"], "ok")
        self.assertIn("calls-cloudant", service.get_all_dbs().get_result())
        self.assertEqual(len(service.get_uuids(count=3).get_result()["uuids"]), 3)
        session = service.get_session_information().get_result()
        self.assertEqual(session["userCtx"]["name"], USER)
        found = service.post_dbs_info(keys=["calls-cloudant", "nosuch"]).get_result()
        self.assertEqual(found[0]["info"]["doc_count"], 0)
        self.assertIn("error", found[1])

    def test_revs_diff(self):
        service = self.client.service
        rev = self.client.put({"_id": "a"})
        missing = "1-" + "0" * 32
        found = service.post_revs_diff(
            db=self.client.name, document_revisions={"a": [rev, missing], "b": [missing]}).get_result()
        self.assertEqual(found, {"a": {"missing": [missing]}, "b": {"missing": [missing]}})

    def test_queries(self):
        service = self.client.service
        from ibmcloudant.cloudant_v1 import AllDocsQuery
        self.client.bulk([{"_id": letter} for letter in "abc"])
        queries = [AllDocsQuery(keys=["a", "x"]), AllDocsQuery(limit=1, descending=True)]
        found = service.post_all_docs_queries(db=self.client.name, queries=queries).get_result()["results"]
        self.assertEqual([row.get("id") for row in found[0]["rows"]], ["a", None])
        self.assertEqual(found[1]["rows"][0]["id"], "c")

    def test_local_documents(self):
        service = self.client.service
        body = {"checkpoint": 5}
        service.put_local_document(db=self.client.name, doc_id="x", document=body)
        found = service.get_local_document(db=self.client.name, doc_id="x").get_result()
        self.assertEqual((found["_id"], found["checkpoint"]), ("_local/x", 5))
        service.delete_local_document(db=self.client.name, doc_id="x")
        self.assertEqual(self.client.all_docs()[0], 0)

    def test_bulk_get_and_streams(self):
        service = self.client.service
        rev = self.client.put({"_id": "a", "n": 1})
        from ibmcloudant.cloudant_v1 import BulkGetQueryDocument
        found = service.post_bulk_get(
            db=self.client.name, docs=[BulkGetQueryDocument(id="a", rev=rev)], revs=True).get_result()
        self.assertEqual(found["results"][0]["docs"][0]["ok"]["n"], 1)
        self.assertEqual(found["results"][0]["docs"][0]["ok"]["_revisions"]["start"], 1)
        stream = service.get_document_as_stream(db=self.client.name, doc_id="a").get_result()
        self.assertIn(b'"n":1', stream.content)

    def test_changes_follower(self):
        from ibmcloudant.features.changes_follower import ChangesFollower
        self.client.bulk([{"_id": f"{number:03}"} for number in range(25)])
        follower = ChangesFollower(self.client.service, db=self.client.name, limit=25)
        self.assertEqual([item.id for item in follower.start_one_off()], [f"{number:03}" for number in range(25)])


@needs("aiocouch")
class AioCouchCalls(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        from aiocouch import CouchDB
        self.couch = CouchDB(URL, user=USER, password=PASSWORD)
        await self.couch.check_credentials()
        self.database = await self.couch.create("calls-aiocouch")

    async def asyncTearDown(self):
        await self.database.delete()
        await self.couch.close()

    async def test_documents(self):
        document = await self.database.create("a/b c", data={"n": 1})
        await document.save()
        again = await self.database["a/b c"]
        self.assertEqual(again["n"], 1)
        again["n"] = 2
        await again.save()
        self.assertEqual((await again.info())["rev"].split("-")[0], "2")
        self.assertEqual(len(await again.revs()), 2)
        await again.delete()
        self.assertEqual([id async for id in self.database.akeys()], [])

    async def test_conflict(self):
        from aiocouch import ConflictError
        document = await self.database.create("a", data={"n": 1})
        await document.save()
        one = await self.database["a"]
        other = await self.database["a"]
        one["n"] = 2
        await one.save()
        other["n"] = 3
        with self.assertRaises(ConflictError):
            await other.save()

    async def test_bulk(self):
        async with self.database.create_docs([f"d{number}" for number in range(20)]) as bulk:
            async for document in bulk:
                document["n"] = 1
        self.assertEqual(len(bulk.ok), 20)
        async with self.database.update_docs(["d1", "d2"]) as bulk:
            async for document in bulk:
                document["n"] = 2
        self.assertEqual((await self.database["d2"])["n"], 2)
        found = [document.id async for document in self.database.docs(prefix="d1")]
        self.assertEqual(found, ["d1"] + [f"d1{number}" for number in range(10)])

    async def test_continuous_feed(self):
        document = await self.database.create("before")
        await document.save()

        async def write():
            await asyncio.sleep(0.3)
            await (await self.database.create("after")).save()
        task = asyncio.create_task(write())
        seen = []
        async for event in self.database.changes(feed="continuous", include_docs=True):
            seen.append((event.id, (await event.doc()).id))
            if len(seen) == 2:
                break
        await task
        self.assertEqual(seen, [("before", "before"), ("after", "after")])

    async def test_wrong_password(self):
        from aiocouch import CouchDB, UnauthorizedError
        couch = CouchDB(URL, user=USER, password="wrong")
        with self.assertRaises(UnauthorizedError):
            await couch.check_credentials()
        await couch.close()


class Replication(unittest.TestCase):
    """A pull and a push as CouchDB's replicator makes them, in plain requests. Both ends are this server."""

    def request(self, method, path, body=None):
        import base64
        import json
        import urllib.error
        import urllib.request
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(URL + path, data=data, method=method)
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        request.add_header("Authorization", f"Basic {login}")
        request.add_header("Content-Type", "application/json")
        request.add_header("Accept", "application/json")
        try:
            answer = urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            answer = error
        text = answer.read()
        return answer.status, json.loads(text) if text else None

    def setUp(self):
        for name in ("source", "target"):
            self.assertEqual(self.request("PUT", f"/replicate-{name}")[0], 201)
            self.addCleanup(self.request, "DELETE", f"/replicate-{name}")

    def replicate(self, since):
        source, target = "/replicate-source", "/replicate-target"
        _, changes = self.request("GET", f"{source}/_changes?style=all_docs&since={since}")
        revs = {row["id"]: [change["rev"] for change in row["changes"]] for row in changes["results"]}
        status, missing = self.request("POST", f"{target}/_revs_diff", revs)
        self.assertEqual(status, 200)
        wanted = [{"id": id, "rev": rev} for id, entry in missing.items() for rev in entry["missing"]]
        _, found = self.request(
            "POST", f"{source}/_bulk_get?revs=true&latest=true&attachments=true", {"docs": wanted})
        documents = [entry["ok"] for result in found["results"] for entry in result["docs"]]
        status, failures = self.request("POST", f"{target}/_bulk_docs", {"new_edits": False, "docs": documents})
        self.assertEqual((status, failures), (201, []))
        for name in (source, target):
            self.assertEqual(self.request("POST", f"{name}/_ensure_full_commit", {})[0], 201)
            self.assertEqual(self.request("PUT", f"{name}/_local/check", {"since": changes["last_seq"]})[0], 201)
        return changes["last_seq"], len(wanted)

    def leaves(self, database):
        _, changes = self.request("GET", f"{database}/_changes?style=all_docs&include_docs=true&attachments=true")
        for row in changes["results"]:
            # The digest is that of the stored bytes: an upload of text is stored as gzip, a replica as it comes.
            for attachment in row["doc"].get("_attachments", {}).values():
                attachment.pop("digest")
        return {
            row["id"]: (sorted(change["rev"] for change in row["changes"]), row.get("deleted", False), row["doc"])
            for row in changes["results"]
        }

    def test_both(self):
        content = "aGVsbG8gaGVsbG8gaGVsbG8="
        for number in range(30):
            body = {"n": number}
            if number % 7 == 0:
                body["_attachments"] = {"a.txt": {"content_type": "text/plain", "data": content}}
            self.assertEqual(self.request("PUT", f"/replicate-source/d{number}", body)[0], 201)
        history = {"start": 2, "ids": ["b" * 32, "a" * 32]}
        for letter in "bc":
            history["ids"][0] = letter * 32
            document = {"_id": "conflicted", "_rev": f"2-{letter * 32}", "_revisions": history, "v": letter}
            self.request("POST", "/replicate-source/_bulk_docs", {"new_edits": False, "docs": [document]})
        since, count = self.replicate(0)
        self.assertEqual(count, 32)
        self.assertEqual(self.leaves("/replicate-source"), self.leaves("/replicate-target"))
        since, count = self.replicate(since)
        self.assertEqual(count, 0)
        rev = self.request("GET", "/replicate-source/d0")[1]["_rev"]
        self.assertEqual(self.request("DELETE", f"/replicate-source/d0?rev={rev}")[0], 200)
        rev = self.request("GET", "/replicate-source/d7")[1]["_rev"]
        self.assertEqual(self.request("PUT", f"/replicate-source/d7?rev={rev}", {"n": "no attachment"})[0], 201)
        since, count = self.replicate(since)
        self.assertEqual(count, 2)
        self.assertEqual(self.leaves("/replicate-source"), self.leaves("/replicate-target"))
        self.assertEqual(self.request("GET", "/replicate-target/_local/check")[1]["since"], since)


if __name__ == "__main__":
    unittest.main()
