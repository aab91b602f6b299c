import Bytes
import Expectations
import Testing

@testable import Scripts

@Suite("Maps in JavaScript") struct MapTests {
  @Test(
    "Keys and values are handed over as JSON",
    arguments: [
      ("emit(doc._id, doc._rev)", [TestRow("\"a\"", "\"1-x\"")]),
      ("for (var i = 0; i < 2; i++) emit(i, null)", [TestRow("0", "null"), TestRow("1", "null")]),
      ("emit(undefined, undefined)", [TestRow("null", "null")]), ("emit()", [TestRow("null", "null")]),
      ("emit(NaN, [Infinity, undefined])", [TestRow("null", "[null,null]")]),
      ("emit(new Date(0), isArray([1]))", [TestRow("\"1970-01-01T00:00:00.000Z\"", "true")]),
      ("log('hello'); emit(doc._id, toJSON({a: 1}))", [TestRow("\"a\"", "\"{\\\"a\\\":1}\"")]),
      ("emit(sum([1, 2.5]), isArray({}))", [TestRow("3.5", "false")]),
      ("emit(function () {}, {a: undefined, b: 1})", [TestRow("null", "{\"b\":1}")]),
      ("emit(-0, 1e21)", [TestRow("0", "1e+21")]),
      ("var o = {}; emit(1, o); o.x = 2", [TestRow("1", "{\"x\":2}")]),
    ])
  func values(body: String, rows: [TestRow]) throws {
    try expect(mapped("function (doc) { \(body) }", #"{"_id":"a","_rev":"1-x"}"#), equals: rows)
  }

  @Test("The emitted document itself is told from a copy of it")
  func document() throws {
    let map = "function (doc) { emit(null, doc); emit(doc, doc); emit(null, [doc]) }"
    let json = #"{"_id":"a","x":[1,{"y":null}]}"#
    try expect(
      mapped(map, json),
      equals: [
        TestRow("null", "", isDocument: true), TestRow(json, "", isDocument: true),
        TestRow("null", "[\(json)]"),
      ])
  }

  @Test("Text of all planes arrives as it is, and lone surrogates become U+FFFD")
  func text() throws {
    try expect(
      mapped("function (doc) { emit(doc.t, doc.t.length) }", #"{"t":"é€😀"}"#),
      equals: [TestRow("\"é€😀\"", "4")])
    try expect(
      mapped(#"function (doc) { emit("\ud800x\udc00", "\\ud800") }"#),
      equals: [
        TestRow("\"\u{FFFD}x\u{FFFD}\"", #""\\ud800""#)
      ])
    try expect(
      mapped("function (doc) { emit('\\u0000\\u001f\\n', '😀'.charAt(0)) }"),
      equals: [
        TestRow(#""\u0000\u001f\n""#, "\"\u{FFFD}\"")
      ])
  }

  @Test("An exception is that of its document and view, whose rows are dropped")
  func exceptions() throws {
    let context = try JavaScript().open(
      designDocument: design([
        "boom": "function (doc) { emit(1, 1); emit(doc.a.b, 1); }",
        "fine": "function (doc) { emit(doc._id, 1); }",
        "thrown": "function (doc) { throw {error: 'e', reason: doc._id}; }",
        "text": "function (doc) { throw 'no'; }",
        "json": "function (doc) { emit({toJSON: function () { throw new Error('bad') }}, 1); }",
        "symbol": "function (doc) { throw Symbol('s'); }", "big": "function (doc) { emit(1n, 1); }",
      ]))
    let rows = try context.map(batch(#"{"_id":"a"}"#, #"{"_id":"b","a":{"b":2}}"#), views: Array(0..<7))
    expect(rows.exception(document: 0, view: 0), equals: "TypeError: doc.a is undefined")
    try expect(rows.rows(0, 0).isEmpty)
    try expect(rows.rows(1, 0), equals: [TestRow("1", "1"), TestRow("2", "1")])
    expect(rows.exception(document: 1, view: 0) == nil)
    try expect(rows.rows(0, 1), equals: [TestRow("\"a\"", "1")])
    expect(rows.exception(document: 1, view: 2), equals: #"{"error":"e","reason":"b"}"#)
    expect(rows.exception(document: 0, view: 3), equals: "no")
    expect(rows.exception(document: 0, view: 4), equals: "Error: bad")
    expect(rows.exception(document: 0, view: 5) != nil)
    expect(rows.exception(document: 0, view: 6)?.hasPrefix("TypeError"), equals: true)
  }

  @Test("No map sees what another one does to a document")
  func frozenDocuments() throws {
    let context = try JavaScript().open(
      designDocument: design([
        "changes":
          "function (doc) { doc.x = 1; doc.list.length = 0; delete doc._id; doc.deep.a = 2; emit(1, doc); }",
        "pushes": "function (doc) { doc.list.push(1); }", "reads": "function (doc) { emit(doc, 1); }",
      ]))
    let json = #"{"_id":"a","list":[1],"deep":{"a":1}}"#
    let rows = try context.map(batch(json), views: [0, 1, 2])
    try expect(rows.rows(0, 2), equals: [TestRow(json, "1")])
    expect(rows.exception(document: 0, view: 1)?.hasPrefix("TypeError"), equals: true)
  }

  @Test("lib is a view if it has a map function, otherwise modules")
  func libraryWithMap() throws {
    for (map, names) in [
      ("function (doc) { emit(1); }", ["lib"]), ("exports.a = (", []), ("exports.a = 1", []), ("1", []),
    ] {
      let context = try JavaScript().open(designDocument: design(["lib": map]))
      expect(context.views.map(\.name), equals: names, "\(map)")
    }
    let context = try JavaScript().open(
      designDocument: Array(#"{"views": {"lib": {"map": {"a": "1"}}}}"#.utf8))
    expect(context.views.isEmpty)
  }

  @Test("Modules are found under views/lib")
  func modules() throws {
    let library =
      #", "lib": {"m": "exports.twice = function (x) { return 2 * x; };", "n": {"a": "module.exports = require('./b') + 1", "b": "module.exports = require('../m').twice(4)"}, "c": "require('views/lib/d')", "d": "require('./c')", "bad": "exports.x = (", "throws": "throw new Error('in it')"}"#
    let context = try JavaScript().open(
      designDocument: design(
        [
          "x": "function (doc) { emit(require('views/lib/m').twice(21), require('views/lib/n/a')); }",
          "cycle": "function (doc) { require('views/lib/c'); }",
          "missing": "function (doc) { require('views/lib/nosuch'); }",
          "outside": "function (doc) { require('_id'); }",
          "above": "function (doc) { require('../../x'); }",
          "bad": "function (doc) { require('views/lib/bad'); }",
          "throws": "function (doc) { require('views/lib/throws'); }",
          "constructor": "function (doc) { require('constructor'); }",
        ], more: library))
    let rows = try context.map(batch("{}"), views: Array(0..<8))
    try expect(rows.rows(), equals: [TestRow("42", "9")])
    expect(rows.exception(document: 0, view: 1)?.contains("requires itself"), equals: true)
    expect(rows.exception(document: 0, view: 2)?.contains("no such module"), equals: true)
    for view in 3..<8 { expect(rows.exception(document: 0, view: view) != nil) }
  }

  @Test("Log lines belong to their document, and their number is bounded")
  func log() throws {
    let context = try JavaScript().open(
      designDocument: design([
        "x": "function (doc) { log(doc._id); log({a: [1]}); throw 1 }",
        "many": "function (doc) { for (var i = 0; i < 1000; i++) log('x'.repeat(10000) + i) }",
      ]))
    let rows = try context.map(batch(#"{"_id":"a"}"#, #"{"_id":"b"}"#), views: [0, 1])
    expect(rows.log(document: 1, view: 0), equals: ["b", #"{"a":[1]}"#])
    expect(rows.log(document: 0, view: 1).count, equals: 64)
    expect(rows.log(document: 0, view: 1)[0].utf8.count, equals: 4096)
  }

  @Test("Only the views that are asked for map, in the order that is asked for")
  func someViews() throws {
    let context = try JavaScript().open(
      designDocument: design(["a": "() => emit('a')", "b": "() => emit('b')", "c": "() => emit('c')"]))
    let rows = try context.map(batch("{}", "{}"), views: [2, 0])
    try expect(rows.rows(1, 0), equals: [TestRow("\"c\"", "null")])
    try expect(rows.rows(1, 1), equals: [TestRow("\"a\"", "null")])
    try expect(context.map(ScriptBatch(), views: [0]).documentCount, equals: 0)
    expect(scriptError { _ = try context.map(batch("{}"), views: [3]) }?.code, equals: .missing)
  }

  @Test("Several batches may be on their way, and be waited for in any order")
  func batchesInFlight() throws {
    let context = try JavaScript().open(designDocument: design(["x": "function (doc) { emit(doc.n, doc); }"]))
    let mappings = try (0..<8).map { number in
      let batch = ScriptBatch()
      for index in 0..<200 {
        let padding = String(repeating: "x", count: 2000)
        batch.append(id: "\(index)", json: #"{"n":\#(number * 1000 + index),"p":"\#(padding)"}"#.utf8)
      }
      return try context.beginMapping(batch, views: [0])
    }
    for number in [3, 0, 1, 7, 6, 5] {
      let rows = try mappings[number].finish()
      expect(rows.documentCount, equals: 200)
      try expect(rows.rows(199), equals: [TestRow("\(number * 1000 + 199)", "", isDocument: true)])
    }
  }

  @Test("Many rows and large values cross several frames")
  func manyRows() throws {
    let context = try JavaScript().open(
      designDocument: design([
        "x": "function (doc) { for (var i = 0; i < doc.n; i++) emit(i, 'x'.repeat(doc.size)); }"
      ]))
    let rows = try context.map(
      batch(#"{"n":50000,"size":1}"#, #"{"n":3,"size":5000000}"#, #"{"n":0}"#), views: [0])
    expect(rows.rowCount(document: 0, view: 0), equals: 50000)
    try expect(rows.rows(1).map(\.value.utf8.count), equals: [5_000_002, 5_000_002, 5_000_002])
    expect(rows.rowCount(document: 2, view: 0), equals: 0)
  }

  @Test("Promises never settle, so that nothing runs after a map")
  func promises() throws {
    let map =
      "async function f() { await 1; emit('late', 1); } f(); Promise.resolve().then(() => emit('later', 1))"
    try expect(mapped("function (doc) { \(map); emit('now', 1) }"), equals: [TestRow("\"now\"", "1")])
  }

  @Test("Threads may use a context at once")
  func threads() async throws {
    let context = try JavaScript().open(designDocument: design(["x": "function (doc) { emit(doc.n, 1); }"]))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for thread in 0..<8 {
        group.addTask {
          for number in 0..<50 {
            let rows = try context.map(batch("{\"n\":\(thread * 1000 + number)}"), views: [0])
            try expect(rows.rows(), equals: [TestRow("\(thread * 1000 + number)", "1")])
          }
        }
      }
      try await group.waitForAll()
    }
  }
}
