import Scripts
import TestSupport

@testable import Views

/// Filters and validation functions of design documents.
@Suite("Filters and validation functions of design documents") struct DesignFunctionTests {
  private let databases = TestDatabases()

  private static let filters: DocumentBody = [
    "views": ["big": ["map": "function (doc) { if (doc.n > 1) { emit(1); emit(2); } }"]],
    "filters": [
      "typed": "function (doc, req) { return doc.type === req.query.type; }",
      "deleted": "function (doc) { return doc._deleted === true; }",
      "throws": "function (doc) { return doc.n.toFixed(); }",
      "syntax": "function (", "endless": "function (doc) { while (doc.n === 2) ; return true; }",
      "user": "function (doc, req) { return req.userCtx.roles.indexOf('editor') >= 0; }",
    ],
  ]

  private func code(_ body: () throws -> Void) -> ViewError? {
    do { try body() } catch { return error as? ViewError }
    return nil
  }

  // MARK: Filters

  @Test("a filter chooses current revisions and tombstones, with the request", arguments: someEngines)
  func filters(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("_design/f", Self.filters)
    for number in 0..<3 {
      try database.save("d\(number)", ["n": .int(Int64(number)), "type": .string("t\(number % 2)")])
    }
    try database.save("gone", ["type": "t1"])
    try database.delete("gone")
    // The loser of a conflict isn't looked at.
    try database.apply(PulledRevision(id: "c", history: ["1-aa"], body: ["type": "t1"]))
    try database.apply(PulledRevision(id: "c", history: ["1-bb"], body: ["type": "t0"]))
    let ids = ["d2", "d1", "nosuch", "gone", "c", "d0"]
    func chosen(_ name: String, _ request: JSONObject = ["query": ["type": "t0"]]) throws -> [Bool] {
      try database.choose(documents: ids, with: database.designFilter(name), request: request)
    }
    try expect(chosen("f/typed"), equals: [true, false, false, false, true, true])
    try expect(
      chosen("f/typed", ["query": ["type": "t1"]]), equals: [false, true, false, false, false, false])
    try expect(chosen("f/deleted"), equals: [false, false, false, true, false, false])
    try expect(
      chosen("f/user", ["userCtx": ["roles": ["editor"]]]), equals: [true, true, false, true, true, true])
    let view = try database.designFilter(view: "f/big")
    try expect(
      database.choose(documents: ids, with: view), equals: [true, false, false, false, false, false])
    try expect(database.choose(documents: [], with: view), equals: [])
  }

  @Test("revisions are handed over in batches, and keep their order")
  func batches() throws {
    let database = try databases.open(.lmdb)
    try database.save("_design/f", Self.filters)
    let filler = JSONValue.string(String(repeating: "x", count: 5_000))
    let revisions = try (0..<200).map {
      try ScriptedRevision(
        id: "d\($0)", ["type": .string($0 % 3 == 0 ? "yes" : "no"), "filler": filler])
    }
    let filter = try database.designFilter("f/typed")
    expect(revisions.reduce(0) { $0 + $1.json.count } > 4 * ScriptBatch.fullBytes)
    try expect(
      filter.choose(revisions, request: ["query": ["type": "yes"]]), equals: (0..<200).map { $0 % 3 == 0 })
  }

