"""Each client calls every endpoint that it has a call for, and that makes sense for a database of one node."""

import asyncio
import io
import json
import threading
import unittest

import adapters
from adapters import PASSWORD, URL, USER
from test_calls import adapters_put, needs

DESIGN = {
    "language": "javascript",
    "views": {
        "by_n": {"map": "function (doc) { if (doc.n !== undefined) { emit(doc.n, doc._id); } }"},
        "count": {"map": "function (doc) { if (doc.n !== undefined) { emit(doc.n, 1); } }", "reduce": "_count"},
    },
    "filters": {"odd": "function (doc, req) { return doc.n % 2 === 1; }"},
}
MISSING = "1-" + "0" * 32


def later(database, id, seconds=0.3):
    """Writes a document beside a client that waits."""
    timer = threading.Timer(seconds, lambda: adapters_put(database, id))
    timer.start()
    return timer


@needs("couchdb3")
class CouchDB3Endpoints(unittest.TestCase):
    name = "endpoints-couchdb3"

    def setUp(self):
        self.client = adapters.CouchDB3(self.name)
        self.addCleanup(self.client.drop)
        self.server, self.database = self.client.server, self.client.database

    def test_server(self):
        self.assertTrue(self.server.check_user(USER, PASSWORD))
        self.assertEqual(len(self.server.membership()["all_nodes"]), 1)
        self.assertIn(self.name, self.server)
        self.assertEqual(self.server.all_dbs(startkey=json.dumps(self.name), limit=1), [self.name])
        self.assertEqual(self.database.info()["db_name"], self.name)
        self.assertEqual(self.server.get(self.name, check=True).info()["doc_count"], 0)

    def test_reading(self):
        first = self.client.put({"_id": "a", "n": 1})
        second = self.client.put({"_id": "a", "_rev": first, "n": 2})
        other = "2-" + "f" * 32
        self.database.bulk_docs(
            [{"_id": "a", "_rev": other, "n": 3, "_revisions": {"start": 2, "ids": ["f" * 32, first[2:]]}}],
            new_edits=False)
        winner = self.database.get("a", conflicts=True)
        self.assertEqual({winner["_rev"], *winner["_conflicts"]}, {second, other})
        self.assertEqual(self.database.get("a", rev=first)["n"], 1)
        self.assertEqual(self.database.get("a", revs=True)["_revisions"]["start"], 2)
        self.assertEqual(len(self.database.get("a", revs_info=True)["_revs_info"]), 2)
        self.assertIn("_local_seq", self.database.get("a", local_seq=True))
        self.assertIn("_revs_info", self.database.get("a", meta=True))
        self.assertEqual(self.database.get("a", rev=first, latest=True)["_rev"].split("-")[0], "2")
        self.assertEqual(self.database.get("nosuch", default_value="none"), "none")
        self.assertIn("a", self.database)
        self.assertEqual(self.database.rev("a"), winner["_rev"])
        found = self.database.bulk_get([{"id": "a", "rev": first}, {"id": "nosuch"}], revs=True)
        self.assertEqual(len(found), 2)

    def test_lists(self):
        self.client.bulk([{"_id": f"{number:02}", "n": number} for number in range(20)])
        self.database.put_design("d", views=DESIGN["views"])
        rows = self.database.all_docs(keys=["03", "nosuch"], include_docs=True).rows
        self.assertEqual([row.get("id") for row in rows], ["03", None])
        listed = self.database.design_docs(include_docs=True)
        self.assertEqual([row["id"] for row in listed.rows], ["_design/d"])
        rows = self.database.all_docs(startkey='"05"', endkey='"07"', inclusive_end=False, descending=False).rows
        self.assertEqual([row["id"] for row in rows], ["05", "06"])

    def test_views(self):
        self.client.bulk([{"_id": f"{number:02}", "n": number % 5} for number in range(20)])
        self.database.put_design("d", views=DESIGN["views"])
        view = self.database.view
        self.assertEqual(len(view("d", "by_n", startkey=1, endkey=2, include_docs=True).rows), 8)
        self.assertEqual([row["key"] for row in view("d", "by_n", descending=True, limit=2).rows], [4, 4])
        self.assertEqual([row["value"] for row in view("d", "count", group=True).rows], [4] * 5)
        self.assertEqual(view("d", "count", reduce=False, key=3, skip=1).rows[0]["id"], "08")
        self.assertEqual(self.database.get_design("d")["_id"], "_design/d")
        self.assertTrue(self.database.compact("d"))

    def test_changes(self):
        self.client.bulk([{"_id": f"{number:02}", "n": number} for number in range(10)])
        changes = self.database.changes(limit=3, include_docs=True, style="all_docs")
        self.assertEqual([row["doc"]["n"] for row in changes["results"]], [0, 1, 2])
        self.assertEqual(changes["pending"], 7)
        self.assertEqual(
            [row["id"] for row in self.database.changes(doc_ids=["03", "x"])["results"]], ["03"])
        self.assertEqual(
            [row["id"] for row in self.database.changes(descending=True, limit=2)["results"]], ["09", "08"])
        timer = later(self.name, "woken")
        found = self.database.changes(feed="longpoll", since="now", timeout=20_000)
        self.assertEqual([row["id"] for row in found["results"]], ["woken"])
        timer.join()
        timer = later(self.name, "streamed")
        with self.database.changes_stream(since="now", heartbeat=100) as stream:
            self.assertEqual(next(stream)["id"], "streamed")
        timer.join()
        with self.database.changes_stream(doc_ids=["05"], filter="_doc_ids", timeout=200) as stream:
            rows = list(stream)
        self.assertEqual([row.get("id") for row in rows], ["05", None])

    def test_attachments(self):
        rev = self.client.put({"_id": "doc"})
        rev = self.client.put_attachment("doc", rev, "dir/a b.txt", b"some text", "text/plain")
        found = self.database.get("doc", attachments=True)
        self.assertEqual(list(found["_attachments"]), ["dir/a b.txt"])
        self.assertEqual(found["_attachments"]["dir/a b.txt"]["data"], "c29tZSB0ZXh0")
        stub = self.database.get("doc", att_encoding_info=True)["_attachments"]["dir/a b.txt"]
        self.assertEqual((stub["encoding"], stub["length"]), ("gzip", 9))

    def test_purge_and_security(self):
        rev = self.client.put({"_id": "gone"})
        self.assertEqual(self.database.purge({"gone": [rev]})["purged"], {"gone": [rev]})
        self.assertEqual(self.database.security().admins.roles, ["_admin"])


