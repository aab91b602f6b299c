import Foundation
import TestTools

@testable import StoragePostgres

/// Whether a server can be started here. Without one, the tests that need one say so and are skipped.
let hasServer = PostgresServer.absence == nil

/// A new schema of the server that the tests of this process share.
func newLocation() throws -> String {
  try PostgresServer.shared.get().location("test-\(UUID().uuidString)")
}

/// Opens an engine with other settings than those of its options.
func open(
  _ location: String, _ creation: FileCreation = .openOrCreate, isReadOnly: Bool = false,
  _ change: (inout PostgresSettings) -> Void = { _ in }
) throws -> PostgresEngine {
  var settings = PostgresSettings(location: try PostgresLocation(location))
  settings.isReadOnly = isReadOnly
  settings.reconnectSeconds = 20
  change(&settings)
  return try PostgresEngine(settings, EngineOptions(creation: creation, isReadOnly: isReadOnly))
}

extension StorageEngine {
  /// Makes the keyspace `k` with entries of these texts.
  @discardableResult
  func fill(_ entries: [String: String]) throws -> Keyspace {
    try write { (transaction: any WriteTransaction) -> Keyspace in
      let keyspace = try transaction.createKeyspace("k", shape: .documents)
      for (key, value) in entries { try transaction.put(key, value, in: keyspace) }
      return keyspace
    }
  }

  /// The entries of the keyspace `k`, as texts.
  func texts() throws -> [String: String] {
    try read { transaction in
      var texts: [String: String] = [:]
      guard let keyspace = try transaction.keyspace(named: "k") else { return texts }
      try transaction.scan(keyspace) { key, value in
        texts[String(copying: key)] = String(copying: value)
        return true
      }
      return texts
    }
  }

  /// Opens nothing, and runs `body` before the engine is closed.
  func closing(_ body: (Self) throws -> Void) throws {
    do { try body(self) } catch {
      try? close()
      throw error
    }
    try close()
  }
}

extension WriteTransaction {
  func put(_ key: String, _ value: String, in keyspace: Keyspace) throws {
    try put(Array(key.utf8), Array(value.utf8), in: keyspace)
  }

  func known() throws -> Keyspace { try createKeyspace("k", shape: .documents) }
}

extension String {
  init(copying span: RawSpan) { self.init(decoding: [UInt8](copying: span), as: UTF8.self) }
}
