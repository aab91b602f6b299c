// What the tests of replication over HTTP share.

import Documents
@_exported import ReplicationTestSupport
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone
import TouchstoneServer

@testable import Replication
@testable import ReplicationHTTP

/// A listener of this process that answers HTTP. It stops with the last reference.
final class TestServer {
  let listener: SyncListener
  let url: String

  init(_ databases: [String: Database], _ change: (inout SyncListenerConfiguration) -> Void = { _ in }) throws
  {
    var configuration = SyncListenerConfiguration(databases: databases)
    configuration.servesHTTP = true
    change(&configuration)
    listener = SyncListener(configuration)
    try listener.start()
    url = try #require(listener.httpURL)
  }

  deinit { listener.stop() }
}

/// Replicates with the database of that name on a server.
@discardableResult
func replicate(
  _ local: Database, _ server: TestServer, _ name: String = "db",
  sourceLocation: SourceLocation = #_sourceLocation,
  _ change: (inout ReplicatorConfiguration) -> Void = { _ in }
) throws -> Outcome {
  var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + name))
  change(&configuration)
  return try run(configuration, sourceLocation: sourceLocation)
}

/// All leaves of all documents, with their bodies.
func allLeaves(_ database: Database) throws -> [String: [String]] {
  var found: [String: [String]] = [:]
  for document in try database.read({ try $0.documents(AllDocuments(.includingDeleted)) }) {
    found[document.id] = try database.leaves(of: document.id, includeDeleted: true).map { leaf in
      "\(leaf.id)\(leaf.isDeleted ? " deleted" : "") \(try leaf.body?.canonicalJSON() ?? "no body")"
    }.sorted()
  }
  return found
}

/// Expects the same leaves on both sides.
func expectEqual(
  _ left: Database, _ right: Database, _ what: String = "", sourceLocation: SourceLocation = #_sourceLocation
) throws {
  let (a, b) = (try allLeaves(left), try allLeaves(right))
  guard a != b else { return }
  let different = Set(a.keys).union(b.keys).filter { a[$0] != b[$0] }.sorted()
  let first = different.first ?? ""
  Issue.record(
    "\(what): \(different.count) documents differ; \(first): \(a[first] ?? ["missing"]) | \(b[first] ?? ["missing"])",
    sourceLocation: sourceLocation)
}
