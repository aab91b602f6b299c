import Documents
import FullText

extension QueryExecution {
  /// Prepares the MATCHes of a query for a run on a snapshot.
  static func beginMatches(
    _ compiled: CompiledQuery, _ context: EvaluationContext, _ snapshot: DocumentSnapshot
  ) throws {
    try snapshot.writePendingIndexes()
    context.matches = compiled.matches.map { FullTextMatch($0, snapshot) }
  }

  /// Finds the rows of a step by a MATCH.
  func fullText(
    _ step: CompiledStep, _ number: Int, _ access: CompiledFullTextAccess, _ next: () throws -> Bool
  ) throws -> Bool {
    let match = context.matches[access.match]
    let needsRecord = step.needsRecord
    let row = context.rows + step.source
    let arena = context.arena
    let count = counts + number
    let filter = step.filter
    var goesOn = true
    func take(_ id: UnsafeRawBufferPointer) throws -> Bool {
      if needsRecord { return try document(step, number, id, next) }
      row.pointee = SourceRow(id: id)
      defer { row.pointee = SourceRow() }
      return try arena.scope { try offer(step, filter, count, next) }
    }
    if number > 0 {
      // The result is the same for each row of the previous steps.
      let found = try match.rows(context, isRanked: access.isRanked)
      for (index, id) in found.ids.enumerated() {
        if access.isRanked { match.rank = found.ranks[index] }
        guard try take(id.bytes) else { return false }
      }
      return true
    }
    guard let search = try match.search(context) else { return true }
    try snapshot.withoutWrites {
      if access.takesBest {
        let window = try RowWindow(compiled, context)
        try search.forEachBest(window.needed ?? .max) { id, rank in
          match.rank = rank
          goesOn = try id.withUnsafeBytes(take)
          return goesOn
        }
      } else if access.isRanked {
        try search.forEachRanked { id, rank in
          match.rank = rank
          goesOn = try id.withUnsafeBytes(take)
          return goesOn
        }
      } else {
        match.rank = 0
        try search.forEach { id in
          goesOn = try id.withUnsafeBytes(take)
          return goesOn
        }
      }
    }
    return goesOn
  }

  /// Calls `body` with the IDs of the documents that a MATCH finds.
  func forEachMatch(
    of access: CompiledFullTextAccess, _ body: (UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    guard let search = try context.matches[access.match].search(context) else { return }
    try snapshot.withoutWrites {
      try search.forEach { id in
        try checkCancelled()
        return try id.withUnsafeBytes(body)
      }
    }
  }
}