@needs("couchdb3")
class AsyncCouchDB3Endpoints(unittest.IsolatedAsyncioTestCase):
    name = "endpoints-couchdb3-async"

    async def test_calls(self):
        from couchdb3.aio.async_server import AsyncServer
        server = AsyncServer(URL, user=USER, password=PASSWORD)
        self.assertTrue(await server.up())
        database = await server.create(self.name)
        try:
            self.assertTrue(await server.has_db(self.name))
            self.assertIn(self.name, await server.all_dbs())
            await database.bulk_docs([{"_id": f"{number}", "n": number} for number in range(10)])
            id, ok, rev = await database.save({"_id": "a", "n": 1})
            await database.put_attachment("a", "f", content=b"bytes", content_type="image/png", rev=rev)
            self.assertEqual((await database.get_attachment("a", "f")).content, b"bytes")
            self.assertEqual(len((await database.all_docs()).rows), 11)
            await database.put_design("d", views=DESIGN["views"])
            self.assertEqual((await database.view("d", "count")).rows[0]["value"], 11)
            await database.copy("a", "b")
            self.assertEqual((await database.get("b"))["n"], 1)
            changes = await database.changes(doc_ids=["b"])
            self.assertEqual([row["id"] for row in changes["results"]], ["b"])
            async with database.changes_stream(limit=3) as stream:
                self.assertEqual([row.get("id") async for row in stream], ["0", "1", "2", None])
            found = await database.get("b")
            self.assertTrue(await database.delete("b", found["_rev"]))
            self.assertTrue(await database.compact())
        finally:
            await server.delete(self.name)


