import Foundation
import Storage

/// An engine over another one that keeps every promise of the protocol, but no more than that.
///
/// - Lent bytes are copies that end at an inaccessible page. They become inaccessible when the closure
///   returns. A kept pointer then causes a SIGSEGV; with the engine below, it might see other bytes later.
///   Keys and values are lent to the engine below in the same way.
/// - Scans return one entry at a time. `ScanOrder.stored` is descending order.
/// - Operations with default implementations use these: `getMany` reads key by key, and `follow` is a scan
///   with reads inside.
/// - A write or a cursor move throws `bytesAreLent` inside a closure to which bytes are lent. A write
///   invalidates the positions of cursors. Snapshots, cursors and write transactions throw `closed` after
///   they have ended.
/// - The number of open snapshots is limited to what every engine has to allow.
/// - With `Strictness`, writes conflict at random, snapshots expire, and others commit between any two write
///   transactions.
///
/// It is for tests. Everything else is passed to the engine below: durability, files, statistics, checks.
package final class StrictEngine: EngineMaintenance {
  /// A snapshot that expires at random does so within this number of reads.
  private static let mostReadsUntilExpiry = 40
  private let wrapped: any StorageEngine
  private let strictness: Strictness
  private let state: Lock<State>
  private let stranger: Stranger?

  private struct State {
    var generator: SeededGenerator
    var readers = 0
    var commits = 0
    /// How often the engine has undone what a body had left, or has let somebody else commit.
    var breaks: UInt64 = 0
    /// The threads that run a body.
    var inBody: Set<UInt> = []
  }

  /// Makes a strict engine over `wrapped` with the name `name`.
  init(
    _ wrapped: any StorageEngine, name: String, strictness: Strictness,
    second: (() throws -> any StorageEngine)? = nil
  ) {
    self.wrapped = wrapped
    stranger = strictness.strangers.map { Stranger($0, wrapped, second) }
    self.name = name
    self.strictness = strictness
    state = Lock(State(generator: SeededGenerator(seed: strictness.seed)))
  }

  /// The type of a strict engine over `type`. If `name` is nil it has the name of `type`, so that databases
  /// of `type` can be opened with it.
  package static func type(
    over type: EngineType, name: String? = nil, strictness: Strictness = Strictness()
  ) -> EngineType {
    let name = name ?? type.name
    return EngineType(
      name: name, fileExtension: type.fileExtension, encrypts: type.encrypts,
      longestPath: type.longestPath, compressions: type.compressions, isStructure: type.isStructure
    ) { path, options in
      StrictEngine(try type.open(path, options), name: name, strictness: strictness) {
        var again = options
        again.creation = .openExisting
        return try type.open(path, again)
      }
    }
  }

  /// The engine's name.
  package let name: String
  /// The library of the engine below.
  package var library: String { wrapped.library }
  /// The location of the engine below.
  package var location: String { wrapped.location }
  /// The limits that all engines share, even if the engine below has higher ones.
  package var limits: EngineLimits { .portable }
  /// The durability of the engine below.
  package var durability: Durability { wrapped.durability }
  /// Whether the engine below is open for reading only.
  package var isReadOnly: Bool { wrapped.isReadOnly }
  /// The settings of the engine below.
  package var settings: [(name: String, value: String)] { wrapped.settings }
  /// Whether the engine below compacts in place.
  package var compactsInPlace: Bool { (wrapped as? any EngineMaintenance)?.compactsInPlace ?? false }

  /// Begins a snapshot of the engine below. Throws `tooManyReaders` at the limit.
  package func beginRead() throws -> any ReadTransaction {
    let (commits, limit) = try state.withLock { state in
      guard state.readers < strictness.maximumReaders else {
        throw StorageError(
          .tooManyReaders, "\(state.readers) snapshots are open, which is the limit", path: location)
      }
      state.readers += 1
      var limit: Int?
      if let times = strictness.expirations, state.generator.once(in: times) {
        limit = state.generator.below(Self.mostReadsUntilExpiry)
      }
      return (state.commits, limit)
    }
    var reads = 0
    do {
      return StrictSnapshot(
        try wrapped.beginRead(), path: location,
        isExpired: { [weak self] in
          reads += 1
          if let limit, reads > limit { return true }
          return self?.hasExpired(since: commits) ?? false
        },
        whenEnded: { [weak self] in self?.state.withLock { $0.readers -= 1 } })
    } catch {
      state.withLock { $0.readers -= 1 }
      throw error
    }
  }

  private func hasExpired(since commits: Int) -> Bool {
    guard let limit = strictness.snapshotCommits else { return false }
    return state.withLock { $0.commits - commits > limit }
  }

  /// Writes to the engine below. Throws `conflict` at random if `Strictness.conflicts` is set.
  package func write(_ body: (any WriteTransaction) throws -> Void) throws {
    let thread = UInt(pthread_self())
    if let stranger, !state.withLock({ $0.inBody.contains(thread) }) {
      try stranger.commit()
      state.withLock { $0.breaks += 1 }
    }
    try wrapped.write { transaction in
      let breaks = state.withLock { state in
        state.inBody.insert(thread)
        return state.breaks
      }
      defer { state.withLock { _ = $0.inBody.remove(thread) } }
      let writer = StrictWriter(transaction, path: location, losses: breaks)
      defer { writer.expire() }
      try body(writer)
      if let times = strictness.conflicts, state.withLock({ $0.generator.once(in: times) }) {
        state.withLock { $0.breaks += 1 }
        throw StorageError(.conflict, "another transaction wrote what this one has read", path: location)
      }
    }
    state.withLock { $0.commits += 1 }
  }

  /// The statistics of the engine below.
  package func statistics() throws -> EngineStatistics { try wrapped.maintenance.statistics() }
  /// Backs up the engine below.
  package func backup(to path: String) throws { try wrapped.maintenance.backup(to: path) }
  /// Compacts the engine below.
  package func compact() throws { try wrapped.maintenance.compact() }
  /// Checks the engine below.
  package func checkIntegrity() throws -> [String] { try wrapped.maintenance.checkIntegrity() }
  /// Closes the engine below.
  package func close() throws {
    try stranger?.close()
    try wrapped.close()
  }
}
