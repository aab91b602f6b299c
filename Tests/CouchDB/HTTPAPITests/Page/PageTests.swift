import Bytes
import Foundation
import HTTP
import TestSupport
import Testing

@testable import HTTPAPI

/// `/_utils/`: how the page is served, and what its files may not have. What it does is tested in a browser (Tests/CouchDB/HTTPClients).
@Suite("Page") struct PageTests {
  private static let root = URL(filePath: #filePath).appending(path: "../../../../..").standardizedFileURL
  private static let folder = root.appending(path: "Sources/CouchDB/CPage/Files")
  private static var names: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() }
  }

  @Test("every file of the folder is in the program, byte by byte, with its type") func files() throws {
    let client = try APIClient()
    let types = [
      "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
      "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml",
    ]
    let names = try Self.names
    expect(names.contains("index.html") && names.count > 20)
    expect(PageFile.all.count, equals: names.count + 1, "CPage.c has other files than the folder")
    for name in names {
      let answer = try client.ask("GET", "/_utils/" + name)
      expect(answer.status, equals: 200, "\(name): CPage.c doesn't embed it")
      try expect(
        answer.body() == Array(Data(contentsOf: Self.folder.appending(path: name))), "\(name) has other bytes"
      )
      let ending = name.split(separator: ".").last.map(String.init) ?? ""
      expect(answer.header("Content-Type"), equals: types[ending], "\(name)")
    }
    let vocabulary = try client.ask("GET", "/_utils/vocabulary.json").json()
    expect(vocabulary["keywords"].array?.contains("SELECT"), equals: true)
    expect(vocabulary["functions"].array?.contains("SNIPPET"), equals: true)
  }

  @Test("the folder itself is the page, and without its slash it leads there") func index() throws {
    let client = try APIClient()
    let page = try client.ask("GET", "/_utils/")
    expect(page.text.hasPrefix("<!doctype html>"))
    let redirect = try client.ask("GET", "/_utils")
    expect(redirect.status, equals: 301)
    expect(redirect.header("Location"), equals: "_utils/")
  }

  @Test("a browser lets the page load nothing foreign, run no script in markup, and be in no frame")
  func protection() throws {
    let client = try APIClient()
    for target in ["/_utils/", "/_utils/main.js", "/_utils/style.css", "/_utils/vocabulary.json"] {
      let answer = try client.ask("GET", target)
      let policy = answer.header("Content-Security-Policy")?.components(separatedBy: "; ") ?? []
      for rule in [
        "default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'",
        "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'",
      ] {
        expect(policy.contains(rule), "\(target): \(rule)")
      }
      expect(!policy.joined().contains("unsafe") && !policy.joined().contains("*"), "\(target)")
      expect(answer.header("X-Content-Type-Options"), equals: "nosniff")
      expect(answer.header("X-Frame-Options"), equals: "DENY")
      expect(answer.header("Referrer-Policy"), equals: "no-referrer")
    }
  }

  @Test("no file makes markup of texts, runs texts as scripts, or names another server") func contents()
    throws
  {
    for name in try Self.names {
      var text = try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
      text = text.replacing("http://www.w3.org/2000/svg", with: "")
      for word in [
        "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
        "setHTML", "srcdoc", "javascript:", "http:", "https:", "//cdn",
      ] {
        expect(!text.contains(word), "\(name) has \(word)")
      }
    }
    let page = try String(contentsOf: Self.folder.appending(path: "index.html"), encoding: .utf8)
    expect(!page.contains("style=") && page.components(separatedBy: "<script").count == 2)
    let handler = try Regex(" on[a-z]+=")
    expect(page.firstMatch(of: handler) == nil)
  }

  @Test("a browser that has a file hears that it is the same, and a HEAD has no body") func tags() throws {
    let client = try APIClient()
    let first = try client.ask("GET", "/_utils/style.css")
    let tag = try #require(first.header("ETag"))
    expect(first.header("Cache-Control"), equals: "no-cache")
    let second = try client.ask("GET", "/_utils/style.css", headers: [("If-None-Match", tag)])
    expect(second.status == 304 && second.body().isEmpty && second.header("ETag") == tag)
    expect(second.header("Content-Security-Policy") != nil)
    let other = try client.ask("GET", "/_utils/main.js", headers: [("If-None-Match", tag)])
    expect(other.status, equals: 200)
    let head = try client.ask("HEAD", "/_utils/style.css")
    expect(head.status == 200 && head.body().isEmpty && head.header("ETag") == tag)
    expect(head.length, equals: first.body().count)
  }

  @Test(
    "no path leads anywhere else",
    arguments: [
      "none.js", "..", "../_up", "%2e%2e/%2e%2e/etc/passwd", "..%2F..%2Fetc%2Fpasswd", "/etc/passwd",
      "main.js/x", "main.js%00", "MAIN.JS", "Files/main.js", "index.html%2F",
    ])
  func traversal(_ path: String) throws {
    try expect(APIClient().ask("GET", "/_utils/" + path).status, equals: 404)
  }

  @Test("it is read by everybody, and only read") func methods() throws {
    let client = try APIClient.secured(.lmdb)
    try expect(client.ask("GET", "/_utils/", as: .anonymous).status, equals: 200)
    // What a browser asks for beside it.
    let icon = try client.ask("GET", "/favicon.ico", as: .anonymous)
    expect(icon.status == 404 && icon.header("WWW-Authenticate") == nil)
    for method in ["POST", "PUT", "DELETE", "COPY"] {
      let answer = try client.ask(method, "/_utils/main.js", as: .anonymous)
      expect(answer.status == 405 && answer.header("Allow") == "GET,HEAD", "\(method): \(answer.status)")
    }
  }

  @Test("administrators see the report that the server was told, as it is now") func report() throws {
    try expect(APIClient().get("/_bench_report").error[0], equals: "not_found")
    let directory = TemporaryDirectory()
    let path = directory.path + "/report.json"
    let client = try APIClient.secured(.lmdb) { $0.benchReport = path }
    let admin = UserContext.admin("root")
    try expect(client.ask("GET", "/_bench_report", as: admin).status, equals: 404)
    for text in ["{\"schema\":1}", "{\"schema\":1,\"results\":[]}"] {
      try text.write(toFile: path, atomically: true, encoding: .utf8)
      let answer = try client.ask("GET", "/_bench_report", as: admin)
      expect(answer.text, equals: text)
      expect(answer.header("Content-Type"), equals: "application/json")
    }
    try expect(client.ask("GET", "/_bench_report", as: .anonymous).status, equals: 401)
  }
}
