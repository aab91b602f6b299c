import Expectations
import Foundation
import System
import Testing

@testable import Scripts

/// Batches are answered in parts, so that neither memory nor time depends on how many documents a batch has, and no design
/// document takes what others need.
@Suite("Parts of batches, and what design documents share", .serialized) struct PartTests {
  private func language(memory: Int = 512 << 20, seconds: Double = 5) -> JavaScript {
    JavaScript(process: ScriptProcess(limits: ScriptLimits(memoryBytes: memory, callSeconds: seconds)))
  }

  private static func documents(_ count: Int) -> ScriptBatch {
    let batch = ScriptBatch()
    for number in 0..<count { batch.append(id: "d\(number)", json: "{\"_id\":\"d\(number)\"}".utf8) }
    return batch
  }

  /// The numbers of documents and the bytes of rows of each part.
  private func parts(_ mapping: any ScriptMapping) throws -> [(documents: Int, bytes: Int)] {
    var parts: [(documents: Int, bytes: Int)] = []
    while let rows = try mapping.next() {
      var bytes = 0
      for document in 0..<rows.documentCount {
        try rows.forEachRow(document: document, view: 0) { key, value, _ in
          bytes += key.byteCount + value.byteCount
        }
      }
      parts.append((rows.documentCount, bytes))
    }
    return parts
  }

  @Test("Small documents with large rows come in parts of about 8 MiB")
  func largeRows() throws {
    let context = try language().open(
      designDocument: design(["x": "function (doc) { emit(doc._id, 'x'.repeat(1 << 20)) }"]))
    let found = try parts(try context.beginMapping(Self.documents(40), views: [0]))
    expect(found.map(\.documents).reduce(0, +), equals: 40)
    expect(found.count >= 4)
    expect(found.allSatisfy { $0.bytes <= 10 << 20 }, "\(found)")
  }

  @Test("Slow maps and filters come in parts of a tenth of a second")
  func slowMaps() throws {
    let wait = "var end = Date.now() + 60; while (Date.now() < end);"
    let context = try language().open(
      designDocument: design(
        ["x": "function (doc) { \(wait) emit(doc._id, 1) }"],
        more: "}, \"filters\": {\"f\": \(quoted("function (doc) { \(wait) return doc._id != 'd3' }"))"))
    let found = try parts(try context.beginMapping(Self.documents(12), views: [0]))
    expect(found.map(\.documents).reduce(0, +), equals: 12)
    expect(found.count >= 6, "\(found)")
    let chosen = try context.filter("f", Self.documents(6), request: Array("{}".utf8))
    expect(chosen, equals: [true, true, true, false, true, true])
  }

