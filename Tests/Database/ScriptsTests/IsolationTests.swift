import Expectations
import Testing

@testable import Scripts

@Suite("What scripts can't reach") struct IsolationTests {
  @Test(
    "There is no file, no network, no timer, no shell",
    arguments: [
      "load", "read", "readline", "print", "quit", "os", "system", "process", "XMLHttpRequest", "fetch",
      "setTimeout",
      "setInterval", "WebSocket", "Worker", "WebAssembly", "SharedArrayBuffer", "Atomics", "Components",
      "evalcx",
      "console", "importScripts", "gc", "provides", "send", "getRow", "start",
    ])
  func names(name: String) throws {
    try expect(mapped("function (doc) { emit(typeof \(name), 1) }"), equals: [TestRow("\"undefined\"", "1")])
  }

  @Test("Imports and modules of files fail")
  func imports() throws {
    let rows = try JavaScript().open(
      designDocument: design([
        "x": "function (doc) { require('/etc/passwd') }", "y": "function (doc) { require('fs') }",
      ])
    ).map(batch("{}"), views: [0, 1])
    expect(rows.exception(document: 0, view: 0) != nil)
    expect(rows.exception(document: 0, view: 1) != nil)
  }

  @Test("Two design documents have globals of their own")
  func globals() throws {
    let language = JavaScript()
    let writes = try language.open(
      designDocument: design([
        "x":
          "function (doc) { shared = 5; Array.prototype.shared = 6; JSON.stringify = null; emit(typeof shared, 1); }"
      ]))
    let reads = try language.open(
      designDocument: design(["x": "function (doc) { emit(typeof shared, typeof [].shared); }"]))
    try expect(writes.map(batch("{}"), views: [0]).rows(), equals: [TestRow("\"number\"", "1")])
    try expect(reads.map(batch("{}"), views: [0]).rows(), equals: [TestRow("\"undefined\"", "\"undefined\"")])
  }

  @Test("Dates are in UTC")
  func dates() throws {
    try expect(
      mapped("function (doc) { emit(new Date(0).getHours(), new Date(2020, 6, 1)) }"),
      equals: [TestRow("0", "\"2020-07-01T00:00:00.000Z\"")])
  }
}
