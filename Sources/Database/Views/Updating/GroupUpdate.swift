import Bytes
import Documents
import Fleece
import Logs
import Storage

/// The views of a group, and how they are mapped.
struct UpdateGroup {
  var members: [GroupMember]
  var options: MapOptions
  /// Makes the mapper. `report` takes the documents that a function fails on.
  var mapper:
    (_ encoders: [ViewKeyEncoder], _ report: @escaping (ViewFault) -> Void) throws -> any GroupMapper
}

/// What an update did.
public struct ViewUpdate: Sendable, Hashable {
  /// The number of documents that were mapped, or whose rows were removed.
  public internal(set) var documents = 0
  /// The number of rows that came, went or changed, of all views of the group.
  public internal(set) var changedRows = 0
  /// The number of documents that a map function failed on.
  public internal(set) var faultCount = 0
  /// The first hundred of these.
  public internal(set) var faults: [ViewFault] = []

  static let keptFaults = 100

  mutating func report(_ fault: ViewFault) {
    faultCount += 1
    if faults.count < ViewUpdate.keptFaults { faults.append(fault) }
  }
}

/// Brings the views of one group up to date.
///
/// Documents are mapped on a snapshot, outside of any write transaction. Then one transaction removes and stores rows,
/// and notes up to which sequence the view is whole. When the stored state isn't the one that the snapshot had, because
/// another thread or process has updated the view, the rows are dropped and the update begins again. So a killed update
/// leaves the last whole state, and two updates never mix.
final class GroupUpdate {
  /// Mapped rows are stored when they take this much memory, in bytes.
  static let defaultMemoryLimit = 128 << 20
  /// What a document with one row takes at least, in bytes.
  private static let leastBytesOfDocument = 80
  /// The number of documents of one transaction of an incremental update.
  static let documentsOfTransaction = 20_000
  /// The number of times that an update begins again because another one was faster.
  private static let attempts = 100

  private let store: DocumentStore
  private let group: UpdateGroup
  private let encoders: [ViewKeyEncoder]
  private let mapper: any GroupMapper
  private let memoryLimit: Int
  private let cancellation: JobCancellation?
  private let outcome: Outcome
  private let rows = MappedRows()

  /// What the mapper reports to, which outlives a round.
  private final class Outcome {
    var update = ViewUpdate()
  }

  /// Another update has changed the stored state.
  private struct Overtaken: Error {}

  init(
    _ store: DocumentStore, _ group: UpdateGroup, memoryLimit: Int = GroupUpdate.defaultMemoryLimit,
    cancellation: JobCancellation? = nil
  ) throws {
    self.store = store
    self.group = group
    self.memoryLimit = memoryLimit
    self.cancellation = cancellation
    encoders = try group.members.map { try ViewKeyEncoder($0.collation) }
    let outcome = Outcome()
    self.outcome = outcome
    mapper = try group.mapper(encoders) { outcome.update.report($0) }
  }

  /// What is stored of a member, and what it lacks.
  private struct Standing {
    var index: Int
    /// As stored; nil if the view is new.
    var stored: ViewRecord?
    /// The record to go on from: reset if the rows are those of another map function.
    var record: ViewRecord
    var isNewPartials: Bool
  }

  /// Updates all members up to the last sequence at the beginning of the call, at least. Nothing is written when
  /// nothing has changed.
  func run() throws -> ViewUpdate {
    var target: (sequence: UInt64, purge: UInt64)?
    var overtaken = 0
    while true {
      try cancellation?.check()
      let (standings, last, purge) = try standings()
      let goal = target ?? (last, purge)
      target = goal
      let stale = standings.filter { standing in
        standing.record.stage != .whole || standing.record.lastSequence < goal.sequence
          || standing.record.purge < goal.purge || standing.isNewPartials
      }
      guard let first = stale.first else { return outcome.update }
      // Those that stand alike go on together.
      let together = stale.filter {
        $0.record.stage == first.record.stage && $0.record.lastSequence == first.record.lastSequence
          && $0.record.purge == first.record.purge && $0.record.cursor == first.record.cursor
          && $0.isNewPartials == first.isNewPartials
      }
      do {
        if first.record.stage != .whole {
          try build(together)
        } else if first.isNewPartials {
          try renewPartials(together)
        } else {
          try increment(together)
        }
        overtaken = 0
      } catch is Overtaken {
        overtaken += 1
        if overtaken > GroupUpdate.attempts {
          throw ViewError(
            .busy, "other processes changed it \(overtaken) times while it was being updated",
            view: group.members[first.index].name)
        }
      }
    }
  }

