import Storage
import Synchronization
import Touchstone

/// LMDB, with a count of the commits that this process made.
///
/// It passes every call on to another engine. An engine with its own storage implements the same members.
package final class CountingEngine: EngineMaintenance {
  /// The kind of engine to register.
  package static let type = EngineType(name: "counting", fileExtension: "counting", encrypts: false) {
    CountingEngine(try Engines.type(.lmdb).open($0, $1))
  }

  private let base: any StorageEngine
  private let committed = Atomic<Int>(0)

  init(_ base: any StorageEngine) { self.base = base }

  /// The number of commits.
  package var commits: Int { committed.load(ordering: .relaxed) }

  package var name: String { Self.type.name }
  package var library: String { base.library }
  package var location: String { base.location }
  package var durability: Durability { base.durability }
  package var isReadOnly: Bool { base.isReadOnly }
  package var settings: [(name: String, value: String)] { base.settings }

  package func beginRead() throws -> any ReadTransaction { try base.beginRead() }

  package func write(_ body: (any WriteTransaction) throws -> Void) throws {
    try base.write(body)
    committed.add(1, ordering: .relaxed)
  }

  package func close() throws { try base.close() }

  package var compactsInPlace: Bool { (try? base.maintenance.compactsInPlace) ?? false }
  package func statistics() throws -> EngineStatistics { try base.maintenance.statistics() }
  package func backup(to path: String) throws { try base.maintenance.backup(to: path) }
  package func compact() throws { try base.maintenance.compact() }
  package func checkIntegrity() throws -> [String] { try base.maintenance.checkIntegrity() }
}
