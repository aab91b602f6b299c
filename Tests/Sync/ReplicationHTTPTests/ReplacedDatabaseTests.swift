import Documents
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationHTTP

@Suite("Databases that are deleted and made again, over HTTP") struct HTTPReplacedDatabaseTests {
  private let databases = TestDatabases()

  private func add(_ couch: CouchServer, _ id: String) {
    couch.model.add(id, .init(history: ["1-a"], isDeleted: false, body: [:], attachments: []))
  }

  /// Runs a continuous replication while `body` runs.
  private func replicating(
    _ couch: CouchServer, _ local: Database, _ direction: ReplicatorConfiguration.Direction,
    _ body: (Replicator, ManualTimer) throws -> Void
  ) throws {
    let timer = ManualTimer()
    var configuration = ReplicatorConfiguration(local, try .httpURL(couch.server.url + "db"))
    configuration.direction = direction
    configuration.isContinuous = true
    configuration.timer = timer
    configuration.connection.firstPause = 0.001
    let replicator = Replicator(configuration)
    replicator.start()
    try body(replicator, timer)
    couch.model.state.withLock { $0.isClosed = true }
    replicator.stop()
    eventually { replicator.status.activity == .stopped }
  }

  private func isHere(_ id: String, _ database: Database) -> Bool {
    (try? database.document(id)) != .some(nil)
  }

  @Test("what was pushed before is pushed again", arguments: [true, false]) func push(tellsInstance: Bool)
    throws
  {
    let couch = try CouchServer()
    couch.model.state.withLock { $0.tellsInstance = tellsInstance }
    let local = try databases.open(.lmdb)
    for number in 0..<20 { try local.save("a\(number)", [:]) }
    try replicating(couch, local, .push) { replicator, timer in
      eventually {
        timer.advance(by: 2)
        return couch.model.state.withLock { $0.locals.count == 1 && $0.documents.count == 20 }
      }
      couch.model.remake()
      try local.save("later", [:])
      eventually {
        timer.advance(by: 2)
        return couch.model.contents.count == 21
      }
    }
    // What a run that was over would have left, a later one can't know.
    try couch.replicate(local, .push)
    expectSame(couch.model.contents, try modelContents(local), "\(tellsInstance)")
    expect(couch.model.complaints, equals: [])
  }

  @Test("the last checkpoint of a run isn't saved in another database") func lastCheckpoint() throws {
    let couch = try CouchServer()
    let local = try databases.open(.sqlite)
    for number in 0..<20 { try local.save("a\(number)", [:]) }
    let isRemade = Lock(false)
    // Between the documents and the checkpoint.
    couch.server.faults.withLock {
      $0 = { request in
        let isNow =
          request.path.hasSuffix("_ensure_full_commit")
          && isRemade.withLock { isRemade in
            defer { isRemade = true }
            return !isRemade
          }
        if isNow { couch.model.remake() }
        return nil
      }
    }
    let first = try couch.replicate(local, .push)
    expect(first.status.error?.isTransient, equals: true)
    expect(couch.model.state.withLock { $0.locals.isEmpty })
    try expect(couch.replicate(local, .push).status.error == nil)
    expectSame(couch.model.contents, try modelContents(local), "again")
  }

  @Test("a feed goes on with the new database, whatever its sequences are", arguments: [true, false])
  func pull(givesNumbers: Bool) throws {
    let couch = try CouchServer()
    couch.model.state.withLock { $0.givesNumbers = givesNumbers }
    let local = try databases.open(.lmdb)
    for number in 0..<20 { add(couch, "a\(number)") }
    try replicating(couch, local, .pull) { replicator, timer in
      eventually { replicator.status.activity == .idle && isHere("a19", local) }
      couch.model.remake()
      add(couch, "new")
      eventually {
        timer.advance(by: 2)
        return isHere("new", local)
      }
      add(couch, "newer")
      eventually {
        timer.advance(by: 2)
        return isHere("newer", local)
      }
    }
    expect(couch.model.complaints, equals: [])
  }

  @Test("a feed that another answer breaks off is a lost connection") func brokenFeed() throws {
    let couch = try CouchServer()
    let local = try databases.open(.sqlite)
    add(couch, "old")
    let isBroken = Lock(true)
    couch.server.faults.withLock {
      $0 = { request in
        guard request.query["feed"] == "longpoll" else { return nil }
        return isBroken.withLock { isBroken in
          defer { isBroken = false }
          return isBroken ? .answerInChunks : nil
        }
      }
    }
    try replicating(couch, local, .pull) { replicator, timer in
      eventually { isHere("old", local) }
      couch.model.remake()
      add(couch, "new")
      eventually {
        timer.advance(by: 2)
        return isHere("new", local)
      }
      // When it stays deleted, the server says so.
      isBroken.withLock { $0 = true }
      couch.model.state.withLock { $0.exists = false }
      couch.model.remake()
      eventually {
        timer.advance(by: 2)
        return replicator.status.activity == .stopped
      }
      expect(replicator.status.error?.code, equals: 404, "\(replicator.status)")
    }
  }
}
