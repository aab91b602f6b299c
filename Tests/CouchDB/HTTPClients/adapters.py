"""The clients behind one face: each method makes the client's own calls.

Missing documents raise `Missing`, refused writes `Conflict`. Documents are dicts with _id and _rev.
"""

import asyncio
import base64
import io
import json
import os
import urllib.parse
import urllib.request

from model import Conflict, Missing

URL = os.environ.get("TOUCHSTONE_URL", "http://127.0.0.1:5984")
USER = os.environ.get("TOUCHSTONE_USER", "admin")
PASSWORD = os.environ.get("TOUCHSTONE_PASSWORD", "secret")
PARTS = urllib.parse.urlsplit(URL)


def url_with_login(user=USER, password=PASSWORD):
    return f"{PARTS.scheme}://{urllib.parse.quote(user)}:{urllib.parse.quote(password)}@{PARTS.netloc}"


class Adapter:
    """What the scenarios need of a client."""
    package = None
    escapes = True  # whether the client escapes the IDs of documents
    sends_empty = True  # whether it sends and reads empty attachments
    compresses = False  # whether it compresses attachments on the way

    def leaves(self, id):
        """The revisions of all leaves, asked for in plain HTTP: not all clients say what a deletion is called."""
        request = urllib.request.Request(
            f"{URL}/{self.name}/{urllib.parse.quote(id, safe='')}?open_revs=all", headers={"Accept": "application/json"})
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        request.add_header("Authorization", f"Basic {login}")
        with urllib.request.urlopen(request) as answer:
            return {leaf["ok"]["_rev"] for leaf in json.load(answer)}


class CouchDB3(Adapter):
    package = "couchdb3"
    escapes = False
    sends_empty = False

    def __init__(self, name):
        import couchdb3
        import couchdb3.exceptions
        self.errors = couchdb3.exceptions
        self.server = couchdb3.Server(URL, user=USER, password=PASSWORD)
        self.database = self.server.create(name)
        self.name = name

    def call(self, function, *arguments, **options):
        try:
            return function(*arguments, **options)
        except self.errors.NotFoundError as error:
            raise Missing(str(error)) from error
        except self.errors.ConflictError as error:
            raise Conflict(str(error)) from error

    def drop(self):
        self.server.delete(self.name)

    def get(self, id, **options):
        return dict(self.call(self.database.get, id, check=True, **options))

    def put(self, document):
        id, ok, rev = self.call(self.database.save, document)
        return rev

    def delete(self, id, rev):
        self.call(self.database.delete, id, rev)
        return None

    def bulk(self, documents, new_edits=True):
        return self.database.bulk_docs(documents, new_edits=new_edits)

    def all_docs(self, **options):
        options = {name: json.dumps(value) if name.endswith("key") else value for name, value in options.items()}
        result = self.database.all_docs(**options)
        return result.total_rows, [dict(row) for row in result.rows]

    def changes(self, since=0):
        result = self.database.changes(since=since)
        return result["last_seq"], list(result["results"])

    def view(self, design, view, **options):
        return [dict(row) for row in self.database.view(design, view, **options).rows]

    def put_attachment(self, id, rev, name, content, type):
        id, ok, rev = self.call(
            self.database.put_attachment, id, name, content=content, content_type=type, rev=rev)
        return rev

    def get_attachment(self, id, name):
        return self.call(self.database.get_attachment, id, name).content

    def delete_attachment(self, id, rev, name):
        self.call(self.database.delete_attachment, id, name, rev)


