"""People's main paths through the page `/_utils/`, driven in headless Chromium."""

import base64
import json
import os
import pathlib
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

import webdriver

URL = os.environ.get("TOUCHSTONE_URL", "http://127.0.0.1:4984")
USER = os.environ.get("TOUCHSTONE_USER", "admin")
PASSWORD = os.environ.get("TOUCHSTONE_PASSWORD", "secret")
# Where pictures of all views go; none are made without it.
SCREENSHOTS = os.environ.get("TOUCHSTONE_SCREENSHOTS")

WIDTHS = (1280, 390)
HOSTILE = "<img src=x onerror=\"window.broken=1\"> '\"`&amp; 𝄞 \u202eabc\u202c ../%2F?#"
SCRIPT = "</script><script>window.broken=1</script>"


def ask(method, path, body=None):
    """Asks the server itself. Returns the JSON of the answer, also of an error."""
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    request = urllib.request.Request(
        f"{URL}/{path}", None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json", "Accept": "application/json", "Authorization": f"Basic {login}"}, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


def link(*names, **options):
    query = urllib.parse.urlencode(options)
    return f"{URL}/_utils/#/" + "/".join(urllib.parse.quote(name, safe="") for name in names) + (f"?{query}" if query else "")


@unittest.skipIf(webdriver.missing(), webdriver.missing())
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = webdriver.Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.log_in()

    @classmethod
    def log_in(cls):
        browser = cls.browser
        browser.open(f"{URL}/_utils/")
        browser.press("Log in", "//header")
        browser.write("Name", USER)
        browser.write("Password", PASSWORD)
        browser.press("Log in", "//dialog")
        browser.find(f"//header//bdi[.={webdriver.quoted(USER)}]")

    def setUp(self):
        self.browser.resize(WIDTHS[0])
        self.browser.problems()

    def tearDown(self):
        self.assertEqual(self.browser.problems(), [])
        self.assertIsNone(self.browser.run("return window.broken ?? null"))

    def database(self, name, documents=()):
        """A new database. It is deleted after the test."""
        ask("DELETE", name)
        self.addCleanup(ask, "DELETE", name)
        self.assertEqual(ask("PUT", name), {"ok": True})
        if documents:
            ask("POST", f"{name}/_bulk_docs", {"docs": list(documents)})
        return name

    def conflict(self, database):
        """A document with a conflict of two, a tombstone and a gap."""
        def revision(body, *ids):
            return {"_id": "c", **body, "_rev": f"{len(ids)}-{ids[0]}", "_revisions": {"start": len(ids), "ids": list(ids)}}
        ask("POST", f"{database}/_bulk_docs", {"new_edits": False, "docs": [
            revision({"name": "winner", "same": 1}, "f7", "f6", "f5", "f4", "f3", "b2", "a1"),
            revision({"name": "loser", "same": 1, "more": [1]}, "e3", "b2", "a1"), revision({"_deleted": True}, "d2", "a1")]})

    def open(self, *names, **options):
        # A new page each time, so that nothing is left of the one before.
        self.browser.open("about:blank")
        self.browser.open(link(*names, **options))
        self.settle()

    def settle(self):
        """Waits until the view is there."""
        self.browser.until(
            lambda: self.browser.run("const view = document.querySelector('main'); return view?.firstChild && !view.hasAttribute('aria-busy')"),
            "a view that is ready")

    def query(self, text):
        area = self.browser.find("//main//textarea[contains(@class,'code')]")
        self.browser.run("arguments[0].value = ''", {webdriver.ELEMENT: area})
        self.browser.type(area, text)

    # Logins

    def test_a_wrong_password_is_said_and_a_logout_ends_the_session(self):
        browser = self.browser
        browser.press("Log out", "//header")
        browser.press("Log in", "//header")
        browser.write("Name", "nobody")
        browser.write("Password", "wrong")
        browser.press("Log in", "//dialog")
        browser.wait_for_text("incorrect", "dialog .problem")
        # The browser notes the refusal, as it should.
        problems = browser.problems()
        self.assertTrue(problems and all("401" in problem for problem in problems), problems)
        browser.press("Cancel", "//dialog")
        self.assertNotIn("New database", browser.text())
        self.log_in()
        self.assertIn("New database", browser.text())

    # Databases and documents

    def test_a_database_is_made_and_deleted(self):
        browser = self.browser
        ask("DELETE", "page_made")
        self.open()
        browser.press("New database")
        browser.write("Name", "page_made")
        browser.press("Create", "//dialog")
        browser.wait_for_text("0 documents")
        self.assertEqual(ask("GET", "page_made")["doc_count"], 0)
        self.open()
        browser.press("Delete page_made")
        browser.write("Name", "another")
        browser.press("Delete", "//dialog")
        browser.wait_for_text("another name", "dialog")
        self.assertIn("db_name", ask("GET", "page_made"))
        browser.write("Name", "page_made")
        browser.press("Delete", "//dialog")
        browser.until(lambda: "error" in ask("GET", "page_made"), "the database's end")
        browser.until(lambda: "page_made" not in browser.text("main"), "the list without it")

    def test_a_file_is_imported_queried_and_its_plan_drawn(self):
        browser = self.browser
        database = self.database("page_import")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "documents.jsonl"
            file.write_text("".join(json.dumps({"_id": f"d{number:04}", "n": number, "city": ["Rome", "Oslo"][number % 2]}) + "\n"
                                    for number in range(1200)))
            self.open("db", database)
            browser.press("Import")
            browser.type(browser.control("File"), str(file))
            browser.press("Import", "//dialog")
            browser.wait_for_text("1,200 documents")
        self.assertEqual(ask("GET", database)["doc_count"], 1200)

        self.open("db", database, "query")
        self.query("SELECT city, COUNT(*) AS number FROM _ GROUP BY city ORDER BY city")
        browser.keys("escape")
        browser.keys("control", "enter")
        browser.wait_for_text("2 rows")
        self.assertEqual(browser.run("return [...document.querySelectorAll('main td')].map((cell) => cell.innerText)"), ["Oslo", "600", "Rome", "600"])
        browser.press("JSON")
        self.assertEqual(json.loads(browser.text("main pre")), [{"city": "Oslo", "number": 600}, {"city": "Rome", "number": 600}])
        browser.press("Run with times")
        browser.wait_for_text("Scan of all documents")
        self.assertRegex(browser.text(".plan"), r"looked at 1,200")
        self.assertRegex(browser.text(".plan .time"), r"^[\d.]+\s(µs|ms|s)$")
        # More rows than are shown: the query is stopped.
        self.query("SELECT n FROM _")
        browser.press("Run")
        browser.wait_for_text("The first 1,000 rows")

    def test_ids_of_rows_lead_to_their_documents(self):
        browser = self.browser
        database = self.database("page_links", [{"_id": "a b/c", "id": "another"}])
        for language, text, label in (("sql", None, "a b/c"), ("sql", "SELECT META(d).id AS `the key`, id FROM _ AS d", "a b/c"),
                                      ("mango", None, "a b/c")):
            with self.subTest(language=language, text=text):
                self.open("db", database, "query", language=language)
                if text:
                    self.query(text)
                    browser.keys("escape")
                browser.press("Run")
                browser.wait_for_text("1 row" if language == "sql" else "1 document")
                self.assertEqual(browser.run("return [...document.querySelectorAll('main td a')].map((link) => link.innerText)"), [label])
                browser.press(label)
                browser.wait_for_text("Revisions")
                self.assertEqual(browser.text("main h2"), label)

    def test_rows_stay_readable(self):
        browser = self.browser
        words = "A quiet place near the old castle. " * 4
        database = self.database("page_rows", [
            {"_id": f"d{number}", "text": words, "long": "x y " * 1000, "kind": "hotel", **{f"p{index}": index for index in range(5)}}
            for number in range(5)])
        cell = "return document.querySelector(`main tbody td:nth-child(${arguments[0]}) > .text`)"
        for width in WIDTHS:
            browser.resize(width)
            for language in ("sql", "mango"):
                with self.subTest(width=width, language=language):
                    self.open("db", database, "query", language=language)
                    browser.press("Run")
                    browser.wait_for_text("5 rows" if language == "sql" else "5 documents")
                    names = browser.run("return [...document.querySelectorAll('main th')].map((cell) => cell.innerText)")
                    self.assertEqual(sorted(names), sorted(["id" if language == "sql" else "_id", *(["_rev"] if language == "mango" else []),
                                                            "kind", "long", *(f"p{index}" for index in range(5)), "text"]))
                    self.assertGreaterEqual(browser.run(cell + ".offsetWidth", names.index("text") + 1), 190)
                    long = names.index("long") + 1
                    self.assertEqual(len(browser.run(cell + ".textContent", long)), 201)
                    self.assertLess(browser.run("return document.querySelector('main tbody tr').offsetHeight"), 450)
                    browser.press("More")
                    self.assertEqual(len(browser.run(cell + ".textContent", long)), 4000)
                    browser.press("Less")
        browser.press("d3")
        browser.wait_for_text("Revisions")

    def test_a_report_without_a_data_set_is_shown(self):
        browser = self.browser
        if "results" not in ask("GET", "_bench_report"):
            self.skipTest("the server has no report")
        self.open()
        browser.run("""
          const ask = window.fetch;
          window.fetch = async (...request) => {
            const answer = await ask(...request);
            if (!String(request[0]).includes("_bench_report")) return answer;
            const { dataset, ...report } = await answer.json();
            window.without = dataset;
            return new Response(JSON.stringify(report));
          };""")
        browser.press("Bench", "//header")
        browser.wait_for_text("Suite ")
        self.assertTrue(browser.run("return window.without.name"))
        self.assertGreater(len(browser.find_all("//main//tbody/tr")), 3)

    def test_words_are_completed_and_mistakes_have_a_place(self):
        browser = self.browser
        database = self.database("page_words", [{"_id": "a", "postcode": 1}])
        self.open("db", database, "query")
        self.query("SELECT postc")
        browser.wait_for_text("postcode", ".completion")
        browser.keys("enter")
        self.assertEqual(browser.run("return document.querySelector('main textarea').value"), "SELECT postcode")
        self.query("SELECT a FROM _\nWHERE = 1")
        browser.press("Run")
        browser.wait_for_text("Line 2, column 7")
        self.assertTrue(all("400" in problem for problem in browser.problems()))
        browser.press("Show")
        self.assertEqual(browser.run("return document.activeElement.selectionStart"), len("SELECT a FROM _\nWHERE "))

    def test_pages_of_documents_go_forth_and_back(self):
        browser = self.browser
        database = self.database("page_pages", ({"_id": f"d{number:03}"} for number in range(130)))
        first = "return [...document.querySelectorAll('main tbody a')].map((link) => link.innerText)"
        self.open("db", database)
        seen = []
        for count in (50, 50, 30):
            browser.until(lambda: len(browser.run(first)) == count and browser.run(first)[0] not in seen, f"a page of {count}")
            seen += browser.run(first)
            if count == 50:
                browser.press("Next")
        self.assertEqual(seen, [f"d{number:03}" for number in range(130)])
        browser.press("Previous")
        browser.until(lambda: browser.run(first)[:1] == ["d050"], "the page before")
        browser.write("ID begins with", "d12")
        browser.press("Find")
        browser.until(lambda: browser.run(first) == [f"d12{number}" for number in range(10)], "IDs with the prefix")
        browser.write("or condition (SQL++)", "META().id LIKE '%9'")
        browser.press("Find")
        browser.until(lambda: len(browser.run(first)) == 13, "the documents of the condition")
        # What is wrong is said in terms of what was typed, and the field is still there.
        for condition, words in (("n = ", "The condition isn't whole"), ("n ~ 5", "Column 3 of the condition")):
            browser.write("or condition (SQL++)", condition)
            browser.press("Find")
            browser.wait_for_text(words)
        self.assertTrue(all("400" in problem for problem in browser.problems()))

    def test_a_document_is_edited_with_all_its_digits(self):
        browser = self.browser
        database = self.database("page_edit", [{"_id": "a", "big": 9007199254740993, "text": "x"}])
        self.open("db", database, "doc", "a")
        text = browser.run("return document.querySelector('main textarea').value")
        self.assertIn("9007199254740993", text)
        self.query(text.replace('"x"', "oops"))
        browser.press("Save")
        browser.wait_for_text("this is no value")
        self.query(text.replace('"x"', '"y"'))
        browser.press("Save")
        browser.wait_for_text("saved", "#notices")
        self.settle()
        self.assertEqual({**ask("GET", f"{database}/a"), "_rev": ""}, {"_id": "a", "_rev": "", "big": 9007199254740993, "text": "y"})

    def test_a_text_that_is_not_saved_is_kept_until_somebody_decides(self):
        browser = self.browser
        database = self.database("page_typed", [{"_id": "a", "text": "x"}])
        area = "return document.querySelector('main textarea')?.value ?? ''"
        self.open("db", database, "doc", "a")
        self.query('{"text": "typed"}')
        browser.press("Users", "//header")
        browser.wait_for_text("isn't saved", "dialog")
        browser.press("Cancel", "//dialog")
        self.assertEqual(browser.run(area), '{"text": "typed"}')
        self.assertTrue(browser.run("return location.hash").endswith("/doc/a"))
        # The end of a session doesn't take it along either.
        browser.run("return fetch('../_session', { method: 'DELETE' }).then(() => true)")
        browser.press("Save")
        browser.find("//header//button[.='Log in']")
        self.assertEqual(browser.run(area), '{"text": "typed"}')
        browser.press("Log in", "//header")
        browser.write("Name", USER)
        browser.write("Password", PASSWORD)
        browser.press("Log in", "//dialog")
        browser.find(f"//header//bdi[.={webdriver.quoted(USER)}]")
        self.assertEqual(browser.run(area), '{"text": "typed"}')
        self.assertTrue(all("401" in problem for problem in browser.problems()))
        browser.press("Users", "//header")
        browser.press("Leave", "//dialog")
        browser.find("//h1[.='Users']")
        self.assertEqual(ask("GET", f"{database}/a")["text"], "x")

    def test_a_large_document_has_few_lines_and_is_saved(self):
        browser = self.browser
        items = [{"n": number, "values": [1, 2, 3]} for number in range(5000)]
        database = self.database("page_large", [{"_id": "a", "items": items, "last": 9007199254740993}])
        self.open("db", database, "doc", "a")
        text = browser.run("return document.querySelector('main textarea').value")
        self.assertLess(text.count("\n"), 10)
        # Each key isn't an occasion to read all of it, but a save is.
        browser.run("const area = document.querySelector('main textarea'); area.value = area.value.slice(0, -1); area.dispatchEvent(new Event('input'))")
        self.assertEqual(browser.text("main .problem"), "")
        browser.press("Save")
        browser.wait_for_text("a comma or } is missing")
        browser.run("document.querySelector('main textarea').value += ', \"more\": 1}'")
        browser.press("Save")
        browser.wait_for_text("saved", "#notices")
        self.settle()
        saved = ask("GET", f"{database}/a")
        self.assertEqual((saved["items"], saved["last"], saved["more"]), (items, 9007199254740993, 1))

    def test_attachments_are_listed_and_downloaded(self):
        database = self.database("page_files", [{"_id": "a", "_attachments": {
            "b c/<d>.txt": {"content_type": "text/plain", "data": base64.b64encode(b"hello").decode()}}}])
        self.open("db", database, "doc", "a")
        self.browser.wait_for_text("b c/<d>.txt")
        got = self.browser.run("return document.querySelector('main a[download]').href")
        self.browser.until(lambda: self.browser.run("window.got ??= fetch(arguments[0]).then((answer) => answer.text()).then((text) => window.text = text); return window.text", got) == "hello", "the bytes")

    def test_a_conflict_is_shown_and_resolved_with_one_click(self):
        browser = self.browser
        database = self.database("page_conflict")
        self.conflict(database)
        self.open("db", database, "doc", "c")
        browser.wait_for_text("Conflict of 2 revisions")
        self.assertEqual(browser.run("return [...document.querySelectorAll('.tree a')].map((node) => node.getAttribute('aria-label'))"),
                         ["1-a1", "2-b2", "6-f6", "7-f7, current leaf", "3-e3, conflict leaf", "2-d2, deleted leaf"])
        self.assertIn("3 more", browser.run("return document.querySelector('.tree').textContent"))
        self.assertEqual(browser.run("return [...document.querySelectorAll('.conflict pre.differs')].map((cell) => cell.innerText)"),
                         ['"winner"', '"loser"', "[\n  1\n]"])
        self.assertEqual(len(browser.run("return [...new Set([...document.querySelectorAll('.dot')].map((dot) => dot.offsetHeight))]")), 1)
        for scheme in ("dark", "light"):
            browser.prefer(scheme)
            self.assertGreaterEqual(browser.run(CONTRAST), 4.5, scheme)
        browser.press("Keep 3-e3")
        browser.wait_for_text("resolved", "#notices")
        left = ask("GET", f"{database}/c?conflicts=true")
        self.assertEqual((left["_rev"], left.get("_conflicts")), ("3-e3", None))
        browser.until(lambda: "Conflict of" not in browser.text("main"), "the document without a conflict")

    # Indexes, views and full text

    def test_indexes_views_and_full_text(self):
        browser = self.browser
        database = self.database("page_index", [{"_id": "a", "text": "The old castles of <b>Rome</b>", "n": 1}, {"_id": "b", "text": "a garden", "n": 2}])
        self.open("db", database, "indexes")
        browser.press("New full-text index")
        browser.write("Name", "words")
        browser.write("Expressions, one a line", "text")
        browser.type(browser.control("Language"), "english")
        browser.press("Create", "//dialog")
        browser.wait_for_text("text (english)")
        browser.press("New view")
        browser.write("Design document", "d")
        browser.write("View", "by_n")
        browser.write("Map function", "function (doc) { emit(doc.n, doc.text); }")
        browser.press("Create", "//dialog")
        browser.press("Run d/by_n")
        browser.wait_for_text("a garden")
        browser.press("Full text")
        browser.write("Words", "castle")
        browser.press("Search")
        browser.find("//mark[.='castles']")
        browser.wait_for_text("of <b>Rome</b>")
        self.open("db", database, "indexes")
        browser.press("Delete index words")
        browser.press("Delete", "//dialog")
        browser.wait_for_text("No query index yet")
        self.assertEqual(ask("GET", f"{database}/_indexes"), {"indexes": []})

    # Replications and users

    def test_a_replication_is_started_seen_and_stopped(self):
        browser = self.browser
        source = self.database("page_source", ({"_id": f"d{number}"} for number in range(300)))
        target = self.database("page_target")
        self.open("replications")
        row = f"//main//tr[.//bdi[.='{source}']]"
        for is_continuous, state in ((False, "completed"), (True, "running")):
            browser.write("Source", source)
            browser.write("Target", target)
            if is_continuous:
                browser.click("//label[normalize-space(.)='Continuous']/input")
            browser.press("Start")
            browser.find(f"{row}[.//span[.='{state}']][td[4][.='300'] or {str(is_continuous).lower()}()]")
            self.assertEqual(ask("GET", target)["doc_count"], 300)
            self.assertGreaterEqual(browser.run(CONTRAST), 4.5)
            browser.press(f"{'Stop' if is_continuous else 'Remove'} {source} to {target}")
            browser.until(lambda: not browser.find_all(row), "the list without it")

    def test_a_user_is_made_changed_and_deleted(self):
        browser = self.browser
        self.open("users")
        browser.press("New user")
        browser.write("Name", "page_user")
        browser.write("Password", "first")
        browser.write("Roles", "a, b\nc")
        browser.press("Create", "//dialog")
        browser.press("Change page_user")
        # A name may have a comma, and what isn't touched stays.
        browser.write("New password", "second")
        browser.press("Save", "//dialog")
        browser.wait_for_text("changed", "#notices")
        self.assertEqual(ask("GET", "_users/org.couchdb.user:page_user")["roles"], ["a, b", "c"])
        browser.press("Change page_user")
        browser.write("Roles", "c")
        browser.press("Save", "//dialog")
        browser.until(lambda: ask("GET", "_users/org.couchdb.user:page_user")["roles"] == ["c"], "the roles")
        browser.press("Delete page_user")
        browser.press("Delete", "//dialog")
        browser.until(lambda: "error" in ask("GET", "_users/org.couchdb.user:page_user"), "the user's end")
        database = self.database("page_access")
        before = {"members": {"names": ["a,b", " x ", "two\nlines"], "roles": ["_admin"]}, "admins": {"roles": ["_admin"]}}
        ask("PUT", f"{database}/_security", before)
        # Nothing typed: nothing changed.
        self.open("db", database, "access")
        browser.press("Save")
        browser.wait_for_text("Saved", "#notices")
        saved = ask("GET", f"{database}/_security")
        self.assertEqual((saved["members"], saved["admins"]["roles"]), (before["members"], ["_admin"]))
        self.open("db", database, "access")
        browser.run("document.querySelector('fieldset textarea').value += '\\n carol \\n\\ndave'")
        browser.press("Save")
        browser.wait_for_text("Saved", "#notices")
        self.assertEqual(ask("GET", f"{database}/_security")["members"],
                         {"names": ["a,b", " x ", "two\nlines", "carol", "dave"], "roles": ["_admin"]})

    # What holds for all views

    def views(self, database, id):
        return [(), ("replications",), ("users",), ("bench",), ("db", database), ("db", database, "doc", id), ("db", database, "new"),
                ("db", database, "query"), ("db", database, "search"), ("db", database, "indexes"), ("db", database, "access"),
                ("db", database, "view", "d", "by_n")]

    def test_hostile_names_and_values_are_texts_at_every_width(self):
        browser = self.browser
        database = self.database("page_hostile", [
            {"_id": HOSTILE, HOSTILE: SCRIPT, "text": HOSTILE, "n": HOSTILE},
            {"_id": "_design/d", "language": "javascript", "views": {"by_n": {"map": "function (doc) { emit(doc.n, doc.n); }"}}}])
        ask("POST", f"{database}/_indexes", {"name": HOSTILE, "kind": "fulltext", "expressions": ["text"]})
        ask("PUT", "_users/org.couchdb.user:" + urllib.parse.quote(HOSTILE, safe=""),
            {"_id": "org.couchdb.user:" + HOSTILE, "type": "user", "name": HOSTILE, "roles": [HOSTILE], "password": "x"})
        self.conflict(database)
        for scheme, width in (("light", WIDTHS[0]), ("dark", WIDTHS[1])):
            browser.resize(width)
            browser.prefer(scheme)
            for view in self.views(database, HOSTILE):
                with self.subTest(view=view, width=width):
                    self.open(*view)
                    if view[2:3] in (("doc",), ("indexes",), ("view",)) or len(view) == 2 and view[0] == "db":
                        shown = browser.run("return [...document.querySelectorAll('bdi, code, textarea')].map((element) => element.value ?? element.textContent)")
                        escaped = json.dumps(HOSTILE, ensure_ascii=False)
                        self.assertTrue(any(HOSTILE in text or escaped in text for text in shown), shown)
                    self.assertEqual(browser.run("return [...document.images].map((image) => image.getAttribute('src'))"), ["icon.svg"])
                    self.assertLessEqual(browser.run("return document.documentElement.scrollWidth"), width)
                    self.assertEqual(browser.run(NAMELESS), [])
                    self.assertEqual(browser.run(HIDDEN_BUTTONS), [])
                    self.assertEqual(browser.problems(), [])
                    if SCREENSHOTS:
                        name = "-".join(["page", *(part for part in view if part.isalpha()), str(width)])
                        pathlib.Path(SCREENSHOTS, f"{name}.png").write_bytes(base64.b64decode(browser.screenshot()))
            self.open("db", database, "query")
            self.query("SELECT *, META().id AS id FROM _")
            browser.press("Run")
            browser.wait_for_text("rows.")
            self.assertIn(SCRIPT, browser.run("return document.querySelector('main table').textContent"))
            self.open("db", database, "search", words="abc")
            browser.find("//mark[.='abc']")
        browser.prefer("light")
        user = ask("GET", "_users/org.couchdb.user:" + urllib.parse.quote(HOSTILE, safe=""))
        ask("DELETE", f"_users/{urllib.parse.quote(user['_id'], safe='')}?rev={user['_rev']}")

    def test_a_file_is_attached(self):
        browser = self.browser
        database = self.database("page_attach", [{"_id": "_design/d", "x": 1}, {"_id": "a/b", "x": 1}])
        for id in ("a/b", "_design/d"):
            with self.subTest(id=id), tempfile.TemporaryDirectory() as folder:
                path = f"{database}/{id}" if id.startswith("_") else f"{database}/a%2Fb"
                for content in (b"one", b"another"):
                    file = pathlib.Path(folder) / "50% of it #1.txt"
                    file.write_bytes(content)
                    self.open("db", database, "doc", id)
                    browser.type(browser.control("Add an attachment"), str(file))
                    browser.wait_for_text("The attachment is saved", "#notices")
                    browser.wait_for_text("Download")
                    about = ask("GET", path)["_attachments"]
                    self.assertEqual([(name, value["length"], value["content_type"]) for name, value in about.items()],
                                     [(file.name, len(content), "text/plain")])

    def test_a_document_that_is_not_there_is_asked_for_once(self):
        browser = self.browser
        database = self.database("page_missing", [{"_id": "gone"}])
        ask("DELETE", f"{database}/gone?rev=" + ask("GET", f"{database}/gone")["_rev"])
        self.open("db", database, "doc", "never")
        browser.wait_for_text("no such document (missing)")
        self.assertEqual([problem.count("404") > 0 for problem in browser.problems()], [True])
        self.open("db", database, "doc", "gone")
        browser.wait_for_text("no such document (deleted)")
        browser.wait_for_text("deleted leaf")
        self.assertTrue(all("404" in problem for problem in browser.problems()))

    def test_names_that_a_browser_takes_out_of_addresses_lead_nowhere(self):
        browser = self.browser
        database = self.database("page_dots", [{"_id": ".."}, {"_id": "."}, {"_id": "a/../b"}, {"_id": "_design/.."}])
        for id in ("..", ".", "_design/.."):
            self.open("db", database, "doc", id)
            browser.wait_for_text("A browser can't ask for the name")
        self.open("db", database, "doc", "a/../b")
        browser.press("Delete")
        browser.press("Delete", "//dialog")
        browser.wait_for_text("deleted", "#notices")
        self.assertEqual(ask("GET", database)["doc_count"], 3)

    def test_a_login_that_is_over_is_asked_for_again(self):
        browser = self.browser
        self.open("replications")
        browser.run("return fetch('../_session', { method: 'DELETE' }).then(() => true)")
        browser.find("//header//button[.='Log in']")
        browser.wait_for_text("have to log in")
        self.assertTrue(all("401" in problem for problem in browser.problems()))
        self.log_in()

    def test_the_keyboard_reaches_everything(self):
        browser = self.browser
        database = self.database("page_keys", [{"_id": "a"}])
        self.open("db", database)
        browser.keys("?")
        browser.wait_for_text("Keyboard shortcuts", "dialog")
        browser.keys("escape")
        browser.until(lambda: not browser.find_all("//dialog"), "a page without the dialog")
        browser.keys("g")
        browser.keys("r")
        browser.wait_for_text("Start a replication")
        browser.keys("g")
        browser.keys("d")
        browser.wait_for_text("page_keys")
        browser.keys("/")
        browser.until(lambda: browser.run("return document.activeElement.type") == "search", "the focus in the first field")


# The least contrast of the tags, as the guidelines for accessible content reckon it.
CONTRAST = """
  const channels = (color) => color.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  const light = (color) => channels(color).reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0.05);
  return Math.min(...[...document.querySelectorAll('main .tag')].map((tag) => {
    const { color, backgroundColor } = getComputedStyle(tag);
    const [low, high] = [light(color), light(backgroundColor)].sort((a, b) => a - b);
    return high / low;
  }));
"""
# The buttons of rows that a table hides before it is scrolled.
HIDDEN_BUTTONS = """
  return [...document.querySelectorAll('main .scroll')].flatMap((box) => [...box.querySelectorAll('button, a.button')]
    .filter((element) => element.textContent !== 'More' && element.getBoundingClientRect().right > box.getBoundingClientRect().right + 1)
    .map((element) => element.ariaLabel ?? element.innerText));
"""
# The controls, links and pictures that a screen reader has no name for.
NAMELESS = """
  const named = (element) => [element.ariaLabel, element.innerText, element.textContent, element.alt ?? null, ...[...element.labels ?? []].map((label) => label.textContent)]
    .some((text) => text?.trim());
  return [...document.querySelectorAll('button, a, input, select, textarea, svg')]
    .filter((element) => !named(element)).map((element) => element.outerHTML.slice(0, 80));
"""


if __name__ == "__main__":
    unittest.main()
