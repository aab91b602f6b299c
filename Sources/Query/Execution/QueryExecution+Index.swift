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
    let isBackward = access.direction == .backward
    let made = try access.ranges.made(context)
    var (ranges, prefix) = (made.ranges, made.prefix)
    if isBackward {
      ranges.reverse()
    } else if made.areSparse, ranges.count > 2 {
      ranges = try snapshot.withoutWrites { try reader.withEntries(ranges) }
    }
    // An array index can have several entries for one document.
    let seen = access.index.unnest == nil ? nil : IdentifierSet(context.budget, .unnest)
    let row = context.rows + step.source
    let (context, arena) = (context, context.arena)
    let count = counts + number
    let width = access.index.keys.count
    let (isCovering, entryFilter, filter) = (access.isCovering, access.entryFilter, step.filter)
    return try arena.scope {
      let columns = arena.allocate(width, of: QueryValue.self)
      let reading = try EntryReading(access, prefix, context)
      // A pointer, because several closures share it. A captured variable would have exclusivity checks.
      let goesOn = arena.allocate(1, of: Bool.self)
      goesOn.initialize(to: true)

      /// Whether an entry passes the filter on its values, which are in their slots.
      @inline(__always)
      func passes(_ id: UnsafeRawBufferPointer) throws -> Bool {
        guard let entryFilter else { return true }
        row.pointee = SourceRow(id: id)
        defer { row.pointee = SourceRow() }
        if entryFilter.truth(context) == .true { return true }
        count.pointee.examined &+= 1
        try checkRefused()
        return false
      }

      /// Takes an entry whose values are in their slots.
      @inline(__always)
      func take(_ id: UnsafeRawBufferPointer) throws -> Bool {
        guard try passes(id) else { return true }
        if isCovering {
          row.pointee = SourceRow(id: id)
          defer { row.pointee = SourceRow() }
          goesOn.pointee = try offer(step, filter, count, next)
          return goesOn.pointee
        }
        if let seen, try !seen.insert(id) { return true }
        goesOn.pointee = try document(step, number, id, next)
        return goesOn.pointee
      }

      func takeOther(_ entry: ValueIndexEntry) throws -> Bool {
        // This entry may have set the slots of the shared values to doubles.
        defer { reading.readShared(context) }
        return try arena.scope {
          if access.readsValues {
            guard entry.givesBack() else {
              goesOn.pointee = try reread(step, number, entry.documentID, access, next)
              return goesOn.pointee
            }
            try entry.read(into: columns, count: width, arena)
            for index in 0..<width where access.slots[index] >= 0 {
              context.slots[access.slots[index]] = columns[index]
            }
          }
          return try take(entry.documentID)
        }
      }

      // The fast path: the index is covering, and its entries go directly to the results. Outer joins can't
      // use it, because they have to know of each row.
      if isCovering, entryFilter == nil, filter == nil, step.kind != .leftOuter,
        number + 1 == compiled.steps.count,
        let (storage, slots) = (sink as? ProjectingSink)?.direct,
        let targets = reading.columns(of: slots, in: arena)
      {
        reading.keepShared(in: storage, sharedKeys)
        let cancellation = cancellation
        // Rows of `takeOther` are counted there.
        let (rowsBefore, countsBefore) = (storage.count, count.pointee.passed)
        defer {
          let rows = storage.count - rowsBefore - (count.pointee.passed - countsBefore)
          count.pointee.examined += rows
          count.pointee.passed += rows
        }
        for range in ranges {
          try snapshot.withoutWrites {
            try reader.scan(
              from: range.lowerEdge, to: range.upperEdge, descending: isBackward,
              plain: { key in
                try reading.append(key, to: storage, targets, context)
                try cancellation.check()
                return true
              }, other: takeOther)
          }
          if !goesOn.pointee { return false }
        }
        return goesOn.pointee
      }

      if !isCovering, !step.includesDeleted {
        let (documents, sharedKeys) = (documents, sharedKeys)
        let readsSlots = access.slotsRead.contains { $0 >= 0 }
        for range in ranges {
          try snapshot.withoutWrites {
            try reader.follow(
              with: documents, from: range.lowerEdge, to: range.upperEdge, descending: isBackward,
              plain: { key in
                let id = try reading.documentID(key)
                if entryFilter != nil {
                  let isWanted = try arena.scope {
                    try reading.read(key, context)
                    return try passes(id)
                  }
                  if !isWanted { return nil }
                }
                if let seen, try !seen.insert(id) { return nil }
                return id
              }, other: takeOther
            ) { key, id, record in
              try arena.scope {
                // The entry is lent again, so its values are decoded again.
                if readsSlots { try reading.read(key, context) }
                row.pointee = try SourceRow(
                  try DocumentView(idBytes: id.bytes, record: record, sharedKeys: sharedKeys))
                defer { row.pointee = SourceRow() }
                goesOn.pointee = try offer(step, filter, count, next)
                return goesOn.pointee
              }
            }
          }
          if !goesOn.pointee { return false }
        }
        return goesOn.pointee
      }

      let needsID = access.needsID || !isCovering
      for range in ranges {
        try snapshot.withoutWrites {
          try reader.scan(
            from: range.lowerEdge, to: range.upperEdge, descending: isBackward,
            plain: { key in
              try arena.scope {
                try reading.read(key, context)
                return try take(needsID ? reading.documentID(key) : reading.noID(key))
              }
            }, other: takeOther)
        }
        if !goesOn.pointee { return false }
      }
      return goesOn.pointee
    }
  }

  /// Handles an entry that doesn't store its values. They are computed from the document.
  private func reread(
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
    if let reader = readers[access.index.name] { return reader }
    guard let handle = access.index.handle else {
      throw QueryError(.index, "the index \"\(access.index.name)\" can't be read")
    }
    let reader = ValueIndexReader(
      access.index.name.string, handle, in: try snapshot.storage,
      QueryLimits(budget: context.budget, cancellation: cancellation))
    readers[access.index.name] = reader
    return reader
  }
}

extension ByteRange {
  var lowerEdge: KeyRange.Edge { lower.isEmpty ? .unbounded : .including(lower) }
  var upperEdge: KeyRange.Edge { upper.map { .excluding($0) } ?? .unbounded }
}