  @Test("Other calls don't wait for the end of slow maps")
  func turns() throws {
    let language = language()
    let slow = try language.open(
      designDocument: design([
        "x": "function (doc) { var end = Date.now() + 60; while (Date.now() < end); emit(doc._id, 1) }"
      ]))
    let other = try language.open(
      designDocument: Array(
        #"{"validate_doc_update": "function (doc) { if (doc.bad) throw {forbidden: 'bad'} }"}"#.utf8))
    let isDone = Lock(false)
    let hasBegun = CountingSemaphore()
    let thread = Thread {
      let mapping = try? slow.beginMapping(Self.documents(100), views: [0])
      hasBegun.signal()
      _ = try? mapping?.finish()
      isDone.withLock { $0 = mapping?.documentCount == 100 }
    }
    thread.start()
    hasBegun.wait()
    for _ in 0..<5 { try expect(other.verdict(#"{"bad":1}"#), equals: .forbidden("bad")) }
    expect(!isDone.withLock { $0 })
    while !isDone.withLock({ $0 }) { Thread.sleep(forTimeInterval: 0.01) }
  }

  @Test("A design document that keeps all memory doesn't fail others")
  func hog() throws {
    let language = language(memory: 96 << 20)
    let hog = try language.open(
      designDocument: design([
        "x": """
        function (doc) {
          if (!globalThis.kept) globalThis.kept = [];
          try { for (;;) kept.push(new Array(20000).fill(0.5)) } catch (e) {}
          try { for (;;) kept.push(new Array(200).fill(1.5)) } catch (e) {}
          emit(1, 1);
        }
        """
      ]))
    let other = try language.open(
      designDocument: design(
        [
          "x":
            "function (doc) { var a = []; for (var i = 0; i < 20000; i++) a.push({x: 'k' + i}); emit(1, a.length) }"
        ],
        more:
          "}, \"validate_doc_update\": \(quoted("function (doc) { var t = []; for (var i = 0; i < 20000; i++) t.push({x: i}); }")), \"a\": {"
      ))
    for _ in 0..<3 {
      _ = try? hog.map(Self.documents(2), views: [0])
      try expect(other.verdict("{}"), equals: .allowed)
      try expect(other.map(Self.documents(3), views: [0]).rows(2), equals: [TestRow("1", "20000")])
    }
  }

  @Test("What closed design documents held is freed")
  func closed() throws {
    let language = language(memory: 96 << 20)
    var processes: Set<Int32> = []
    for _ in 0..<30 {
      let context = try language.open(
        designDocument: design([
          "x":
            "(function () { var kept = []; for (var i = 0; i < 100; i++) kept.push(new Array(20000).fill(0.5)); return function (doc) { emit(kept.length, 1) } })()"
        ]))
      try expect(context.map(Self.documents(1), views: [0]).rows(), equals: [TestRow("100", "1")])
      if let process = language.process.processID { processes.insert(process) }
      context.close()
    }
    expect(processes.count, equals: 1)
  }

  @Test(
    "Rows that are too large are an exception of their document",
    arguments: ["latin", "wide", "array", "large"])
  func tooLarge(kind: String) throws {
    let values = [
      "latin": "'y'.repeat(65 << 20)", "wide": "'\\u4e00'.repeat(30 << 20)",
      "array": "new Array(70000).fill('y'.repeat(1021))", "large": "'\\u00e9'.repeat(40 << 20)",
    ]
    let context = try language().open(
      designDocument: design([
        "x": "function (doc) { emit(doc._id, doc._id == 'd1' ? \(values[kind] ?? "") : 1) }"
      ]))
    let rows = try context.map(Self.documents(3), views: [0])
    expect(rows.exception(document: 1, view: 0) != nil)
    try expect(rows.rows(0), equals: [TestRow("\"d0\"", "1")])
    try expect(rows.rows(2), equals: [TestRow("\"d2\"", "1")])
  }

  @Test("Values up to 60 MiB are rows", arguments: [25, 33, 60])
  func large(megabytes: Int) throws {
    let context = try language().open(
      designDocument: design(["x": "function (doc) { emit(1, 'y'.repeat(\(megabytes) << 20)) }"]))
    let rows = try context.map(Self.documents(1), views: [0])
    var bytes = 0
    try rows.forEachRow(document: 0, view: 0) { _, value, _ in bytes = value.byteCount }
    expect(bytes, equals: megabytes << 20 + 2)
  }

  @Test("Long strings are written as the engine writes short ones")
  func longStrings() throws {
    let text = #"\u0000\u0001\b\f\n\r\t\u001f\"\\/\u007f\u0080é ÿ"#
    let rows = try mapped(
      "function (doc) { emit(doc.t, 0); emit(doc.t.repeat(1000), 0); emit('€' + doc.t.repeat(1000), 0) }",
      "{\"t\":\"\(text)\"}")
    let short = rows[0].key.dropFirst().dropLast()
    expect(rows[1].key, equals: "\"" + String(repeating: String(short), count: 1000) + "\"")
    expect(rows[2].key, equals: "\"€" + String(repeating: String(short), count: 1000) + "\"")
  }

  @Test("The limit of 64 MiB is that of all views of a document")
  func manyViews() throws {
    let map = "function (doc) { emit(doc._id, 'x'.repeat(25 << 20)) }"
    let context = try language().open(designDocument: design(["a": map, "b": map, "c": map]))
    let rows = try context.map(Self.documents(2), views: [0, 1, 2])
    for document in 0..<2 {
      expect(
        rows.rowCount(document: document, view: 0) == 1 && rows.rowCount(document: document, view: 1) == 1)
      expect(rows.exception(document: document, view: 2) != nil)
    }
  }
}