  private func standings() throws -> ([Standing], lastSequence: UInt64, purge: UInt64) {
    try store.read { snapshot in
      let transaction = try snapshot.storage
      var standings: [Standing] = []
      for (index, member) in group.members.enumerated() {
        let stored = try ViewRecord.read(member.name, in: transaction)
        let wanted = ViewRecord(member, number: stored?.number ?? 0)
        var record = wanted
        if let stored, stored.isSameMap(wanted) { record = stored }
        standings.append(
          Standing(
            index: index, stored: stored, record: record,
            isNewPartials: record.stage == .whole && record.reducer != member.storedReducer))
      }
      return (standings, try snapshot.lastSequence, try snapshot.newestPurge)
    }
  }

  // MARK: Building

  private func build(_ standings: [Standing]) throws {
    try store.recordPurges()
    rows.removeAll()
    var cursor: [UInt8] = []
    let begin = standings[0].record
    let (isDone, sequence, purge) = try store.read(cancellation: cancellation) { snapshot in
      let keys = try snapshot.sharedKeys
      let before = outcome.update
      var isDone = false
      // In the engine's own order if the rows of all documents fit in the memory: on SQLite, documents are in no order of
      // IDs. Otherwise by ID, so that a later round knows where to go on.
      if begin.stage == .empty, try snapshot.documentCount <= memoryLimit / GroupUpdate.leastBytesOfDocument {
        mapper.begin(rows, keys, wanted: standings.map(\.index), limit: memoryLimit)
        isDone = try map(snapshot, .all, .stored) == nil
      }
      if !isDone {
        rows.removeAll()
        outcome.update = before
        mapper.begin(rows, keys, wanted: standings.map(\.index), limit: memoryLimit)
        let range = KeyRange(lower: begin.stage == .building ? .exclusive(begin.cursor) : .unbounded)
        let last = try map(snapshot, range, .ascending)
        isDone = last == nil
        cursor = last ?? []
      }
      return (isDone, try snapshot.lastSequence, try snapshot.newestPurge)
    }
    try write(standings) { standing, record, transaction in
      let member = group.members[standing.index]
      let isFirst = record.stage == .empty
      if isFirst {
        record.lastSequence = sequence
        record.purge = purge
      }
      let tables =
        try isFirst
        ? ViewTables(creating: record, of: member.name, in: transaction)
        : ViewTables(record, of: member.name, in: transaction)
      let update = RowUpdate(rows, view: standing.index, tables, in: transaction)
      if isFirst, isDone {
        outcome.update.changedRows += try withTree(member, tables) { try update.load($0) }
      } else {
        outcome.update.changedRows += try update.put()
        if isDone { try withTree(member, tables) { try $0.build(in: transaction) } }
      }
      record.analysis = update.specialKeys.analysis
      record.stage = isDone ? .whole : .building
      record.cursor = isDone ? [] : cursor
      if isDone {
        record.reducer = member.storedReducer
        record.changedAt = record.lastSequence
      }
    }
  }

  /// Maps documents until their rows take too much memory. Returns the ID of the last one then.
  private func map(_ snapshot: DocumentSnapshot, _ range: KeyRange, _ order: ScanOrder) throws -> [UInt8]? {
    var last: [UInt8]?
    let mapper = mapper
    let leavesOutDesign = !group.options.includesDesign
    defer { outcome.update.documents += mapper.mappedCount }
    try snapshot.forEachDocument(in: range, order: order) { document in
      if leavesOutDesign, isDesign(document.idBytes) { return true }
      try mapper.map(document)
      guard mapper.isFull else { return true }
      last = [UInt8](copying: document.idBytes)
      return false
    }
    try mapper.finish()
    return mapper.lastBeforeLimit ?? last
  }

  private func isDesign(_ id: RawSpan) -> Bool {
    id.withUnsafeBytes { $0.withMemoryRebound(to: UInt8.self) { DocumentID.isOfDesign($0) } }
  }

  // MARK: Updating