@needs("couchdb")
class CouchDBPythonEndpoints(unittest.TestCase):
    name = "endpoints-couchdb"

    def setUp(self):
        self.client = adapters.CouchDBPython(self.name)
        self.addCleanup(self.client.drop)
        self.database = self.client.database

    def test_database(self):
        self.assertEqual(self.database.name, self.name)
        self.assertEqual(self.database.info()["doc_count"], 0)
        self.assertTrue(self.database)
        self.assertEqual(self.database.security["admins"], {"roles": ["_admin"]})

    def test_copy_and_purge(self):
        self.database["a"] = {"n": 1}
        rev = self.database.copy("a", "b")
        self.assertEqual(self.database["b"].rev, rev)
        self.database.copy("a", self.database["b"])
        self.assertEqual(self.database["b"].rev.split("-")[0], "2")
        last = self.database["b"]
        self.assertEqual(self.database.purge([last])["purged"]["b"], [last.rev])
        self.assertNotIn("b", self.database)

    def test_attachments(self):
        self.database["a"] = {"n": 1}
        document = self.database["a"]
        self.database.put_attachment(document, io.BytesIO(b"content"), "dir/name.bin", "application/octet-stream")
        self.assertEqual(self.database.get_attachment("a", "dir/name.bin").read(), b"content")
        self.assertEqual(self.database.get_attachment("a", "nosuch", default="none"), "none")
        self.database.delete_attachment(self.database["a"], "dir/name.bin")
        self.assertNotIn("_attachments", self.database["a"])

    def test_options(self):
        first = self.database.save({"_id": "a", "n": 1})[1]
        self.database.save({"_id": "a", "_rev": first, "n": 2})
        self.assertEqual(self.database.get("a", rev=first)["n"], 1)
        self.assertEqual(len(self.database.get("a", revs=True)["_revisions"]["ids"]), 2)
        self.assertEqual(len(self.database.get("a", open_revs="all")), 1)

    def test_views(self):
        self.database.update([{"_id": f"{number:02}", "n": number % 5} for number in range(20)])
        self.database.save(dict(DESIGN, _id="_design/d"))
        view = self.database.view
        self.assertEqual(len(view("d/by_n", keys=[1, 2], include_docs=True).rows), 8)
        self.assertEqual([row.value for row in view("d/count", group=True)], [4] * 5)
        self.assertEqual([row.key for row in view("d/by_n")[3:]], [3] * 4 + [4] * 4)
        self.assertTrue(self.database.compact("d"))

    def test_changes(self):
        self.database.update([{"_id": f"{number:02}", "n": number} for number in range(10)])
        self.database.save(dict(DESIGN, _id="_design/d"))
        found = self.database.changes(filter="d/odd")["results"]
        self.assertEqual([row["id"] for row in found], ["01", "03", "05", "07", "09"])
        found = self.database.changes(style="all_docs", limit=2, descending=True)["results"]
        self.assertEqual([row["id"] for row in found], ["_design/d", "09"])
        # A feed with rows, heartbeats and its end.
        rows = list(self.database.changes(feed="continuous", since=8, timeout=300))
        self.assertEqual([row.get("id") for row in rows], ["08", "09", "_design/d", None])


@needs("pycouchdb")
class PyCouchDBEndpoints(unittest.TestCase):
    name = "endpoints-pycouchdb"

    def setUp(self):
        self.client = adapters.PyCouchDB(self.name)
        self.addCleanup(self.client.drop)
        self.server, self.database = self.client.server, self.client.database

    def test_server(self):
        self.assertTrue(self.server.version())
        self.assertGreaterEqual(len(self.server), 1)
        self.assertEqual(self.server.database(self.name).config()["doc_count"], 0)

    def test_documents(self):
        document = self.database.save({"_id": "a", "n": 1})
        self.assertIn("a", self.database)
        self.assertEqual(self.database.get("a", params={"revs": "true"})["_revisions"]["start"], 1)
        self.database.delete(document["_id"])
        self.assertNotIn("a", self.database)
        made = self.database.save({"n": 2})
        self.assertTrue(made["_id"])
        self.assertTrue(self.database.save({"_id": "batched"}, batch=True))

    def test_attachments(self):
        import pycouchdb
        document = self.database.save({"_id": "a"})
        document = self.database.put_attachment(
            document, io.BytesIO(b"text " * 100), filename="a.txt", content_type="text/plain")
        self.assertEqual(self.database.get_attachment(document, "a.txt"), b"text " * 100)
        stream = self.database.get_attachment(document, "a.txt", stream=True)
        self.assertEqual(b"".join(stream.iter_content(64)), b"text " * 100)
        document = self.database.delete_attachment(document, "a.txt")
        with self.assertRaises(pycouchdb.exceptions.NotFound):
            self.database.get_attachment(document, "a.txt")

    def test_views(self):
        self.database.save_bulk([{"_id": f"{number:02}", "n": number % 5} for number in range(20)], transaction=False)
        self.database.save(dict(DESIGN, _id="_design/d"))
        self.assertEqual(len(list(self.database.query("d/by_n", startkey=1, endkey=2))), 8)
        self.assertEqual(list(self.database.query("d/count", group=True, flat="value")), [4] * 5)
        self.assertEqual(len(list(self.database.query("d/by_n", keys=[1]))), 4)
        pages = [len(page) for page in self.database.view_pages("d/by_n", 8)]
        self.assertEqual(sum(pages), 20)
        self.assertEqual(len(list(self.database.all(keys=["01", "02"], as_list=True))), 2)
        self.assertTrue(self.database.compact_view("d")["ok"])

    def test_feeds(self):
        import pycouchdb
        self.database.save({"_id": "before"})
        seen = []

        class Reader(pycouchdb.feedreader.BaseFeedReader):
            def on_message(self, message):
                seen.append(message["id"])
                if len(seen) == 2:
                    raise pycouchdb.exceptions.FeedReaderExited()

        timer = later(self.name, "after")
        self.database.changes_feed(Reader(), since=0, heartbeat=100)
        timer.join()
        self.assertEqual(seen, ["before", "after"])