class PyCouchDB(Adapter):
    package = "pycouchdb"
    escapes = False

    def __init__(self, name):
        import pycouchdb
        from pycouchdb import exceptions
        self.errors = exceptions
        self.server = pycouchdb.Server(url_with_login() + "/")
        self.database = self.server.create(name)
        self.name = name

    def call(self, function, *arguments, **options):
        try:
            return function(*arguments, **options)
        except self.errors.NotFound as error:
            raise Missing(str(error)) from error
        except self.errors.Conflict as error:
            raise Conflict(str(error)) from error

    def drop(self):
        self.server.delete(self.name)

    def get(self, id, **options):
        return self.call(
            self.database.get, id, params={name: json.dumps(value) for name, value in options.items()} or None)

    def put(self, document):
        return self.call(self.database.save, dict(document))["_rev"]

    def delete(self, id, rev):
        self.call(self.database.delete, {"_id": id, "_rev": rev})
        return None

    def bulk(self, documents, new_edits=True):
        if not new_edits:
            resource = self.database.resource
            body = json.dumps({"docs": documents, "new_edits": False})
            return self.call(resource.post, "_bulk_docs", data=body.encode())[1]
        made = self.call(self.database.save_bulk, [dict(document) for document in documents], transaction=False)
        return [{"id": document["_id"], "rev": document["_rev"]} for document in made]

    def all_docs(self, **options):
        rows = self.call(self.database.all, params=options, as_list=True) if not options else None
        if rows is None:
            encoded = {name: json.dumps(value) for name, value in options.items()}
            result = self.call(self.database.resource.get, "_all_docs", params=encoded)[1]
            return result["total_rows"], result["rows"]
        return len(rows), rows

    def changes(self, since=0):
        return self.call(self.database.changes_list, since=since)

    def view(self, design, view, **options):
        return self.call(self.database.query, f"{design}/{view}", as_list=True, **options)

    def put_attachment(self, id, rev, name, content, type):
        document = {"_id": id, "_rev": rev}
        return self.call(
            self.database.put_attachment, document, io.BytesIO(content), filename=name, content_type=type)["_rev"]

    def get_attachment(self, id, name):
        return self.call(self.database.get_attachment, {"_id": id, "_rev": self.get(id)["_rev"]}, name)

    def delete_attachment(self, id, rev, name):
        self.call(self.database.delete_attachment, {"_id": id, "_rev": rev}, name)


class CouchDBPython(Adapter):
    package = "couchdb"
    sends_empty = False

    def __init__(self, name):
        import couchdb
        self.errors = couchdb.http
        self.server = couchdb.Server(url_with_login() + "/")
        self.database = self.server.create(name)
        self.name = name

    def call(self, function, *arguments, **options):
        try:
            return function(*arguments, **options)
        except self.errors.ResourceNotFound as error:
            raise Missing(str(error)) from error
        except self.errors.ResourceConflict as error:
            raise Conflict(str(error)) from error

    def drop(self):
        self.server.delete(self.name)

    def get(self, id, **options):
        document = self.database.get(id, **options)
        if document is None:
            raise Missing(id)
        return dict(document)

    def put(self, document):
        return self.call(self.database.save, dict(document))[1]

    def delete(self, id, rev):
        self.call(self.database.delete, {"_id": id, "_rev": rev})
        return None

    def bulk(self, documents, new_edits=True):
        documents = [dict(document) for document in documents]
        options = {} if new_edits else {"new_edits": False}
        return [
            {"id": id, "rev": rev} for ok, id, rev in self.database.update(documents, **options) if ok]

    def all_docs(self, **options):
        result = self.database.view("_all_docs", **options)
        return result.total_rows, [dict(row) for row in result.rows]

    def changes(self, since=0):
        result = self.database.changes(since=since)
        return result["last_seq"], result["results"]

    def view(self, design, view, **options):
        return [dict(row) for row in self.database.view(f"{design}/{view}", **options).rows]

    def put_attachment(self, id, rev, name, content, type):
        document = {"_id": id, "_rev": rev}
        self.call(self.database.put_attachment, document, content, filename=name, content_type=type)
        return document["_rev"]

    def get_attachment(self, id, name):
        found = self.database.get_attachment(id, name)
        if found is None:
            raise Missing(name)
        return found.read()

    def delete_attachment(self, id, rev, name):
        self.call(self.database.delete_attachment, {"_id": id, "_rev": rev}, name)


