import Documents
import Storage
import Synchronization

// What planning needs of a database's value indexes is read once, and kept while it is right: definitions are parsed
// and keyspaces opened as long as nobody, in whatever process, makes or removes an index (`IndexVersion`). Counts and
// statistics are estimates: they are read again after so many changes that they may mislead.

/// What is known of a database's value indexes, as of one version of them.
final class IndexKnowledge: Sendable {
  let version: IndexVersion
  /// The last sequence, and the live documents, when the statistics were read.
  private let sequence: UInt64
  let documentCount: Int
  /// Without owning it: a closed one isn't kept open.
  private weak let engine: (any StorageEngine)?
  /// The indexes, their expressions canonical for a source called `_`.
  let indexes: [PlannedIndex]
  /// How often it was asked whether it holds. What other processes change is looked for every so often.
  private let uses = Atomic<UInt64>(0)
  private static let usesPerReading: UInt64 = 64
  /// The same for sources with other names.
  private let renamed = Lock<[ByteString: [PlannedIndex]]>([:])
  private static let mostNames = 64

  /// Reads what a snapshot has.
  init(_ snapshot: DocumentSnapshot, _ version: IndexVersion) throws {
    self.version = version
    sequence = try snapshot.lastSequence
    documentCount = try snapshot.documentCount
    engine = try snapshot.engine
    var indexes: [PlannedIndex] = []
    for record in try snapshot.indexes where record.kind == ValueIndexKind.name {
      let definition = try ValueIndexDefinition(record)
      let reader = try ValueIndexReader(record, definition, in: try snapshot.storage)
      if let index = try PlannedIndex(definition, reader) { indexes.append(index) }
    }
    self.indexes = indexes
  }

  /// Whether plans that were made by it are right in a snapshot.
  func holds(_ version: IndexVersion, _ snapshot: DocumentSnapshot) throws -> Bool {
    guard version.generation == self.version.generation,
      self.version.batch == 0 || self.version.batch == version.batch, try engine === snapshot.engine
    else { return false }
    // Reading it costs as much as finding a document, and the statistics are estimates anyway.
    let isDue = uses.add(1, ordering: .relaxed).newValue % Self.usesPerReading == 0
    let now = try isDue ? snapshot.lastSequence : snapshot.estimatedLastSequence
    let changes = now > sequence ? now - sequence : sequence - now
    return changes <= 64 + UInt64(documentCount) / 4
  }

  /// The indexes, their expressions those of a source.
  func indexes(of source: ByteString) -> [PlannedIndex] {
    if source == "_" { return indexes }
    if let known = renamed.withLock({ $0[source] }) { return known }
    let made = indexes.map { $0.of(source) }
    renamed.withLock { names in
      if names.count < IndexKnowledge.mostNames { names[source] = made }
    }
    return made
  }
}

/// What all queries of an open database know of its indexes.
public final class PlanningKnowledge: Sendable {
  private struct State {
    var committed: IndexKnowledge?
    /// Of a batch, which may be undone: nobody else uses it.
    var ofBatch: IndexKnowledge?
  }

  private let state = Lock(State())

  /// Nothing is known yet.
  public init() {}

  /// What holds in a snapshot: known, or read now.
  func of(_ snapshot: DocumentSnapshot) throws -> IndexKnowledge {
    let version = try snapshot.indexVersion
    let known = state.withLock { $0 }
    if let committed = known.committed, try committed.holds(version, snapshot) { return committed }
    if version.batch != 0, let own = known.ofBatch, try own.holds(version, snapshot) { return own }
    let read = try IndexKnowledge(snapshot, version)
    state.withLock { state in
      if version.batch == 0 { state.committed = read } else { state.ofBatch = read }
    }
    return read
  }
}