@needs("ibmcloudant")
class CloudantEndpoints(unittest.TestCase):
    name = "endpoints-cloudant"

    def setUp(self):
        self.client = adapters.Cloudant(self.name)
        self.addCleanup(self.client.drop)
        self.service = self.client.service

    def ask(self, call, **options):
        return call(db=self.name, **options).get_result()

    def test_server(self):
        service = self.service
        self.assertEqual(service.head_up_information().get_status_code(), 200)
        self.assertEqual(service.head_database(db=self.name).get_status_code(), 200)
        self.assertEqual(self.ask(service.get_database_information)["db_name"], self.name)
        self.assertEqual(len(service.get_membership_information().get_result()["all_nodes"]), 1)
        self.assertEqual(service.get_active_tasks().get_result(), [])
        self.assertEqual(service.get_scheduler_jobs().get_result()["total_rows"], 0)
        self.assertEqual(service.get_scheduler_docs().get_result()["docs"], [])
        self.assertEqual(service.get_all_dbs(start_key=json.dumps(self.name), limit=1).get_result(), [self.name])
        self.assertEqual(self.ask(service.get_security)["admins"], {"roles": ["_admin"]})

    def test_documents(self):
        from ibm_cloud_sdk_core import ApiException
        service = self.service
        made = self.ask(service.post_document, document={"_id": "a", "n": 1})
        self.assertEqual(
            service.head_document(db=self.name, doc_id="a").get_headers()["ETag"], f'"{made["rev"]}"')
        with self.assertRaises(ApiException) as raised:
            service.head_document(db=self.name, doc_id="a", if_none_match=f'"{made["rev"]}"')
        self.assertEqual(raised.exception.status_code, 304)
        changed = self.ask(service.put_document, doc_id="a", document={"n": 2}, rev=made["rev"])
        self.assertEqual(self.ask(service.get_document, doc_id="a", rev=made["rev"])["n"], 1)
        found = self.ask(
            service.get_document, doc_id="a", revs=True, revs_info=True, local_seq=True, conflicts=True)
        self.assertEqual(found["_revisions"]["start"], 2)
        mixed = self.ask(service.get_document_as_mixed, doc_id="a")
        self.assertEqual(mixed["n"], 2)
        related = self.ask(service.get_document_as_related, doc_id="a", attachments=True)
        self.assertEqual(related["n"], 2)
        self.assertTrue(self.ask(service.delete_document, doc_id="a", rev=changed["rev"])["ok"])
        batched = service.put_document(db=self.name, doc_id="batched", document={}, batch="ok")
        self.assertEqual(batched.get_status_code(), 202)

    def test_design_documents(self):
        service = self.service
        made = self.ask(service.put_design_document, ddoc="d", design_document=DESIGN)
        self.assertEqual(
            service.head_design_document(db=self.name, ddoc="d").get_headers()["ETag"], f'"{made["rev"]}"')
        self.assertEqual(self.ask(service.get_design_document, ddoc="d")["language"], "javascript")
        self.assertEqual(self.ask(service.get_design_document_information, ddoc="d")["name"], "d")
        self.assertEqual(self.ask(service.post_design_docs)["total_rows"], 1)
        from ibmcloudant.cloudant_v1 import AllDocsQuery
        found = self.ask(service.post_design_docs_queries, queries=[AllDocsQuery(key="_design/d")])["results"]
        self.assertEqual([row["id"] for row in found[0]["rows"]], ["_design/d"])
        self.assertTrue(self.ask(service.delete_design_document, ddoc="d", rev=made["rev"])["ok"])

    def test_views(self):
        service = self.service
        self.client.bulk([{"_id": f"{number:02}", "n": number % 5} for number in range(20)])
        self.ask(service.put_design_document, ddoc="d", design_document=DESIGN)
        found = self.ask(service.post_view, ddoc="d", view="by_n", keys=[1, 2], include_docs=True)
        self.assertEqual((found["total_rows"], len(found["rows"])), (20, 8))
        stream = self.ask(service.post_view_as_stream, ddoc="d", view="count", group=True)
        self.assertIn(b'"value":4', stream.content)
        from ibmcloudant.cloudant_v1 import ViewQuery
        found = self.ask(
            service.post_view_queries, ddoc="d", view="by_n",
            queries=[ViewQuery(key=1), ViewQuery(descending=True, limit=1)])["results"]
        self.assertEqual([len(result["rows"]) for result in found], [4, 1])
        stream = self.ask(
            service.post_view_queries_as_stream, ddoc="d", view="count", queries=[ViewQuery(group=True)])
        self.assertIn(b'"results"', stream.content)

    def test_bulk(self):
        service = self.service
        made = self.client.bulk([{"_id": letter, "n": 1} for letter in "abc"])
        from ibmcloudant.cloudant_v1 import BulkGetQueryDocument
        docs = [BulkGetQueryDocument(id="a", rev=made[0]["rev"]), BulkGetQueryDocument(id="x")]
        for call in [
            service.post_bulk_get_as_mixed, service.post_bulk_get_as_related, service.post_bulk_get_as_stream,
        ]:
            content = self.ask(call, docs=docs, attachments=True).content
            self.assertIn(b'"n":1', content)
            self.assertIn(b"not_found", content)
        stream = self.ask(service.post_all_docs_as_stream, keys=["a", "c"], include_docs=True)
        self.assertIn(b'"n":1', stream.content)
        from ibmcloudant.cloudant_v1 import AllDocsQuery
        stream = self.ask(service.post_all_docs_queries_as_stream, queries=[AllDocsQuery(limit=1)])
        self.assertIn(b'"total_rows":3', stream.content)

    def test_changes(self):
        service = self.service
        self.client.bulk([{"_id": f"{number:02}", "n": number} for number in range(10)])
        self.ask(service.put_design_document, ddoc="d", design_document=DESIGN)
        found = self.ask(service.post_changes, doc_ids=["03"], filter="_doc_ids")["results"]
        self.assertEqual([row["id"] for row in found], ["03"])
        found = self.ask(service.post_changes, filter="d/odd", include_docs=True)["results"]
        self.assertEqual([row["doc"]["n"] for row in found], [1, 3, 5, 7, 9])
        found = self.ask(service.post_changes, filter="_view", view="d/by_n")["results"]
        self.assertEqual(len(found), 10)
        found = self.ask(service.post_changes, filter="_design")["results"]
        self.assertEqual([row["id"] for row in found], ["_design/d"])
        stream = self.ask(service.post_changes_as_stream, feed="continuous", timeout=200, limit=4)
        self.assertEqual(len(stream.content.strip().splitlines()), 5)
        timer = later(self.name, "woken")
        found = self.ask(service.post_changes, feed="longpoll", since="now", timeout=20_000)["results"]
        self.assertEqual([row["id"] for row in found], ["woken"])
        timer.join()

    def test_attachments(self):
        service = self.service
        service.set_enable_gzip_compression(False)
        rev = self.client.put({"_id": "doc"})
        made = self.ask(
            service.put_attachment, doc_id="doc", attachment_name="a.bin", attachment=io.BytesIO(bytes(range(256))),
            content_type="application/octet-stream", rev=rev)
        head = service.head_attachment(db=self.name, doc_id="doc", attachment_name="a.bin").get_headers()
        self.assertEqual((head["Content-Length"], head["Accept-Ranges"]), ("256", "bytes"))
        part = service.get_attachment(
            db=self.name, doc_id="doc", attachment_name="a.bin", range="bytes=10-19").get_result()
        self.assertEqual(part.content, bytes(range(10, 20)))
        self.assertTrue(
            self.ask(service.delete_attachment, doc_id="doc", attachment_name="a.bin", rev=made["rev"])["ok"])

    def test_local_documents(self):
        service = self.service
        self.assertEqual(
            self.ask(service.put_local_document, doc_id="x", document={"n": 1})["rev"], "0-1")
        self.assertEqual(service.head_local_document(db=self.name, doc_id="x").get_status_code(), 200)
        self.assertTrue(self.ask(service.delete_local_document, doc_id="x")["ok"])

    def test_what_is_not_there(self):
        from ibm_cloud_sdk_core import ApiException
        service = self.service
        for call, options in [
            (service.post_search, {"db": self.name, "ddoc": "d", "index": "i", "query": "q"}),
        ]:
            with self.assertRaises(ApiException) as raised:
                call(**options)
            self.assertEqual(raised.exception.status_code, 501)

    def test_following_changes(self):
        from ibmcloudant.features.changes_follower import ChangesFollower
        self.client.bulk([{"_id": f"{number:03}"} for number in range(30)])
        follower = ChangesFollower(self.service, db=self.name, since="0")
        seen = []
        timer = later(self.name, "after")
        for item in follower.start():
            seen.append(item.id)
            if item.id == "after":
                follower.stop()
        timer.join()
        self.assertEqual(len(seen), 31)

    def test_pages(self):
        from ibmcloudant import PagerType, Pagination
        self.client.bulk([{"_id": f"{number:03}"} for number in range(30)])
        pages = Pagination.new_pagination(self.service, PagerType.POST_ALL_DOCS, db=self.name, limit=7)
        self.assertEqual([row.id for row in pages.rows()], [f"{number:03}" for number in range(30)])


