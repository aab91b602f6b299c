// What the tests of replication share.

import Documents
@_exported import ReplicationTestSupport
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication

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
