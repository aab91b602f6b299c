import Storage

/// An engine over another one that keeps every promise of the protocol, and each at its weakest.
///
/// - Lent bytes are copies that end at a page that can't be touched, and that can't be touched themselves from the moment
///   the closure returns. Who keeps a pointer dies of SIGSEGV, where with the engine below it would see other bytes
///   later and perhaps. Keys and values handed to the engine below are lent to it in the same way.
/// - Scans hand over one entry at a time; `ScanOrder.stored` is descending order.
/// - What is left to defaults is done by the defaults: `getMany` reads key by key, `follow` is a scan with reads inside.
/// - A write, or a move of a cursor, throws `bytesAreLent` inside a closure that bytes are lent to. A cursor is nowhere
///   after a write. Snapshots, cursors and write transactions throw `closed` once they have ended.
/// - No more snapshots are open at once than an engine has to allow.
/// - With `Strictness` writes conflict at random and snapshots expire.
///
/// It is for tests. What it can't weaken it passes on: durability, files, statistics, checks.
public final class StrictEngine: EngineMaintenance {
  /// Within so many reads a snapshot expires that does so at random.
  private static let mostReadsUntilExpiry = 40
  private let wrapped: any StorageEngine
  private let strictness: Strictness
  private let state: Lock<State>

  private struct State {
    var generator: SeededGenerator
    var readers = 0
    var commits = 0
  }

  /// A strict engine over `wrapped`, under the name `name`.
  init(_ wrapped: any StorageEngine, name: String, strictness: Strictness) {
    self.wrapped = wrapped
    self.name = name
    self.strictness = strictness
    state = Lock(State(generator: SeededGenerator(seed: strictness.seed)))
  }

  /// The kind of engine that is strict over `type`. `name` is that of `type` unless another one is given: then databases
  /// of `type` are opened with the strict engine.
  public static func type(
    over type: EngineType, name: String? = nil, strictness: Strictness = Strictness()
  ) -> EngineType {
    let name = name ?? type.name
    return EngineType(
      name: name, fileExtension: type.fileExtension, encrypts: type.encrypts, isStructure: type.isStructure
    ) { path, options in
      StrictEngine(try type.open(path, options), name: name, strictness: strictness)
    }
  }

  /// What it is chosen by.
  public let name: String
  /// That of the engine below.
  public var library: String { wrapped.library }
  /// That of the engine below.
  public var location: String { wrapped.location }
  /// Those that all engines share, whatever the engine below can do.
  public var limits: EngineLimits { .portable }
  /// That of the engine below.
  public var durability: Durability { wrapped.durability }
  /// That of the engine below.
  public var isReadOnly: Bool { wrapped.isReadOnly }
  /// Those of the engine below.
  public var settings: [(name: String, value: String)] { wrapped.settings }
  /// That of the engine below.
  public var compactsInPlace: Bool { (wrapped as? any EngineMaintenance)?.compactsInPlace ?? false }

  /// Begins a snapshot of the engine below.
  public func beginRead() throws -> any ReadTransaction {
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

  /// Writes to the engine below. Throws `conflict` at random when that was asked for.
  public func write(_ body: (any WriteTransaction) throws -> Void) throws {
    try wrapped.write { transaction in
      let writer = StrictWriter(transaction, path: location)
      defer { writer.expire() }
      try body(writer)
      if let times = strictness.conflicts, state.withLock({ $0.generator.once(in: times) }) {
        throw StorageError(.conflict, "another transaction wrote what this one has read", path: location)
      }
    }
    state.withLock { $0.commits += 1 }
  }

  /// Those of the engine below.
  public func statistics() throws -> EngineStatistics { try wrapped.maintenance.statistics() }
  /// Done by the engine below.
  public func backup(to path: String) throws { try wrapped.maintenance.backup(to: path) }
  /// Done by the engine below.
  public func compact() throws { try wrapped.maintenance.compact() }
  /// Done by the engine below.
  public func checkIntegrity() throws -> [String] { try wrapped.maintenance.checkIntegrity() }
  /// Closes the engine below.
  public func close() throws { try wrapped.close() }
}
