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
    #expect(
      try context.reduced(0, keys: #"[["k","id"],[null,"é"]]"#, values: "[1,{}]")
        == #"[[["k","id"],[null,"é"]],[1,{}],false]"#)
    #expect(try context.reduced(0, keys: nil, values: "[3]", rereduce: true) == "[null,[3],true]")
    let error = scriptError { _ = try context.reduced(1, keys: "[]", values: "[]") }
    #expect(error?.code == .exception)
    #expect(error?.message == "no")
    #expect(try context.reduced(2, keys: "[]", values: "[]") == "null")
    #expect(scriptError { _ = try context.reduced(3, keys: "[]", values: "[]") }?.code == .missing)
    #expect(try context.reduced(4, keys: "[]", values: "[1,2,3.5]") == "6.5")
    #expect(scriptError { _ = try context.reduced(9, keys: "[]", values: "[]") }?.code == .missing)
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
    #expect(try context.filter("f", documents, request: request) == [true, false, false])
    #expect(try context.filter("truthy", documents, request: request) == [false, true, true])
    #expect(try context.filter("uses", documents, request: request) == [true, true, true])
    #expect(try context.filter("f", ScriptBatch(), request: request) == [])
    #expect(try context.filter(view: "v", documents) == [false, true, false])
  }

  @Test("Filters that are missing, don't compile or throw are errors")
  func wrongFilters() throws {
    let context = try JavaScript().open(designDocument: Self.functions)
    func failure(_ name: String) -> ScriptError? {
      scriptError { _ = try context.filter(name, batch(#"{"a":{}}"#, "{}"), request: Array("{}".utf8)) }
    }
    #expect(failure("nosuch") == ScriptError(.missing, "missing json key: nosuch"))
    #expect(failure("number")?.code == .missing)
    #expect(failure("toString")?.code == .missing)
    #expect(failure("bad")?.code == .compilation)
    #expect(failure("bad")?.message == "SyntaxError: missing formal parameter (function ()")
    #expect(failure("throws")?.code == .exception)
    #expect(failure("throws")?.documentID == "b")
    #expect(scriptError { _ = try context.filter(view: "f", batch("{}")) }?.code == .missing)
  }

  @Test("A validation function allows, forbids, or asks who it is")
  func validation() throws {
    let context = try JavaScript(process: ScriptProcess(limits: ScriptLimits(callSeconds: 0.3)))
      .open(designDocument: Self.functions)
    #expect(try context.verdict("{}") == .allowed)
    #expect(try context.verdict(#"{"type":"secret"}"#) == .forbidden("not allowed"))
    #expect(try context.verdict(#"{"type":"mine"}"#) == .unauthorized("log in"))
    #expect(try context.verdict(#"{"_deleted":true}"#, old: #"{"keep":1}"#) == .forbidden(#"{"why":"kept"}"#))
    #expect(try context.verdict(#"{"_deleted":true}"#, old: "{}") == .allowed)
    #expect(scriptError { _ = try context.verdict(#"{"boom":1}"#) }?.code == .exception)
    #expect(scriptError { _ = try context.verdict(#"{"loop":1}"#) }?.code == .stopped)
    #expect(try context.verdict("{}") == .allowed)
    #expect(try JavaScript().open(designDocument: Array("{}".utf8)).verdict("{}") == .allowed)
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
    #expect(try context.filter("f", batch(#"{"t":"x"}"#), request: request) == [true])
    #expect(try context.filter(view: "v", batch(#"{"n":2}"#)) == [true])
    #expect(try context.verdict(#"{"type":"secret"}"#) == .forbidden("not allowed"))
    // Neither does a design document that is new.
    let new = try language.open(designDocument: Self.functions)
    #expect(try new.filter("truthy", batch(#"{"n":1}"#), request: request) == [true])
    #expect(!isMapped.withLock { $0 })
    let other = try #require(language.functions.processID)
    #expect(other != program)
    kill(program, SIGCONT)
    end.wait()
    #expect(isMapped.withLock { $0 })
    #expect(language.process.processID == program)
    // When the context is closed, both may go on.
    context.close()
    #expect(try context.filter("f", batch(#"{"t":"x"}"#), request: request) == [true])
    #expect(language.functions.processID == other)
  }
}
