import Fleece
import Storage

/// What the compiled expressions of one query share: their paths, parameters, collations and constants.
///
/// Expressions are compiled into it on one thread; from then on it doesn't change, and any number of contexts on any
/// threads evaluate its expressions.
final class EvaluationProgram: @unchecked Sendable {
  /// The steps of paths, by their number.
  private(set) var paths: [[PathStep]] = []
  /// The names of parameters, in order of first use.
  private(set) var parameterNames: [ByteString] = []
  /// Collations other than by bytes, by their number.
  private(set) var collations: [Collation] = []
  /// How many variables of ANY and EVERY are nested.
  private(set) var variableCount = 0
  /// How many compiled patterns contexts keep.
  private(set) var patternCount = 0
  /// The slots that expressions read.
  private(set) var usedSlots: Set<Int> = []
  /// The sources whose documents' IDs or other metadata are read.
  private(set) var metaSources: Set<Int> = []
  /// Constants live as long as the program.
  let constants = EvaluationArena()
  /// Parameters that nothing has to be given for.
  private var pathNumbers: [[PathStep]: Int] = [:]

  init() {}

  /// Compiles an expression; its names mean what `scope` says. `collation` is how its comparisons order text, unless
  /// COLLATE says otherwise inside of it.
  ///
  /// - Throws: what is wrong with the expression: unknown names and functions, numbers of arguments, locales.
  func compile(
    _ expression: Expression, in scope: some EvaluationScope, collation: Collation? = nil
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

  /// The number of a collation, nil for that by bytes.
  ///
  /// - Throws: `collation` for a locale that ICU doesn't take.
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

  func meta(_ source: Int, _ property: MetaProperty?) -> MetaNode {
    metaSources.insert(source)
    return MetaNode(source, property)
  }

  /// Notes that documents of a source are told apart by their IDs, beside what expressions read.
  func needsID(of source: Int) { metaSources.insert(source) }

  func needsVariables(_ count: Int) { variableCount = max(variableCount, count) }

  func newPattern() -> Int {
    patternCount += 1
    return patternCount - 1
  }
}