@needs("aiocouch")
class AioCouchEndpoints(unittest.IsolatedAsyncioTestCase):
    name = "endpoints-aiocouch"

    async def asyncSetUp(self):
        from aiocouch import CouchDB
        self.couch = CouchDB(URL, user=USER, password=PASSWORD)
        await self.couch.check_credentials()
        self.database = await self.couch.create(self.name)

    async def asyncTearDown(self):
        await self.database.delete()
        await self.couch.close()

    async def test_server(self):
        self.assertEqual((await self.couch.info())["couchdb"], "Welcome")
        self.assertIn(self.name, await self.couch.keys())
        self.assertEqual((await self.database.info())["db_name"], self.name)

    async def test_documents(self):
        document = await self.database.create("a", data={"n": 1})
        await document.save()
        await document.copy("b")
        self.assertEqual((await self.database["b"])["n"], 1)
        self.assertEqual(await document.conflicts(), [])
        self.assertIsNone((await self.database.get("nosuch", default={})).rev)
        self.assertEqual((await self.database._bulk_get([{"id": "a"}, {"id": "b"}]))["results"][1]["id"], "b")
        self.assertEqual((await self.database._purge({"b": [(await self.database["b"]).rev]}))["purge_seq"], None)

    async def test_attachments(self):
        document = await self.database.create("a")
        await document.save()
        attachment = document.attachment("dir/name")
        await attachment.save(b"content", "application/octet-stream")
        self.assertEqual(await document.attachment("dir/name").fetch(), b"content")
        self.assertTrue(await document.attachment("dir/name").exists())

    async def test_views(self):
        design = await self.database.design_doc("d")
        await design.create_view("by_n", map_function=DESIGN["views"]["by_n"]["map"])
        async with self.database.create_docs([f"{number:02}" for number in range(10)]) as bulk:
            async for document in bulk:
                document["n"] = int(document.id)
        view = self.database.view("d", "by_n")
        self.assertEqual(list((await view.post([3, 4])).keys()), ["03", "04"])
        self.assertEqual(len(list((await view.get(startkey=2, endkey=5)).items())), 4)
        self.assertEqual([value async for value in view.avalues()], [f"{number:02}" for number in range(10)])
        self.assertEqual([document["n"] async for document in view.docs(ids=[7])], [7])
        self.assertEqual(
            [document.id async for document in self.database.docs(["01", "02"])], ["01", "02"])
        self.assertEqual(len([value async for value in self.database.values()]), 10)

    async def test_changes(self):
        async with self.database.create_docs([f"{number:02}" for number in range(5)]) as bulk:
            async for document in bulk:
                document["n"] = 1
        await (await self.database["01"]).delete()
        events = [(event.id, type(event).__name__) async for event in self.database.changes()]
        self.assertEqual(events[-1], ("01", "DeletedEvent"))
        self.assertEqual(len(events), 5)

        # Rows that a feed brings later come at once, each a line.
        async def write():
            for number in range(20):
                await (await self.database.create(f"later{number}")).save()
        task = asyncio.create_task(write())
        seen = []
        async for event in self.database.changes(feed="continuous"):
            seen.append(event.id)
            if seen[-1] == "later19":
                break
        await task
        self.assertEqual(sorted(set(seen) & {f"later{number}" for number in range(20)}),
                         sorted(f"later{number}" for number in range(20)))
