import Expectations
import Testing

@testable import Scripts

/// What CouchDB says when a design document is written.
@Suite("Compiling design documents") struct CompilingTests {
  private func failure(_ designDocument: String) -> ScriptError? {
    scriptError { _ = try JavaScript().open(designDocument: Array(designDocument.utf8)) }
  }

  private func failure(map: String) -> ScriptError? {
    scriptError { _ = try JavaScript().open(designDocument: design(["x": map])) }
  }

  @Test("A syntax error in a map names the view and gives the source")
  func syntaxErrorInMap() {
    let error = failure(map: "function (doc) { emit(")
    expect(error?.code, equals: .compilation)
    expect(
      error?.message,
      equals: "Compilation of the map function in the 'x' view failed: "
        + "SyntaxError: expected expression, got end of script (function (doc) { emit()")
  }

  @Test("A syntax error in a reduce function says that it is there")
  func syntaxErrorInReduce() {
    let error = failure(#"{"views":{"x":{"map":"function (doc) { emit(1,1); }","reduce":"function ("}}}"#)
    expect(error?.code, equals: .compilation)
    expect(
      error?.message.hasPrefix(
        "Compilation of the reduce function in the 'x' view failed: SyntaxError: missing formal parameter"),
      equals: true)
  }

  @Test(
    "A named function, a number and an empty text aren't functions",
    arguments: [
      "function named (doc) { emit(doc._id, 1); }", "5", "", ";", "// function (doc) {}",
    ])
  func noFunction(map: String) {
    let error = failure(map: map)
    expect(error?.code, equals: .compilation)
    expect(error?.message.contains("Expression does not eval to a function."), equals: true)
  }

  @Test(
    "Functions may be arrows, in parentheses, and have comments and semicolons",
    arguments: [
      "(doc) => { emit(doc._id, 1); }", "(function (doc) { emit(doc._id, 1); })",
      "function(doc){emit(doc._id, 1)};",
      "// a comment\nfunction (doc) { emit(doc._id, 1); }",
      "/* a */ function (doc) { emit(doc._id, 1); } // b",
      "function (doc) { const a = 1; let b = `${a}`; emit(doc._id, +b); }", "doc => emit(doc._id, 1)",
      "(function named(doc) { emit(doc._id, 1); })",
    ])
  func functions(map: String) throws {
    try expect(mapped(map), equals: [TestRow("\"a\"", "1")])
  }

  @Test(
    "Members of the wrong type are named",
    arguments: [
      (#"{"views":{"x":{"map":5}}}"#, "`views.x.map` field must have string type"),
      (#"{"views":[]}"#, "`views` field must have object type"),
      (#"{"views":5}"#, "`views` field must have object type"),
      (#"{"views":{"x":{"reduce":"_count"}}}"#, "View `x` must contain map function"),
      (
        #"{"views":{"x":{"map":"function(doc){}","reduce":"_nosuch"}}}"#,
        "`_nosuch` is not a supported reduce function."
      ),
      (#"{"views":{"x":{"map":"function(doc){}","reduce":"_top_x"}}}"#, "invalid rank reducer"),
      (#"{"views":{"x":{"map":"function(doc){}","reduce":"_bottom_"}}}"#, "invalid rank reducer"),
      (
        #"{"views":{"x":{"map":"function(doc){}","reduce":"_top_0"}}}"#,
        "rank value must be between 1 and 100"
      ),
      (
        #"{"views":{"x":{"map":"function(doc){}","reduce":"_bottom_101"}}}"#,
        "rank value must be between 1 and 100"
      ),
      (
        #"{"views":{"x":{"map":"function(doc){}","reduce":"_bottom_-5"}}}"#,
        "rank value must be between 1 and 100"
      ),
      (
        #"{"views":{"x":{"map":"function(doc){}","reduce":5}}}"#,
        "`views.x.reduce` field must have string type"
      ),
      ("[]", nil), ("5", "A design document must be a JSON object"),
    ])
  func wrongTypes(designDocument: String, message: String?) {
    let error = failure(designDocument)
    if let message {
      expect(error?.code, equals: .invalidDefinition)
      expect(error?.message, equals: message)
    }
  }

  @Test("A design document that isn't JSON is an error")
  func noJSON() { expect(failure("{oops") != nil) }

  @Test("Views keep their order and their ways to reduce")
  func views() throws {
    let context = try JavaScript().open(
      designDocument: Array(
        #"""
        {"validate_doc_update": "function () {}", "views": {"lib": {"m": "exports.a = 1"},
         "z": {"map": "function(doc){}", "reduce": "_stats"}, "a": {"map": "function(doc){}"},
         "é": {"map": "function(doc){}", "reduce": "function(k, v){ return 1 }"}}}
        """#.utf8))
    expect(
      context.views,
      equals: [
        ScriptView(name: "z", reduce: .builtIn("_stats")), ScriptView(name: "a", reduce: .none),
        ScriptView(name: "é", reduce: .script),
      ])
    expect(context.hasValidation)
    try expect(!JavaScript().open(designDocument: Array("{}".utf8)).hasValidation)
  }

  @Test(
    "Code from strings is refused",
    arguments: [
      "function (doc) { emit(eval('1'), 1) }", "function (doc) { emit(new Function('return 1')(), 1) }",
      "function (doc) { emit((function(){}).constructor('return 1')(), 1) }",
    ])
  func evaluation(map: String) throws {
    let rows = try JavaScript().open(designDocument: design(["x": map])).map(
      batch(#"{"_id":"a"}"#), views: [0])
    expect(rows.exception(document: 0, view: 0)?.contains("EvalError"), equals: true)
  }
}
