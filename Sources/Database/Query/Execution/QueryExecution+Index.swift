import Documents
import Fleece
import Storage

extension QueryExecution {
  /// Finds the documents in ranges of an index, in its order. A covering index gives the rows from its
  /// entries alone.
  func index(
    _ step: CompiledStep, _ number: Int, _ access: CompiledIndexAccess, _ next: () throws -> Bool
  ) throws -> Bool {
    let reader = try reader(of: access)
    let made = try access.ranges.made(context)
    var ranges = made.ranges
    if access.direction == .backward {
      ranges.reverse()
    } else if made.areSparse, ranges.count > 2 {
      ranges = try snapshot.withoutWrites { try reader.withEntries(ranges) }
    }
    return try context.arena.scope {
      let scan = try IndexScan(self, step, number, access, reader, ranges, prefix: made.prefix)
      // Outer joins have to know of each row.
      if access.isCovering, access.entryFilter == nil, step.filter == nil, step.kind != .leftOuter,
        number + 1 == compiled.steps.count, let rows = sink.direct,
        let targets = scan.reading.columns(of: rows.slots, in: context.arena)
      {
        return try scan.store(rows, targets, next)
      }
      if !access.isCovering, !step.includesDeleted { return try scan.followEntries(next) }
      return try scan.takeEntries(next)
    }
  }

  /// Handles an entry that doesn't store its values. They are computed from the document.
  fileprivate func reread(
    _ step: CompiledStep, _ number: Int, _ id: UnsafeRawBufferPointer, _ access: CompiledIndexAccess,
    _ next: () throws -> Bool
  ) throws -> Bool {
    let row = context.rows + step.source
    let found = try snapshot.withDocument(id.bytes) { view in
      row.pointee = try SourceRow(view)
      defer { row.pointee = SourceRow() }
      for index in access.slots.indices where access.slots[index] >= 0 {
        context.slots[access.slots[index]] = access.keys[index].evaluate(context)
      }
      if let filter = access.entryFilter, filter.truth(context) != .true {
        counts[number].examined &+= 1
        try checkRefused()
        return true
      }
      return try offer(step, step.filter, counts + number, next)
    }
    return found ?? true
  }

  /// Calls `body` with the document IDs in the ranges of an access. A document with several entries comes
  /// several times.
  func forEachEntry(
    of access: CompiledIndexAccess, _ body: (UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    let reader = try reader(of: access)
    for range in try access.ranges.made(context).ranges {
      var goesOn = true
      try snapshot.withoutWrites {
        try reader.scan(from: range.lowerEdge, to: range.upperEdge) { entry in
          try checkCancelled()
          goesOn = try body(entry.documentID)
          return goesOn
        }
      }
      if !goesOn { return }
    }
  }

  private func reader(of access: CompiledIndexAccess) throws -> ValueIndexReader {
    guard let handle = access.index.handle else {
      throw QueryError(.index, "the index \"\(access.index.name)\" can't be read")
    }
    for known in readers where known.keyspace == handle.keyspace { return known.reader }
    let reader = ValueIndexReader(
      handle, in: try snapshot.storage, QueryLimits(budget: context.budget, cancellation: cancellation))
    readers.append((handle.keyspace, reader))
    return reader
  }
}

extension ByteRange {
  var lowerEdge: KeyRange.Edge { lower.isEmpty ? .unbounded : .including(lower) }
  var upperEdge: KeyRange.Edge { upper.map { .excluding($0) } ?? .unbounded }
}

/// One scan of the ranges of an index for a step. Its memory is in a scope of the context's arena.
private final class IndexScan {
  private let execution: QueryExecution
  private let step: CompiledStep
  private let number: Int
  private let access: CompiledIndexAccess
  private let reader: ValueIndexReader
  private let ranges: [ByteRange]
  private let context: EvaluationContext
  private let arena: EvaluationArena
  private let row: UnsafeMutablePointer<SourceRow>
  private let count: UnsafeMutablePointer<QueryExecution.StepCounts>
  /// The documents so far. An array index can have several entries for one document.
  private let seen: IdentifierSet?
  private let columns: UnsafeMutablePointer<QueryValue>
  let reading: EntryReading
  // A pointer, because several closures share it. A captured variable would have exclusivity checks.
  private let goesOn: UnsafeMutablePointer<Bool>

  init(
    _ execution: QueryExecution, _ step: CompiledStep, _ number: Int, _ access: CompiledIndexAccess,
    _ reader: ValueIndexReader, _ ranges: [ByteRange], prefix: (bytes: [UInt8], count: Int)
  ) throws {
    self.execution = execution
    self.step = step
    self.number = number
    self.access = access
    self.reader = reader
    self.ranges = ranges
    context = execution.context
    arena = context.arena
    row = context.rows + step.source
    count = execution.counts + number
    seen = access.index.unnest == nil ? nil : IdentifierSet(context.budget, .unnest)
    columns = arena.allocate(access.index.keys.count, of: QueryValue.self)
    reading = try EntryReading(access, prefix, context)
    goesOn = arena.allocate(1, of: Bool.self)
    goesOn.initialize(to: true)
  }

  // MARK: Ways to scan