  private func increment(_ standings: [Standing]) throws {
    rows.removeAll()
    let begin = standings[0].record
    let step: (sequence: UInt64, purge: UInt64)? = try store.read(cancellation: cancellation) { snapshot in
      let purged = try snapshot.purgedDocuments(after: begin.purge)
      if purged.isIncomplete { return nil }
      mapper.begin(rows, try snapshot.sharedKeys, wanted: standings.map(\.index), limit: memoryLimit)
      defer { outcome.update.documents += mapper.mappedCount }
      // A document that was purged and made again has a change, too.
      var seen = Set<ByteString>()
      for id in purged.ids where seen.insert(ByteString(id)).inserted {
        try map(id, snapshot)
        if mapper.isFull { break }
      }
      // Those that live again have more rows than there is room for, and no order in which a later round could go on.
      try mapper.finish()
      if mapper.isFull { return nil }
      var sequence = begin.lastSequence
      var changes: [(sequence: UInt64, id: [UInt8])] = []
      var isWhole = true
      try snapshot.forEachChange(since: begin.lastSequence) { change in
        guard changes.count < GroupUpdate.documentsOfTransaction else {
          isWhole = false
          return false
        }
        changes.append((change.sequence, Array(change.documentID.utf8)))
        return true
      }
      for change in changes {
        if seen.isEmpty || seen.insert(ByteString(change.id)).inserted { try map(change.id, snapshot) }
        sequence = change.sequence
        if mapper.isFull {
          isWhole = isWhole && change.sequence == changes.last?.sequence
          break
        }
      }
      try mapper.finish()
      if let last = mapper.lastBeforeLimit {
        isWhole = false
        sequence = changes.first { $0.id == last }?.sequence ?? begin.lastSequence
      }
      // Tombstones of later formats aside, the last sequence may be above the last change: a purge took it.
      return (
        isWhole && sequence >= (changes.last?.sequence ?? 0) ? try snapshot.lastSequence : sequence,
        purged.newest
      )
    }
    try write(standings) { standing, record, transaction in
      guard let step else {
        // Too many purges for the record of them, or too many rows of what was purged: the view is built again.
        return record.reset()
      }
      let member = group.members[standing.index]
      let tables = try ViewTables(record, of: member.name, in: transaction)
      let update = RowUpdate(rows, view: standing.index, tables, in: transaction)
      let changed = try withTree(member, tables) { tree in
        let changed = try update.replace(tree)
        try tree.finish(in: transaction)
        return changed
      }
      outcome.update.changedRows += changed
      record.analysis = update.specialKeys.analysis
      record.lastSequence = step.sequence
      record.purge = step.purge
      if changed > 0 { record.changedAt = step.sequence }
    }
  }

  private func map(_ id: [UInt8], _ snapshot: DocumentSnapshot) throws {
    let isDesign = id.withUnsafeBufferPointer { DocumentID.isOfDesign($0) }
    if isDesign, !group.options.includesDesign { return }
    let found: Void? = try snapshot.withDocument(id.span.bytes) { try mapper.map($0) }
    guard found == nil else { return }
    outcome.update.documents += 1
    id.withUnsafeBytes { mapper.addRemoved($0) }
  }

  // MARK: Partial reductions

  private func renewPartials(_ standings: [Standing]) throws {
    try write(standings) { standing, record, transaction in
      let member = group.members[standing.index]
      let tables = try ViewTables(renewingReductions: record, of: member.name, in: transaction)
      try withTree(member, tables) { try $0.build(in: transaction) }
      record.reducer = member.storedReducer
    }
  }

  /// Runs `body` with the partial reductions of a view, in a write transaction.
  private func withTree<Result>(
    _ member: GroupMember, _ tables: ViewTables, _ body: (ReductionTree) throws -> Result
  ) throws -> Result {
    // Inside the transaction, the snapshot is that of the transaction.
    try store.read { snapshot in try body(tables.tree(member.reducer, in: snapshot)) }
  }

  /// Runs `body` for each standing in one write transaction, and stores the record that it changes. Throws `Overtaken`
  /// if a stored record isn't the one that was read before.
  private func write(
    _ standings: [Standing],
    _ body: (_ standing: Standing, _ record: inout ViewRecord, _ transaction: any WriteTransaction) throws ->
      Void
  ) throws {
    // In a batch, an error of this closure fails the batch; but there nobody overtakes.
    let isCurrent = try store.writingDerived { transaction in
      for standing in standings
      where try ViewRecord.read(group.members[standing.index].name, in: transaction) != standing.stored {
        return false
      }
      for standing in standings {
        var record = standing.record
        if record.number == 0 { record.number = try ViewRecord.nextNumber(in: transaction) }
        try body(standing, &record, transaction)
        try record.write(group.members[standing.index].name, in: transaction)
      }
      return true
    }
    if !isCurrent { throw Overtaken() }
  }
}
