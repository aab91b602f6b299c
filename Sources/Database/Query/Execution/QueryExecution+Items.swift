import Documents
import Fleece

// Sources whose rows are values, and rows of RIGHT and FULL joins without a match.

extension QueryExecution {
  /// Offers a value as the row of a step.
  func item(
    _ value: QueryValue, _ step: CompiledStep, _ number: Int, _ next: () throws -> Bool
  ) throws -> Bool {
    try context.check()
    let row = context.rows + step.source
    row.pointee = SourceRow()
    row.pointee.value = value
    defer { row.pointee = SourceRow() }
    return try context.arena.scope { try offer(step, step.filter, counts + number, next) }
  }

  /// Offers each item of an array. Another value is one row, and null is none.
  func items(
    _ step: CompiledStep, _ number: Int, _ items: CompiledExpression, _ next: () throws -> Bool
  ) throws -> Bool {
    let value = items.evaluate(context)
    try context.check()
    guard value.type == .array else {
      return try value.isUnknown ? true : item(value, step, number, next)
    }
    var goesOn = true
    var failure: (any Error)?
    value.forEachItem { row in
      do { goesOn = try item(row, step, number, next) } catch {
        failure = error
        goesOn = false
      }
      if goesOn, let unmatched = unmatched[number] { unmatched.position += 1 }
      return goesOn
    }
    if let failure { throw failure }
    return goesOn
  }

  // MARK: RIGHT and FULL joins

  /// The rows of a joined source that had a match.
  final class Matches {
    /// The documents.
    let documents: IdentifierSet
    /// The items of an array, by their positions.
    var items: Set<Int> = []
    /// The position of the current item.
    var position = 0

    init(_ budget: QueryMemoryBudget) { documents = IdentifierSet(budget, .join) }
  }

  /// Produces the rows of a RIGHT or FULL join that have a match, and notes these.
  func rows(keepingUnmatched step: CompiledStep, _ number: Int) throws -> Bool {
    let matches = unmatched[number] ?? Matches(context.budget)
    unmatched[number] = matches
    matches.position = 0
    var hasMatch = false
    let goesOn = try rows(of: step, number, step.access) {
      hasMatch = true
      let row = context.rows[step.source]
      if row.isDocument {
        try matches.documents.insert(row.id.bytes)
      } else {
        matches.items.insert(matches.position)
      }
      if let outerFilter = step.outerFilter, outerFilter.truth(context) != .true { return true }
      return try advance(number + 1)
    }
    if hasMatch || !goesOn || step.kind == .rightOuter { return goesOn }
    return try rowWithoutMatch(of: step, number)
  }

  /// After all other rows, produces those of RIGHT and FULL joins whose right side had no match.
  func rowsWithoutMatch() throws -> Bool {
    for (number, step) in compiled.steps.enumerated() where step.kind.keepsUnmatched {
      for before in compiled.steps[..<number] {
        context.rows[before.source] = SourceRow()
        if case .index(let access) = before.access { access.readMissing(context) }
      }
      let matches = unmatched[number] ?? Matches(context.budget)
      guard try rowsWithoutMatch(of: step, number, matches) else { return false }
    }
    return true
  }

  private func rowsWithoutMatch(of step: CompiledStep, _ number: Int, _ matches: Matches) throws -> Bool {
    let row = context.rows + step.source
    defer { row.pointee = SourceRow() }
    func take(_ current: SourceRow) throws -> Bool {
      try cancellation.check()
      row.pointee = current
      return try context.arena.scope {
        if case .index(let access) = step.access { access.readMissing(context) }
        if let outerFilter = step.outerFilter, outerFilter.truth(context) != .true {
          try context.check()
          return true
        }
        counts[number].passed += 1
        return try advance(number + 1)
      }
    }
    var goesOn = true
    switch step.access {
    case .items(let items):
      var failure: (any Error)?
      var position = 0
      items.evaluate(context).forEachItem { item in
        defer { position += 1 }
        if matches.items.contains(position) { return true }
        var current = SourceRow()
        current.value = item
        do { goesOn = try take(current) } catch {
          failure = error
          goesOn = false
        }
        return goesOn
      }
      try context.check()
      if let failure { throw failure }
    default:
      let offer: (DocumentView) throws -> Bool = { view in
        let current = try SourceRow(view)
        if matches.documents.number(of: current.id) != nil { return true }
        goesOn = try take(current)
        return goesOn
      }
      try snapshot.forEachDocument(order: .stored, offer)
      if goesOn, step.includesDeleted { try snapshot.forEachTombstone(offer) }
    }
    return goesOn
  }
}