  /// The fast path: the index is covering, and its entries go directly to the results.
  func store(
    _ rows: DirectRows, _ targets: UnsafeMutablePointer<Int>, _ next: () throws -> Bool
  ) throws -> Bool {
    let (reading, context, cancellation) = (reading, context, execution.cancellation)
    let (storage, stream) = (rows.storage, rows.stream)
    let numbers = rows.slots.indices.filter { rows.slots[$0] == DirectRows.number }
    reading.keepShared(in: storage, execution.sharedKeys)
    // Rows of `takeOther` are counted there.
    let (rowsBefore, countsBefore) = (storage.count, count.pointee.passed)
    defer {
      let rows = storage.count - rowsBefore - (count.pointee.passed - countsBefore)
      count.pointee.examined += rows
      count.pointee.passed += rows
    }
    return try forEachRange { range in
      try reader.scan(
        from: range.lowerEdge, to: range.upperEdge, descending: access.direction == .backward,
        plain: { key in
          let row = try reading.append(key, to: storage, targets, context)
          if let stream {
            let number = stream.takeNumber()
            for column in numbers { row[column] = number }
          }
          try cancellation.check()
          return true
        }, other: { try takeOther($0, next) })
    }
  }

  /// Reads the document of each entry.
  func followEntries(_ next: () throws -> Bool) throws -> Bool {
    let (documents, sharedKeys) = (execution.documents, execution.sharedKeys)
    let (reading, context, arena, row, goesOn) = (reading, context, arena, row, goesOn)
    let hasEntryFilter = access.entryFilter != nil
    let readsSlots = access.slotsRead.contains { $0 >= 0 }
    return try forEachRange { range in
      try reader.follow(
        with: documents, from: range.lowerEdge, to: range.upperEdge,
        descending: access.direction == .backward,
        plain: { key in
          let id = try reading.documentID(key)
          if hasEntryFilter {
            let isWanted = try arena.scope {
              try reading.read(key, context)
              return try passes(id)
            }
            if !isWanted { return nil }
          }
          if let seen, try !seen.insert(id) { return nil }
          return id
        }, other: { try takeOther($0, next) }
      ) { key, id, record in
        try arena.scope {
          // The entry is lent again, so its values are decoded again.
          if readsSlots { try reading.read(key, context) }
          row.pointee = try SourceRow(
            try DocumentView(idBytes: id.bytes, record: record, sharedKeys: sharedKeys))
          defer { row.pointee = SourceRow() }
          goesOn.pointee = try execution.offer(step, step.filter, count, next)
          return goesOn.pointee
        }
      }
    }
  }

  /// Takes each entry by itself: the index is covering, or tombstones are wanted too.
  func takeEntries(_ next: () throws -> Bool) throws -> Bool {
    let (reading, context, arena) = (reading, context, arena)
    let needsID = access.needsID || !access.isCovering
    return try forEachRange { range in
      try reader.scan(
        from: range.lowerEdge, to: range.upperEdge, descending: access.direction == .backward,
        plain: { key in
          try arena.scope {
            try reading.read(key, context)
            return try take(needsID ? reading.documentID(key) : reading.noID(key), next)
          }
        }, other: { try takeOther($0, next) })
    }
  }

  /// Scans one range after the other. False when no more rows are wanted.
  @inline(__always)
  private func forEachRange(_ body: (ByteRange) throws -> Void) throws -> Bool {
    for range in ranges {
      try execution.snapshot.withoutWrites { try body(range) }
      if !goesOn.pointee { return false }
    }
    return true
  }

  // MARK: Entries

  /// Whether an entry passes the filter on its values, which are in their slots.
  @inline(__always)
  private func passes(_ id: UnsafeRawBufferPointer) throws -> Bool {
    guard let filter = access.entryFilter else { return true }
    row.pointee = SourceRow(id: id)
    defer { row.pointee = SourceRow() }
    if filter.truth(context) == .true { return true }
    count.pointee.examined &+= 1
    try execution.checkRefused()
    return false
  }

  /// Takes an entry whose values are in their slots.
  @inline(__always)
  private func take(_ id: UnsafeRawBufferPointer, _ next: () throws -> Bool) throws -> Bool {
    guard try passes(id) else { return true }
    if access.isCovering {
      row.pointee = SourceRow(id: id)
      defer { row.pointee = SourceRow() }
      goesOn.pointee = try execution.offer(step, step.filter, count, next)
      return goesOn.pointee
    }
    if let seen, try !seen.insert(id) { return true }
    goesOn.pointee = try execution.document(step, number, id, next)
    return goesOn.pointee
  }

  private func takeOther(_ entry: ValueIndexEntry, _ next: () throws -> Bool) throws -> Bool {
    // This entry may have set the slots of the shared values to doubles.
    defer { reading.readShared(context) }
    return try arena.scope {
      if access.readsValues {
        guard entry.givesBack() else {
          goesOn.pointee = try execution.reread(step, number, entry.documentID, access, next)
          return goesOn.pointee
        }
        try entry.read(into: columns, count: access.index.keys.count, arena)
        for index in access.slots.indices where access.slots[index] >= 0 {
          context.slots[access.slots[index]] = columns[index]
        }
      }
      return try take(entry.documentID, next)
    }
  }
}
