import Documents
import FullText

extension QueryExecution {
  /// Gives a context what the query's MATCHes find on a snapshot.
  static func beginMatches(
    _ compiled: CompiledQuery, _ context: EvaluationContext, _ snapshot: DocumentSnapshot
  ) throws {
    try snapshot.writePendingIndexes()
    context.matches = compiled.matches.map { FullTextMatch($0, snapshot) }
  }

  /// The documents that a MATCH finds.
  func fullText(
    _ step: CompiledStep, _ number: Int, _ access: CompiledFullTextAccess, _ next: () throws -> Bool
  ) throws -> Bool {
    let match = context.matches[access.match]
    guard let search = try match.search(context) else { return true }
    let needsRecord = step.needsRecord
    let row = context.rows + step.source
    let arena = context.arena
    let mark = arena.mark
    let count = counts + number
    var goesOn = true
    func take(_ id: UnsafeRawBufferPointer, _ rank: Double) throws -> Bool {
      arena.rewind(to: mark)
      match.rank = rank
      if needsRecord {
        goesOn = try document(step, number, id, next)
      } else {
        row.pointee = SourceRow(id: id)
        goesOn = try offer(step, step.filter, count, next)
      }
      return goesOn
    }
    try snapshot.withoutWrites {
      if access.takesBest {
        let window = try RowWindow(compiled, context)
        try search.forEachBest(window.needed ?? .max, take)
      } else if access.isRanked {
        try search.forEachRanked(take)
      } else {
        try search.forEach { try take($0, 0) }
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
        return try body(id)
      }
    }
  }
}
