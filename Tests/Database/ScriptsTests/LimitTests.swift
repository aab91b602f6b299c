import Expectations
import Foundation
import Testing

@testable import Scripts

/// Scripts that take too much, and a program that ends: the host goes on, and the error names the document.
@Suite("Limits of scripts", .serialized) struct LimitTests {
  private func language(memory: Int = 512 << 20, seconds: Double = 0.5) -> JavaScript {
    JavaScript(process: ScriptProcess(limits: ScriptLimits(memoryBytes: memory, callSeconds: seconds)))
  }

  /// Maps three documents, of which the second has the member `bad`.
  private func stopped(_ body: String, memory: Int = 512 << 20) throws -> ScriptError? {
    let language = language(memory: memory)
    let context = try language.open(
      designDocument: design(["x": "function (doc) { if (doc.bad) { \(body) } emit(doc._id, 1); }"]))
    let error = scriptError {
      _ = try context.map(batch(#"{"_id":"a"}"#, #"{"_id":"b","bad":1}"#, #"{"_id":"c"}"#), views: [0])
    }
    // The context still works, in the same program or in another one.
    try expect(context.map(batch(#"{"_id":"a"}"#), views: [0]).rows(), equals: [TestRow("\"a\"", "1")])
    return error
  }

  @Test(
    "A script that takes too long is stopped",
    arguments: [
      "while (true);", "for (;;) try { for (;;); } catch (e) {} finally { for (;;); }",
      #"/(x+x+)+y/.test("x".repeat(60));"#, "(function f() { try { f() } finally { f() } })()",
      "var a = [1]; a.toString = 1; for (;;) [3, 2, 1].sort(function () { return 0 });",
    ])
  func endlessLoops(body: String) throws {
    let error = try stopped(body)
    expect(error?.code, equals: .stopped)
    expect(error?.documentID, equals: "b")
  }

  @Test(
    "A script that takes too much memory is stopped",
    arguments: [
      "var a = []; for (;;) a.push(new Array(1000).fill(1.5));",
      "var s = 'x'; for (;;) s += s + Math.random();",
      "var a = []; for (;;) a.push(new ArrayBuffer(1 << 20));", "for (;;) emit('x'.repeat(1000), 1);",
      "var a = []; for (;;) { try { a.push(new Uint8Array(1 << 24).fill(1)) } catch (e) {} }",
    ])
  func memory(body: String) throws {
    let error = try stopped(body, memory: 64 << 20)
    expect(error?.code == .stopped || error == nil, "\(String(describing: error))")
  }

  @Test("JSON.parse of ten million brackets doesn't hold the host")
  func brackets() throws {
    let start = Date()
    let error = try stopped("JSON.parse('['.repeat(1e7))")
    expect(error?.code, equals: .stopped)
    expect(error?.documentID, equals: "b")
    expect(Date().timeIntervalSince(start) < 30)
  }

  @Test("Deep recursion is an exception of its document")
  func recursion() throws {
    let context = try language(seconds: 60).open(
      designDocument: design([
        "calls": "function (doc) { (function f() { f(); })(); }",
        "nests": "function (doc) { var a = []; for (var i = 0; i < 1e5; i++) a = [a]; emit(a, 1); }",
      ]))
    let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
    let rows = try context.map(batch("{}", "{\"deep\":\(deep)}", "{}"), views: [0, 1])
    expect(rows.exception(document: 0, view: 0)?.contains("recursion"), equals: true)
    expect(rows.exception(document: 2, view: 1) != nil)
    expect(rows.exception(document: 1, view: 0) != nil)
  }

  @Test("A design document that doesn't end when it is compiled is stopped")
  func compilation() throws {
    let language = language()
    let error = scriptError { _ = try language.open(designDocument: design(["x": "while (true);"])) }
    expect(error?.code, equals: .stopped)
    try expect(language.open(designDocument: design(["x": "doc => emit(1, 1)"])).views.count, equals: 1)
  }

  @Test("A reduce function and a filter that don't end are stopped")
  func otherCalls() throws {
    let context = try language().open(
      designDocument: Array(
        #"""
        {"views": {"x": {"map": "function(doc){}", "reduce": "function (k, v) { while (true); }"}},
         "filters": {"f": "function (doc) { while (doc.bad); return true; }"}}
        """#.utf8))
    expect(scriptError { _ = try context.reduced(0, keys: "[]", values: "[]") }?.code, equals: .stopped)
    let error = scriptError {
      _ = try context.filter("f", batch("{}", #"{"bad":1}"#), request: Array("{}".utf8))
    }
    expect(error?.code, equals: .stopped)
    expect(error?.documentID, equals: "b")
  }

  @Test("When the program is killed in a call, the documents are mapped again by another one")
  func killed() throws {
    let language = language(seconds: 5)
    let context = try language.open(
      designDocument: design([
        "x":
          "function (doc) { var end = Date.now() + (doc.ms || 0); while (Date.now() < end); emit(doc._id, 1); }"
      ]))
    for _ in 0..<3 {
      let process = try #require(language.process.processID)
      let first = try context.beginMapping(batch(#"{"_id":"a"}"#, #"{"_id":"b","ms":300}"#), views: [0])
      let second = try context.beginMapping(batch(#"{"_id":"c"}"#), views: [0])
      kill(process, SIGKILL)
      try expect(second.finish().rows(), equals: [TestRow("\"c\"", "1")])
      let rows = try first.finish()
      expect(rows.documentCount, equals: 2)
      try expect(rows.rows(1), equals: [TestRow("\"b\"", "1")])
      expect(language.process.processID != process)
      // It was waited for.
      expect(kill(process, 0) == -1 && errno == ESRCH)
    }
  }

  @Test("A program that is held says nothing, and is killed")
  func held() throws {
    let language = language(seconds: 0.1)
    let context = try language.open(designDocument: design(["x": "function (doc) { emit(doc._id, 1); }"]))
    let process = try #require(language.process.processID)
    kill(process, SIGSTOP)
    while try !String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8).contains(") T ") {
      Thread.sleep(forTimeInterval: 0.01)
    }
    try expect(context.map(batch(#"{"_id":"a"}"#), views: [0]).rows(), equals: [TestRow("\"a\"", "1")])
    expect(kill(process, 0) == -1 && errno == ESRCH)
  }

  @Test("No descriptor and no process is left over")
  func leaks() throws {
    // Each program has one socket. Tests beside this one have some, too, but not as many as are made here.
    func sockets() throws -> Int {
      let folder = "/proc/self/fd"
      return try FileManager.default.contentsOfDirectory(atPath: folder).count { name in
        let target = try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + name)
        return target?.hasPrefix("socket:") ?? false
      }
    }
    let before = try sockets()
    let rounds = 40
    for _ in 0..<rounds {
      let language = language(seconds: 60)
      let context = try language.open(designDocument: design(["x": "function (doc) { emit(1, 1); }"]))
      try expect(context.map(batch("{}"), views: [0]).rowCount(document: 0, view: 0), equals: 1)
      let first = try #require(language.process.processID)
      context.close()
      try expect(context.map(batch("{}"), views: [0]).rowCount(document: 0, view: 0), equals: 1)
      language.process.stop()
      expect(kill(first, 0) == -1 && errno == ESRCH)
      try expect(context.map(batch("{}"), views: [0]).rowCount(document: 0, view: 0), equals: 1)
    }
    try expect(sockets() < before + rounds / 2)
  }

  @Test(
    "A program that isn't there, or isn't the right one, is unavailable",
    arguments: [
      "/nonexistent", "/bin/true", "/bin/cat", "/etc/passwd",
    ])
  func wrongProgram(path: String) throws {
    let error = scriptError {
      _ = try JavaScript(process: ScriptProcess(program: path)).open(designDocument: Array("{}".utf8))
    }
    expect(error?.code, equals: .unavailable)
  }
}
