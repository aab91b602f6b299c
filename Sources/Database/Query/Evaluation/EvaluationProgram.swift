import Fleece
import Storage

/// The shared part of a query's compiled expressions: paths, parameters, collations and constants.
///
/// One thread compiles expressions into it. After that it doesn't change, and any number of contexts on any
/// threads can evaluate its expressions.
final class EvaluationProgram: @unchecked Sendable {
  /// The steps of each path, by its number.
  private(set) var paths: [[PathStep]] = []
  /// The names of the parameters, in order of first use.
  private(set) var parameterNames: [ByteString] = []
  /// The collations other than the one by bytes, by their number.
  private(set) var collations: [Collation] = []
  /// The sources whose rows' values are read.
  private(set) var readSources: Set<Int> = []
  /// The maximum nesting of the variables of ANY and EVERY.
  private(set) var variableCount = 0
  /// The number of compiled patterns that contexts keep.
  private(set) var patternCount = 0
  /// The slots that expressions read.
  private(set) var usedSlots: Set<Int> = []
  /// The sources whose document IDs or other metadata are read.
  private(set) var metaSources: Set<Int> = []
  /// The memory of constants, which lives as long as the program.
  let constants = EvaluationArena()
  /// The numbers of the paths, by their steps.
  private var pathNumbers: [[PathStep]: Int] = [:]

  /// Compiles an expression, with the names of `scope`. `collation` is the order of text in its comparisons,
  /// unless a COLLATE inside says otherwise.
  ///
  /// - Throws: a `QueryError` for mistakes in the expression: unknown names and functions, wrong numbers of
  ///   arguments, unknown locales.
  func compile(
    _ expression: QueryExpression, in scope: some EvaluationScope, collation: Collation? = nil
  ) throws(QueryError) -> CompiledExpression {
    var compiler = ExpressionCompiler(self, scope)
    return try compiler.compile(expression, collation)
  }

  func path(_ steps: [PathStep]) -> Int {
    if let number = pathNumbers[steps] { return number }
    paths.append(steps)
    pathNumbers[steps] = paths.count - 1
    return paths.count - 1
  }

  func parameter(_ name: ByteString) -> Int {
    if let number = parameterNames.firstIndex(of: name) { return number }
    parameterNames.append(name)
    return parameterNames.count - 1
  }

  /// The number of a collation. Nil for the collation by bytes.
  ///
  /// - Throws: `collation` for a locale that ICU doesn't support.
  func collation(_ collation: Collation?) throws(QueryError) -> Int? {
    guard let collation, !collation.comparesBytes else { return nil }
    if let number = collations.firstIndex(of: collation) { return number }
    _ = try Collator(collation)
    collations.append(collation)
    return collations.count - 1
  }

  func slot(_ slot: Int) -> SlotNode {
    usedSlots.insert(slot)
    return SlotNode(slot)
  }

  /// A property of a source's row. Without steps, the whole row.
  func property(_ source: Int, _ steps: [PathStep]) -> PathNode {
    readSources.insert(source)
    return PathNode(source, steps.isEmpty ? nil : path(steps))
  }

  func meta(_ source: Int, _ property: MetaProperty?) -> MetaNode {
    metaSources.insert(source)
    return MetaNode(source, property)
  }

  /// Records that the document IDs of a source are needed, in addition to what expressions read.
  func needsID(of source: Int) { metaSources.insert(source) }

  func needsVariables(_ count: Int) { variableCount = max(variableCount, count) }

  func newPattern() -> Int {
    patternCount += 1
    return patternCount - 1
  }
}
