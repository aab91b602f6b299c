import Documents
import Storage
import Synchronization

// The planner's knowledge of a database's value indexes. It is read once and kept while it is valid.
// Definitions stay parsed and keyspaces stay open as long as no process creates or removes an index
// (`IndexVersion`). Counts and statistics are estimates. They are read again after so many changes that they
// could mislead.

/// The knowledge of a database's value indexes at one version.
final class IndexKnowledge: Sendable {
  let version: IndexVersion
  /// The last sequence when the statistics were read. `documentCount` is the number of live documents at that
  /// time.
  private let sequence: UInt64
  let documentCount: Int
  /// Weak, so that a closed engine isn't kept open.
  private weak let engine: (any StorageEngine)?
  /// The indexes. Their expressions are canonical for a source named `_`.
  let indexes: [PlannedIndex]
  /// The number of calls of `holds`. Every `usesPerReading` calls, it looks for changes of other processes.
  private let uses = Atomic<UInt64>(0)
  private static let usesPerReading: UInt64 = 64
  /// The same indexes for sources with other names.
  private let renamed = Lock<[ByteString: [PlannedIndex]]>([:])
  private static let mostNames = 64

  /// Reads the indexes of a snapshot.
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

  /// Whether plans made with this knowledge are valid in a snapshot.
  func holds(_ version: IndexVersion, _ snapshot: DocumentSnapshot) throws -> Bool {
    guard version.generation == self.version.generation,
      self.version.batch == 0 || self.version.batch == version.batch, try engine === snapshot.engine
    else { return false }
    // The exact sequence costs as much as finding a document, and the statistics are only estimates.
    let isDue = uses.add(1, ordering: .relaxed).newValue % Self.usesPerReading == 0
    let now = try isDue ? snapshot.lastSequence : snapshot.estimatedLastSequence
    let changes = now > sequence ? now - sequence : sequence - now
    return changes <= 64 + UInt64(documentCount) / 4
  }

  /// The indexes, with their expressions renamed for a source.
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

/// The knowledge of the indexes that all queries of an open database share.
package final class PlanningKnowledge: Sendable {
  private struct State {
    var committed: IndexKnowledge?
    /// The knowledge of a batch. The batch may be rolled back, so only the batch uses it.
    var ofBatch: IndexKnowledge?
  }

  private let state = Lock(State())
  /// The statements that PREPARE has named.
  let statements = PreparedStatements()

  /// Creates an empty knowledge.
  package init() {}

  /// The knowledge that is valid in a snapshot. It is read if necessary.
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
