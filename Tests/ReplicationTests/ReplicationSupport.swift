// What the tests of replication share.

import Documents
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication

/// The pairs of engines on which all must be alike.
let enginePairs: [(EngineName, EngineName)] =
  isStrict
  ? [(.sqlite, .lmdb), (.lmdb, .sqlite)]
  : [(.sqlite, .sqlite), (.lmdb, .lmdb), (.sqlite, .lmdb), (.lmdbEncrypted, .sqlcipher)]

/// The result of a one-shot replication.
struct Outcome {
  var status: ReplicatorStatus
  var documents: [ReplicatedDocument]
  var pushed: [String] { documents.filter { $0.isPush && $0.error == nil }.map(\.id).sorted() }
  var pulled: [String] { documents.filter { !$0.isPush && $0.error == nil }.map(\.id).sorted() }
  var failed: [String: ReplicationError] {
    Dictionary(documents.compactMap { document in document.error.map { (document.id, $0) } }) { $1 }
  }
}

/// Runs a replication until it has stopped.
@discardableResult
func replicate(
  _ from: Database, _ to: Database, sourceLocation: SourceLocation = #_sourceLocation,
  _ change: (inout ReplicatorConfiguration) -> Void = { _ in }
) throws -> Outcome {
  var configuration = ReplicatorConfiguration(from, ReplicatorTarget(connection(to: to)))
  configuration.skipsTombstonesOfFirstPull = false
  if linksByHTTP { configuration.conflictResolver = .custom(DefaultConflictResolver()) }
  change(&configuration)
  return try run(configuration, sourceLocation: sourceLocation)
}

func run(
  _ configuration: ReplicatorConfiguration, sourceLocation: SourceLocation = #_sourceLocation
) throws -> Outcome {
  let replicator = Replicator(configuration)
  let documents = Lock<[ReplicatedDocument]>([])
  let stopped = CountingSemaphore()
  let tokens = [
    replicator.observeDocuments { new in documents.withLock { $0 += new } },
    replicator.observeStatus { if $0.activity == .stopped { stopped.signal() } },
  ]
  replicator.start()
  if !stopped.wait(seconds: 120) {
    Issue.record("the replication doesn't stop: \(replicator.status)", sourceLocation: sourceLocation)
  }
  for token in tokens { token.cancel() }
  return Outcome(status: replicator.status, documents: documents.withLock { $0 })
}

/// What users see of each document and tombstone: its current revision and its body.
func winners(_ database: Database) throws -> [String: String] {
  var found: [String: String] = [:]
  for document in try database.read({ try $0.documents(AllDocuments(.includingDeleted)) }) {
    found[document.id] =
      "\(document.revisionID)\(document.isDeleted ? " deleted" : "") \(String(decoding: try document.json(), as: UTF8.self))"
  }
  return found
}

/// Expects the same documents on both sides. With `anyTombstone`, two tombstones are equal.
func expectEqual(
  _ left: Database, _ right: Database, _ what: String = "", anyTombstone: Bool = false,
  sourceLocation: SourceLocation = #_sourceLocation
) throws {
  func all(_ database: Database) throws -> [String: String] {
    let found = try winners(database)
    return anyTombstone ? found.mapValues { $0.contains(" deleted {") ? "deleted" : $0 } : found
  }
  let (a, b) = (try all(left), try all(right))
  guard a != b else { return }
  let different = Set(a.keys).union(b.keys).filter { a[$0] != b[$0] }.sorted()
  let first = different.first ?? ""
  Issue.record(
    "\(what): \(different.count) documents differ; \(first): \(a[first] ?? "missing") | \(b[first] ?? "missing")",
    sourceLocation: sourceLocation)
}
