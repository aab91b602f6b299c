import Expectations
import Foundation
import System
import Testing

@testable import Scripts

@Suite("Reduce functions, filters and validation in JavaScript") struct FunctionTests {
  @Test("A reduce function gets keys with IDs, values, and whether it reduces again")
  func reduce() throws {
    let context = try JavaScript().open(
      designDocument: Array(
        #"""
        {"views": {"all": {"map": "function(doc){}", "reduce": "function (k, v, r) { return [k, v, r]; }"},
          "throws": {"map": "function(doc){}", "reduce": "function (k, v) { throw('no'); }"},
          "nothing": {"map": "function(doc){}", "reduce": "function (k, v) { }"},
          "sum": {"map": "function(doc){}", "reduce": "_sum"},
          "lib": {"m": "exports.f = sum"},
          "total": {"map": "function(doc){}", "reduce": "function (k, v) { return require('views/lib/m').f(v); }"}}}
        """#.utf8))
    try expect(
      context.reduced(0, keys: #"[["k","id"],[null,"é"]]"#, values: "[1,{}]"),
      equals: #"[[["k","id"],[null,"é"]],[1,{}],false]"#)
    try expect(context.reduced(0, keys: nil, values: "[3]", rereduce: true), equals: "[null,[3],true]")
    let error = scriptError { _ = try context.reduced(1, keys: "[]", values: "[]") }
    expect(error?.code, equals: .exception)
    expect(error?.message, equals: "no")
    try expect(context.reduced(2, keys: "[]", values: "[]"), equals: "null")
    expect(scriptError { _ = try context.reduced(3, keys: "[]", values: "[]") }?.code, equals: .missing)
    try expect(context.reduced(4, keys: "[]", values: "[1,2,3.5]"), equals: "6.5")
    expect(scriptError { _ = try context.reduced(9, keys: "[]", values: "[]") }?.code, equals: .missing)
  }

  private static let functions = Array(
    #"""
    {"_id": "_design/d", "word": "exports.w = 'x'",
     "views": {"v": {"map": "function (doc) { if (doc.n > 1) { emit(1); emit(2); } }"}},
     "filters": {"f": "function (doc, req) { return doc.t === req.query.t; }", "bad": "function (",
       "truthy": "function (doc) { return doc.n; }", "throws": "function (doc) { return doc.a.b; }",
       "uses": "function (doc) { return require('word').w === 'x' && this._id === '_design/d'; }", "number": 5},
     "validate_doc_update": "function (new_, old, user, security) { if (new_.type === 'secret') throw({forbidden: 'not allowed'}); if (new_.type === 'mine' && user.name !== 'me') throw({unauthorized: 'log in'}); if (old && old.keep && new_._deleted) throw({forbidden: {why: 'kept'}}); if (new_.boom) new_.a.b; if (new_.loop) while (true); require('word'); }"}
    """#.utf8)

  @Test("A filter chooses documents, with the request")
  func filters() throws {
    let context = try JavaScript().open(designDocument: Self.functions)
    let request = Array(#"{"query":{"t":"x"}}"#.utf8)
    let documents = batch(#"{"t":"x","n":0}"#, #"{"t":"y","n":2}"#, #"{"n":"text"}"#)
    try expect(context.filter("f", documents, request: request), equals: [true, false, false])
    try expect(context.filter("truthy", documents, request: request), equals: [false, true, true])
    try expect(context.filter("uses", documents, request: request), equals: [true, true, true])
    try expect(context.filter("f", ScriptBatch(), request: request), equals: [])
    try expect(context.filter(view: "v", documents), equals: [false, true, false])
  }

  @Test("Filters that are missing, don't compile or throw are errors")
  func wrongFilters() throws {
    let context = try JavaScript().open(designDocument: Self.functions)
    func failure(_ name: String) -> ScriptError? {
      scriptError { _ = try context.filter(name, batch(#"{"a":{}}"#, "{}"), request: Array("{}".utf8)) }
    }
    expect(failure("nosuch"), equals: ScriptError(.missing, "missing json key: nosuch"))
    expect(failure("number")?.code, equals: .missing)
    expect(failure("toString")?.code, equals: .missing)
    expect(failure("bad")?.code, equals: .compilation)
    expect(failure("bad")?.message, equals: "SyntaxError: missing formal parameter (function ()")
    expect(failure("throws")?.code, equals: .exception)
    expect(failure("throws")?.documentID, equals: "b")
    expect(scriptError { _ = try context.filter(view: "f", batch("{}")) }?.code, equals: .missing)
  }

  @Test("A validation function allows, forbids, or asks who it is")
  func validation() throws {
    let context = try JavaScript(process: ScriptProcess(limits: ScriptLimits(callSeconds: 0.3)))
      .open(designDocument: Self.functions)
    try expect(context.verdict("{}"), equals: .allowed)
    try expect(context.verdict(#"{"type":"secret"}"#), equals: .forbidden("not allowed"))
    try expect(context.verdict(#"{"type":"mine"}"#), equals: .unauthorized("log in"))
    try expect(
      context.verdict(#"{"_deleted":true}"#, old: #"{"keep":1}"#), equals: .forbidden(#"{"why":"kept"}"#))
    try expect(context.verdict(#"{"_deleted":true}"#, old: "{}"), equals: .allowed)
    expect(scriptError { _ = try context.verdict(#"{"boom":1}"#) }?.code, equals: .exception)
    expect(scriptError { _ = try context.verdict(#"{"loop":1}"#) }?.code, equals: .stopped)
    try expect(context.verdict("{}"), equals: .allowed)
    try expect(JavaScript().open(designDocument: Array("{}".utf8)).verdict("{}"), equals: .allowed)
  }

  @Test("Filters and validations don't wait for maps")
  func separateProgram() throws {
    let language = JavaScript(process: ScriptProcess(limits: ScriptLimits(callSeconds: 60)))
    let context = try language.open(designDocument: Self.functions)
    let program = try #require(language.process.processID)
    // A map that goes on for as long as this test wants.
    kill(program, SIGSTOP)
    while try !String(contentsOfFile: "/proc/\(program)/stat", encoding: .utf8).contains(") T ") {
      Thread.sleep(forTimeInterval: 0.01)
    }
    nonisolated(unsafe) let mapping = try context.beginMapping(batch(#"{"n":2}"#), views: [0])
    let isMapped = Lock(false)
    let end = CountingSemaphore()
    let worker = Workers(maximum: 1)
    worker.enqueue {
      let count = try? mapping.finish().documentCount
      isMapped.withLock { $0 = count == 1 }
      end.signal()
    }
    let request = Array(#"{"query":{"t":"x"}}"#.utf8)
    try expect(context.filter("f", batch(#"{"t":"x"}"#), request: request), equals: [true])
    try expect(context.filter(view: "v", batch(#"{"n":2}"#)), equals: [true])
    try expect(context.verdict(#"{"type":"secret"}"#), equals: .forbidden("not allowed"))
    // Neither does a design document that is new.
    let new = try language.open(designDocument: Self.functions)
    try expect(new.filter("truthy", batch(#"{"n":1}"#), request: request), equals: [true])
    expect(!isMapped.withLock { $0 })
    let other = try #require(language.functions.processID)
    expect(other != program)
    kill(program, SIGCONT)
    end.wait()
    expect(isMapped.withLock { $0 })
    expect(language.process.processID, equals: program)
    // When the context is closed, both may go on.
    context.close()
    try expect(context.filter("f", batch(#"{"t":"x"}"#), request: request), equals: [true])
    expect(language.functions.processID, equals: other)
  }
}