  @Test("a revision has _id, _rev, _revisions and _deleted, whatever its body says")
  func revisions() throws {
    let history = try ["3-cc", "2-bb", "1-aa"].map { try #require(RevisionID($0)) }
    let revision = try ScriptedRevision(
      id: "d", history: history, isDeleted: true, ["n": 1, "_id": "other", "_rev": "9-zz"])
    let value = try revision.json.withUnsafeBytes { try JSONValue(json: $0) }
    expect(
      value,
      equals: [
        "_id": "d", "_rev": "3-cc", "_deleted": true, "n": 1,
        "_revisions": ["start": 3, "ids": ["cc", "bb", "aa"]],
      ])
    let new = try ScriptedRevision(id: "é\"", ["_deleted": true])
    try expect(new.json.withUnsafeBytes { try JSONValue(json: $0) }, equals: ["_id": "é\""])
  }

  @Test("filters that are missing, don't compile or throw are typed errors, which name the document")
  func wrongFilters() throws {
    let database = try databases.open(.lmdb)
    try database.save("_design/f", Self.filters)
    for number in 0..<3 { try database.save("d\(number)", number == 1 ? [:] : ["n": 1]) }
    func failure(_ name: String) -> ViewError? {
      code { _ = try database.choose(documents: ["d0", "d1"], with: database.designFilter(name)) }
    }
    expect(failure("f/nosuch")?.code, equals: .notFound)
    expect(failure("f/nosuch")?.message.contains("missing json key: nosuch") ?? false)
    expect(failure("nosuch/f")?.code, equals: .notFound)
    expect(failure("nosuch/f")?.documentID, equals: "_design/nosuch")
    for name in ["bad", "", "/", "f/", "/f"] {
      expect(failure(name)?.code, equals: .invalidArgument, "\(name)")
    }
    expect(failure("f/syntax")?.code, equals: .invalidDesign)
    expect(failure("f/throws")?.code, equals: .filterFailed)
    expect(failure("f/throws")?.documentID, equals: "d1")
    expect(
      code { _ = try database.choose(documents: ["d0"], with: database.designFilter(view: "f/x")) }?.code,
      equals: .notFound)
    // It is as good as before.
    try expect(
      database.choose(
        documents: ["d0"], with: database.designFilter("f/deleted")), equals: [false])
  }

  @Test("a filter that doesn't end is stopped, and names its document")
  func endlessFilter() throws {
    let database = try databases.open(.lmdb)
    let indexes = try limited(database, seconds: 0.3)
    try database.save("_design/f", Self.filters)
    for number in 1...3 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
    let filter = try DesignFilter("f/endless", in: indexes)
    let error = code {
      _ = try indexes.store.read { try filter.choose(documents: ["d1", "d2", "d3"], in: $0) }
    }
    expect(error?.code == .scriptFailed && error?.documentID == "d2", "\(String(describing: error))")
    try expect(
      indexes.store.read { try filter.choose(documents: ["d1", "d3"], in: $0) }, equals: [true, true])
  }

  @Test("a filter ends between two calls when nobody wants its choices")
  func unwantedFilter() throws {
    let database = try databases.open(.lmdb)
    try database.save(
      "_design/f",
      [
        "filters": [
          "slow": "function () { var end = Date.now() + 60; while (Date.now() < end); return true; }"
        ]
      ])
    let filter = try database.designFilter("f/slow")
    let revisions = try (0..<100).map { try ScriptedRevision(id: "d\($0)", [:]) }
    struct Unwanted: Error {}
    var asked = 0
    #expect(throws: Unwanted.self) {
      _ = try filter.choose(revisions) {
        asked += 1
        if asked == 3 { throw Unwanted() }
      }
    }
    expect(asked, equals: 3)
    try expect(filter.choose(revisions.prefix(2)), equals: [true, true])
  }

  /// Functions with less time than an open database gives them.
  private func limited(_ database: Database, seconds: Double) throws -> ViewIndexes {
    let own = try database.view("x").indexes
    let process = ScriptProcess(limits: ScriptLimits(callSeconds: seconds))
    return ViewIndexes(own.store, workers: own.workers, languages: [JavaScript(process: process)])
  }

  // MARK: Validation

  private static let validation: JSONValue = .string(
    """
    function (newDoc, oldDoc, userCtx, secObj) {
      if (newDoc.forbid) throw({forbidden: 'no ' + newDoc.forbid});
      if (newDoc.owner && newDoc.owner !== userCtx.name) throw({unauthorized: 'log in'});
      if (oldDoc && oldDoc.kept && newDoc._deleted) throw({forbidden: 'kept'});
      if (oldDoc !== null && newDoc._revisions.ids[1] === undefined) throw({forbidden: 'no parent'});
      if (newDoc.admin && secObj.admins.names.indexOf(userCtx.name) < 0 && userCtx.roles.indexOf('_admin') < 0)
        throw({forbidden: 'not an admin of ' + userCtx.db});
      if (newDoc.boom) null.x;
      while (newDoc.endless) ;
    }
    """)

  /// The outcome of a change: `ok`, or what refused it.
  private func outcome(
    _ database: Database, _ body: JSONObject, id: String = "d", replacing old: JSONObject? = nil,
    isDeleted: Bool = false, user: String? = "ann", roles: [String] = []
  ) throws -> String {
    let user = ValidationUser(
      database: "db", name: user, roles: roles, security: ["admins": ["names": ["root"]]])
    let parent = try #require(RevisionID("1-aa"))
    let child = try #require(RevisionID("2-bb"))
    do {
      try database.validate(
        ScriptedRevision(id: id, history: old == nil ? [] : [child, parent], isDeleted: isDeleted, body),
        replacing: old.map { try ScriptedRevision(id: id, history: [parent], $0) }, by: user)
      return "ok"
    } catch let refusal as ValidationRefusal {
      expect(refusal.documentID, equals: id)
      return "\(refusal.code) \(refusal.message) \(refusal.designID)"
    }
  }

