import FullText

/// `MATCH(index, text)` for a row that came from elsewhere.
final class MatchNode: ConditionNode, @unchecked Sendable {
  private let number: Int
  private let source: Int

  init(_ number: Int, _ source: Int) {
    self.number = number
    self.source = source
  }

  override func truth(_ context: EvaluationContext) -> Truth {
    let row = context.rows[source]
    guard row.isDocument else { return .missing }
    if row.isDeleted { return .false }
    do {
      return Truth(try context.matches[number].documents(context).rank(of: row.id) != nil)
    } catch {
      context.fail(error)
      return .missing
    }
  }
}

/// `RANK(index)`. 0 for a document that MATCH doesn't find.
final class RankNode: CompiledExpression, @unchecked Sendable {
  private let number: Int
  private let source: Int

  init(_ number: Int, _ source: Int) {
    self.number = number
    self.source = source
  }

  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    let row = context.rows[source]
    guard row.isDocument else { return .missing }
    let match = context.matches[number]
    if match.compiled.isDriving { return QueryValue(finite: match.rank) }
    do {
      return QueryValue(finite: try match.documents(context).rank(of: row.id) ?? 0)
    } catch { return context.fail(error) }
  }
}

/// `SNIPPET(index, before, after, ellipsis, words)`.
final class SnippetNode: CompiledExpression, @unchecked Sendable {
  private let number: Int
  private let match: CompiledMatch
  private let arguments: [CompiledExpression]
  private static let mostWords = 1_000

  init(_ number: Int, _ match: CompiledMatch, _ arguments: [CompiledExpression]) {
    self.number = number
    self.match = match
    self.arguments = arguments
  }

  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    guard context.rows[match.source].isDocument else { return .missing }
    let values = arguments.map { $0.evaluate(context) }
    func text(_ index: Int, _ standard: String) -> String {
      values.indices.contains(index) ? values[index].text?.string ?? standard : standard
    }
    let words = values.count > 3 ? values[3].integer.map { Int(clamping: $0) } ?? 15 : 15
    do {
      guard let query = try context.matches[number].query(context) else { return .null }
      let texts = match.columns.map { $0.evaluate(context).indexedText(context.arena) }
      let snippet = try match.index.withAnalyzer {
        Highlighter(query, analyzer: $0).snippet(
          of: texts, before: text(0, "<b>"), after: text(1, "</b>"), ellipsis: text(2, "…"),
          words: max(1, min(words, SnippetNode.mostWords)))
      }
      return .string(context.arena.copy(snippet))
    } catch { return context.fail(error) }
  }
}

/// `OFFSETS(index)`: an array of objects. Each has the name of the column, the number of the query's term,
/// and the offset and length of the word in bytes.
final class OffsetsNode: CompiledExpression, @unchecked Sendable {
  private let number: Int
  private let match: CompiledMatch

  init(_ number: Int, _ match: CompiledMatch) {
    self.number = number
    self.match = match
  }

  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    guard context.rows[match.source].isDocument else { return .missing }
    let arena = context.arena
    do {
      guard let query = try context.matches[number].query(context) else { return .null }
      let texts = match.columns.map { $0.evaluate(context).indexedText(arena) }
      let hits = try match.index.withAnalyzer { Highlighter(query, analyzer: $0).hits(in: texts) }
      let items = arena.allocate(hits.count, of: QueryValue.self)
      for (index, hit) in hits.enumerated() {
        let members = arena.allocate(4, of: ComputedObject.Member.self)
        func member(_ name: StaticString, _ value: QueryValue) -> ComputedObject.Member {
          ComputedObject.Member(
            name: TextSlice(start: name.utf8Start, count: name.utf8CodeUnitCount), value: value)
        }
        let column = match.index.columns.indices.contains(hit.column) ? match.index.columns[hit.column] : ""
        members[0] = member("column", .string(arena.copy(column)))
        members[1] = member("length", .int(Int64(hit.length)))
        members[2] = member("start", .int(Int64(hit.start)))
        members[3] = member("term", .int(Int64(hit.term)))
        items[index] = arena.object(members, 4)
      }
      return arena.array(items, hits.count)
    } catch { return context.fail(error) }
  }
}
