import Documents

extension QueryExecution {
  func hash(
    _ step: CompiledStep, _ number: Int, _ join: CompiledHashJoin, _ next: () throws -> Bool
  ) throws -> Bool {
    let table: HashJoinTable
    if let known = hashTables[number] {
      table = known
    } else {
      table = try build(step, join)
      hashTables[number] = table
    }
    let width = join.probes.count
    return try context.arena.scope {
      let probe = context.arena.allocate(width, of: QueryValue.self)
      for index in 0..<width {
        let value = join.probes[index].evaluate(context)
        if value.isUnknown { return true }
        probe[index] = value
      }
      return try table.forEachMatch(probe) { try document(step, number, $0, next) }
    }
  }

  /// Builds the hash table of a join: the IDs of a source's documents by the joined values.
  private func build(_ step: CompiledStep, _ join: CompiledHashJoin) throws -> HashJoinTable {
    let table = HashJoinTable(
      Array(repeating: context.order(nil), count: join.keys.count), RowKeeping(context))
    let row = context.rows + step.source
    let arena = context.arena
    let width = join.keys.count
    let values = UnsafeMutablePointer<QueryValue>.allocate(capacity: width)
    defer {
      values.deallocate()
      row.pointee = SourceRow()
    }
    let take: (DocumentView) throws -> Bool = { [context, cancellation, sharedKeys] view in
      try cancellation.check()
      row.pointee = try SourceRow(view)
      return try arena.scope {
        if let filter = join.filter, filter.truth(context) != .true {
          try context.check()
          return true
        }
        for index in 0..<width {
          values[index] = join.keys[index].evaluate(context)
          if values[index].isUnknown { return true }
        }
        try table.add(values, row.pointee.id, sharedKeys)
        return true
      }
    }
    if case .documents = join.build {
      try snapshot.forEachDocument(order: .stored, take)
      if step.includesDeleted { try snapshot.forEachTombstone(take) }
    } else {
      _ = try forEachFound([join.build], .join) { id in
        try snapshot.withDocument(id.bytes, includeDeleted: step.includesDeleted, take) ?? true
      }
    }
    try context.check()
    try table.finish()
    return table
  }
}