  @Test("a validation function allows, forbids, or asks who it is", arguments: someEngines)
  func validation(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try expect(outcome(database, ["forbid": "way"]), equals: "ok")
    try database.save("_design/v", ["validate_doc_update": Self.validation])
    try expect(outcome(database, ["n": 1]), equals: "ok")
    try expect(outcome(database, ["forbid": "way"]), equals: "forbidden no way _design/v")
    try expect(outcome(database, ["owner": "ann"]), equals: "ok")
    try expect(outcome(database, ["owner": "bob"]), equals: "unauthorized log in _design/v")
    try expect(outcome(database, ["owner": "bob"], user: nil), equals: "unauthorized log in _design/v")
    try expect(
      outcome(database, [:], replacing: ["kept": true], isDeleted: true), equals: "forbidden kept _design/v")
    try expect(outcome(database, [:], replacing: ["kept": false], isDeleted: true), equals: "ok")
    try expect(outcome(database, ["admin": 1]), equals: "forbidden not an admin of db _design/v")
    try expect(outcome(database, ["admin": 1], user: "root"), equals: "ok")
    try expect(outcome(database, ["admin": 1], roles: ["_admin"]), equals: "ok")
    // Design documents aren't looked at; documents whose IDs only look like theirs are.
    try expect(outcome(database, ["forbid": "way"], id: "_design/x"), equals: "ok")
    try expect(outcome(database, ["forbid": "way"], id: "x_design/x"), equals: "forbidden no way _design/v")
    // As soon as the function changes, or goes.
    try database.save("_design/v", ["validate_doc_update": "function () { throw({forbidden: 'never'}); }"])
    try expect(outcome(database, [:]), equals: "forbidden never _design/v")
    try database.save("_design/v", ["validate_doc_update": ["no": "function"]])
    try expect(outcome(database, [:]), equals: "ok")
    try database.save("_design/v", ["validate_doc_update": "function () { throw({forbidden: 'never'}); }"])
    try database.delete("_design/v")
    try expect(outcome(database, [:]), equals: "ok")
  }

  @Test("all design documents must allow a change, in the order of their IDs")
  func severalDesigns() throws {
    let database = try databases.open(.sqlite)
    func save(_ name: String, _ member: String) throws {
      let function = "function (doc) { if (doc.\(member)) throw({forbidden: '\(name)'}); }"
      try database.save("_design/\(name)", ["validate_doc_update": .string(function)])
    }
    // A name whose first character combines with the slash before it.
    try save("\u{301}x", "z")
    try save("b", "y")
    try save("a", "x")
    try expect(outcome(database, ["n": 1]), equals: "ok")
    try expect(outcome(database, ["x": 1, "y": 1, "z": 1]), equals: "forbidden a _design/a")
    try expect(outcome(database, ["y": 1, "z": 1]), equals: "forbidden b _design/b")
    try expect(outcome(database, ["z": 1]), equals: "forbidden \u{301}x _design/\u{301}x")
  }

  @Test("a function that fails, doesn't compile or doesn't end refuses the change with a typed error")
  func failingValidation() throws {
    let database = try databases.open(.lmdb)
    try database.save("_design/v", ["validate_doc_update": Self.validation])
    let error = code { _ = try outcome(database, ["boom": 1]) }
    expect(error?.code == .validationFailed && error?.documentID == "d", "\(String(describing: error))")
    let indexes = try limited(database, seconds: 0.3)
    let user = ValidationUser(database: "db", name: nil)
    let endless = try ScriptedRevision(id: "e", ["endless": 1])
    let stopped = code { try indexes.validate(endless, replacing: nil, by: user) }
    expect(stopped?.code == .scriptFailed && stopped?.documentID == "e", "\(String(describing: stopped))")
    try indexes.validate(ScriptedRevision(id: "f", [:]), replacing: nil, by: user)
    try database.save("_design/v", ["validate_doc_update": "function ("])
    expect(code { _ = try outcome(database, [:]) }?.code, equals: .invalidDesign)
    try database.save("_design/v", ["language": "cobol", "validate_doc_update": "MOVE"])
    expect(code { _ = try outcome(database, [:]) }?.code, equals: .invalidDesign)
  }

  @Test("a view that doesn't compile doesn't matter for filters and validation")
  func brokenViews() throws {
    let database = try databases.open(.lmdb)
    try database.save(
      "_design/x",
      [
        "views": ["v": ["map": "function ("]],
        "filters": ["all": "function (doc) { return require('word').w === doc.w; }"],
        "word": "exports.w = 'x';",
        "validate_doc_update": "function (doc) { if (!doc.w) throw({forbidden: 'w'}); }",
      ])
    let filter = try database.designFilter("x/all")
    try database.save("a", ["w": "x"])
    try expect(database.choose(documents: ["a"], with: filter), equals: [true])
    try expect(outcome(database, [:]), equals: "forbidden w _design/x")
    try expect(outcome(database, ["w": 1]), equals: "ok")
    expect(code { _ = try database.view("x/v").query().run() }?.code, equals: .invalidDesign)
  }
}
