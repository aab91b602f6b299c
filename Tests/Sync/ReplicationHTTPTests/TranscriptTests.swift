import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationHTTP

/// A server of a test that is a CouchDB with one database.
struct CouchServer {
  let model: CouchModel
  let server: MiniServer

  init(_ name: String = "db", exists: Bool = true) throws {
    let model = CouchModel(name)
    model.state.withLock { $0.exists = exists }
    self.model = model
    server = try MiniServer { model.answer($0) }
  }

  /// Replicates with a database here.
  @discardableResult
  func replicate(
    _ database: Database, _ direction: ReplicatorConfiguration.Direction = .pushAndPull,
    _ change: (inout ReplicatorConfiguration) -> Void = { _ in }
  ) throws -> Outcome {
    var configuration = ReplicatorConfiguration(database, try .httpURL(server.url + model.name))
    configuration.direction = direction
    configuration.maximumRetries = 0
    change(&configuration)
    return try run(configuration)
  }
}

func expectSame(
  _ a: [String: [String]], _ b: [String: [String]], _ what: String,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  let different = Set(a.keys).union(b.keys).filter { a[$0] != b[$0] }.sorted()
  guard let first = different.first else { return }
  Issue.record(
    "\(what): \(different.count) documents differ; \(first): \(a[first] ?? ["missing"]) | \(b[first] ?? ["missing"])",
    sourceLocation: sourceLocation)
}

@Suite(
  "Recorded sessions of CouchDB's and PouchDB's replicators, played from the other side",
  .enabled(if: RecordedSession.directory != nil, "TOUCHSTONE_DATA isn't set"))
struct HTTPTranscriptTests {
  private let databases = TestDatabases()

  // The others aren't replications: api-01 to -12 and pouch9-05 are calls of the API, pouch9-07 is a page of another origin.
  static let sessions = [
    "replicator-01-pull", "replicator-02-pull-without-bulk-get", "replicator-03-push",
    "replicator-04-both-ends",
    "replicator-05-filtered", "replicator-06-continuous", "replicator-07-replicator-database",
    "replicator-08-errors-and-fallbacks", "pouch7-01-pull", "pouch7-02-push", "pouch7-03-live-sync",
    "pouch7-04-filtered", "pouch7-06-errors", "pouch9-01-pull", "pouch9-02-push", "pouch9-03-live-sync",
    "pouch9-04-filtered", "pouch9-06-errors",
  ]

  @Test(
    "what was transferred is pulled and pushed, step by step, and both ends are equal", arguments: sessions)
  func both(_ name: String) throws {
    let session = try RecordedSession(name)
    expect(!session.databases.isEmpty)
    for (index, entry) in session.databases.sorted(by: { $0.key < $1.key }).enumerated() {
      let what = "\(name) \(entry.key)"
      let local = try databases.open(index % 2 == 0 ? .lmdb : .sqlite)
      let (source, target) = (try CouchServer("src"), try CouchServer("copy", exists: false))
      source.model.state.withLock { state in
        if name.contains("without-bulk-get") { state.missing["_bulk_get"] = 404 }
      }
      for items in entry.value {
        for item in items { source.model.add(item.id, item.revision) }
        let pull = try source.replicate(local, .pull)
        expect(pull.status.error == nil && pull.failed.isEmpty, "\(what) \(pull.failed)")
        expectSame(source.model.contents, try modelContents(local), "\(what) pulled")
        let push = try target.replicate(local, .push) { $0.connection.createsDatabase = true }
        expect(push.status.error == nil && push.failed.isEmpty, "\(what) \(push.failed)")
        expectSame(source.model.contents, target.model.contents, "\(what) pushed")
        source.server.forget()
        target.server.forget()
        try expect(source.replicate(local, .pull).documents.isEmpty, "\(what)")
        try expect(target.replicate(local, .push).documents.isEmpty, "\(what)")
        expect(!source.server.log.contains { $0.contains("_bulk_get") }, "\(what)")
        expect(!target.server.log.contains { $0.contains("_revs_diff") }, "\(what)")
      }
      expect(source.model.complaints == [] && target.model.complaints == [], "\(what)")
      try expect(local.check(deep: true), equals: [], "\(what)")
    }
  }

  @Test(
    "errors that servers and the recorder gave, each in the place of one answer, cost no document",
    arguments: [
      "replicator-07-replicator-database", "replicator-08-errors-and-fallbacks", "pouch7-06-errors",
      "pouch9-06-errors",
    ])
  func errors(_ name: String) throws {
    var met = 0
    for error in try RecordedSession.errors(name) {
      let model = CouchModel("db")
      let local = try databases.open(.lmdb)
      for number in 0..<5 {
        try local.save("here\(number)", ["n": .int(Int64(number))])
        model.add(
          "there\(number)",
          .init(
            history: ["1-a"], isDeleted: false, body: [:],
            attachments: number > 0
              ? []
              : [
                .init(
                  name: "x", contentType: "a/b", revpos: 1, bytes: [1, 2], length: 2, isCompressed: false)
              ]))
      }
      var attached = MutableDocument(id: "here attached")
      attached.setAttachment("x", try Blob([1, 2, 3], contentType: "image/png"))
      try local.save(&attached)
      let wasGiven = Lock(false)
      let server = try MiniServer { request in
        let isIt = wasGiven.withLock { given in
          let isIt = !given && request.method == error.method && request.kind == error.kind
          given = given || isIt
          return isIt
        }
        return isIt ? error.answer : model.answer(request)
      }
      var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
      configuration.connection.authenticator = .login(name: "me", password: "x")
      configuration.connection.firstPause = 0.001
      configuration.maximumRetries = 0
      let first = try run(configuration)
      guard wasGiven.withLock({ $0 }) else { continue }
      met += 1
      let second = try run(configuration)
      expect(second.status.error == nil && second.failed.isEmpty, "\(error): \(second)")
      // What was refused or lost for good isn't tried again.
      let done = first.documents.filter { $0.error != nil && !$0.isUndone }.map(\.id)
      var (there, here) = (model.contents, try modelContents(local))
      if error.kind == "document", [403, 404, 410].contains(error.answer.status) {
        (there["there0"], here["there0"]) = (nil, nil)
      }
      for id in done { (there[id], here[id]) = (nil, nil) }
      expectSame(there, here, "\(error)")
      expect(model.complaints == [] && done.count <= 5, "\(error)")
    }
    expect(met > 0)
  }

  @Test(
    "both ways at once, with changes on both ends",
    arguments: ["replicator-04-both-ends", "pouch9-03-live-sync"])
  func bothEnds(_ name: String) throws {
    let session = try RecordedSession(name)
    let items = session.databases.sorted { $0.key < $1.key }.flatMap { $0.value.flatMap { $0 } }
    let (first, second) = (try CouchServer("a"), try CouchServer("b"))
    for (index, item) in items.enumerated() {
      (index % 2 == 0 ? first : second).model.add(item.id, item.revision)
    }
    let local = try databases.open(.lmdb)
    for _ in 0..<2 {
      for server in [first, second] { try expect(server.replicate(local).status.error == nil) }
    }
    expectSame(first.model.contents, second.model.contents, name)
    expectSame(first.model.contents, try modelContents(local), name)
    expect(first.model.complaints == [] && second.model.complaints == [])
  }
}