class Cloudant(Adapter):
    package = "ibmcloudant"
    sends_empty = False
    compresses = True

    def __init__(self, name):
        from ibm_cloud_sdk_core import ApiException
        from ibmcloudant import CouchDbSessionAuthenticator
        from ibmcloudant.cloudant_v1 import CloudantV1
        self.error = ApiException
        self.service = CloudantV1(authenticator=CouchDbSessionAuthenticator(USER, PASSWORD))
        self.service.set_service_url(URL)
        self.service.put_database(db=name)
        self.name = name

    def call(self, function, **options):
        try:
            return function(db=self.name, **options).get_result()
        except self.error as error:
            if error.status_code == 404:
                raise Missing(str(error)) from error
            if error.status_code == 409:
                raise Conflict(str(error)) from error
            raise

    def drop(self):
        self.service.delete_database(db=self.name)

    def get(self, id, **options):
        return self.call(self.service.get_document, doc_id=id, **options)

    def put(self, document):
        if document["_id"].startswith("_design/"):
            return self.call(
                self.service.put_design_document, ddoc=document["_id"][8:], design_document=document)["rev"]
        return self.call(self.service.put_document, doc_id=document["_id"], document=document)["rev"]

    def delete(self, id, rev):
        return self.call(self.service.delete_document, doc_id=id, rev=rev)["rev"]

    def bulk(self, documents, new_edits=True):
        body = {"docs": documents, "new_edits": new_edits}
        return self.call(self.service.post_bulk_docs, bulk_docs=body)

    NAMES = {"startkey": "start_key", "endkey": "end_key"}

    def all_docs(self, **options):
        options = {self.NAMES.get(name, name): value for name, value in options.items()}
        result = self.call(self.service.post_all_docs, **options)
        return result["total_rows"], result["rows"]

    def changes(self, since=0):
        result = self.call(self.service.post_changes, since=str(since))
        return result["last_seq"], result["results"]

    def view(self, design, view, **options):
        options = {self.NAMES.get(name, name): value for name, value in options.items()}
        return self.call(self.service.post_view, ddoc=design, view=view, **options)["rows"]

    def put_attachment(self, id, rev, name, content, type):
        return self.call(
            self.service.put_attachment, doc_id=id, attachment_name=name, attachment=io.BytesIO(content),
            content_type=type, rev=rev)["rev"]

    def get_attachment(self, id, name):
        result = self.call(self.service.get_attachment, doc_id=id, attachment_name=name)
        return result.content

    def delete_attachment(self, id, rev, name):
        self.call(self.service.delete_attachment, doc_id=id, attachment_name=name, rev=rev)


class AioCouch(Adapter):
    """Each call runs in a loop that lives as long as the adapter."""
    package = "aiocouch"

    def __init__(self, name):
        from aiocouch import CouchDB, exception
        self.errors = exception
        self.loop = asyncio.new_event_loop()
        self.name = name

        async def begin():
            self.couch = CouchDB(URL, user=USER, password=PASSWORD)
            await self.couch.check_credentials()
            return await self.couch.create(name)
        self.database = self.loop.run_until_complete(begin())

    def call(self, coroutine):
        try:
            return self.loop.run_until_complete(coroutine)
        except self.errors.NotFoundError as error:
            raise Missing(str(error)) from error
        except self.errors.ConflictError as error:
            raise Conflict(str(error)) from error

    def drop(self):
        async def end():
            await self.database.delete()
            await self.couch.close()
        self.loop.run_until_complete(end())
        self.loop.close()

    def get(self, id, **options):
        from aiocouch.document import Document
        document = Document(self.database, id)
        # `_get` is the client's request for a document with options.
        return self.call(document._get(**options))

    def put(self, document):
        from aiocouch.document import Document
        mine = Document(self.database, document["_id"])
        return self.call(mine._put(data=dict(document)))[1]["rev"]

    def delete(self, id, rev):
        from aiocouch.document import Document
        return self.call(Document(self.database, id)._delete(rev=rev))[1]["rev"]

    def bulk(self, documents, new_edits=True):
        return self.call(self.database._bulk_docs(documents, new_edits=new_edits))

    def all_docs(self, **options):
        from aiocouch.view import AllDocsView
        options = {name: json.dumps(value) if name.endswith("key") else value for name, value in options.items()}
        result = self.call(AllDocsView(self.database)._get(**options))
        return result["total_rows"], result["rows"]

    def changes(self, since=0):
        async def read():
            found = []
            last = since
            # aiocouch asks for a heartbeat of continuous feeds, which then never end.
            async for event in self.database.changes(last_event_id=str(since)):
                found.append(event.json)
                last = event.sequence
            return last, found
        return self.call(read())

    def view(self, design, view, **options):
        async def read():
            return (await self.database.view(design, view)._get(**options))["rows"]
        return self.call(read())

    def put_attachment(self, id, rev, name, content, type):
        async def write():
            document = await self.database.get(id)
            await document.attachment(name).save(content, type)
            return document["_rev"]
        return self.call(write())

    def get_attachment(self, id, name):
        async def read():
            document = await self.database.get(id)
            return await document.attachment(name).fetch()
        return self.call(read())

    def delete_attachment(self, id, rev, name):
        async def remove():
            document = await self.database.get(id)
            attachment = document.attachment(name)
            await attachment.fetch()
            await attachment.delete()
        return self.call(remove())


ADAPTERS = [CouchDB3, PyCouchDB, CouchDBPython, Cloudant, AioCouch]
