import Fleece

/// Computes one aggregate over the rows of a group. `AggregateState` holds the state of a group.
///
/// ```swift
/// var state = AggregateState()
/// aggregator.add(to: &state, context, arena)      // for each row of the group
/// let value = aggregator.result(of: state, context, arena)
/// ```
final class Aggregator: Sendable {
  let kind: AggregateKind
  let isDistinct: Bool
  /// The argument. Nil counts rows.
  let argument: CompiledExpression?
  /// The condition of FILTER, which rows have to meet.
  let filter: CompiledExpression?
  /// The collation by which MIN, MAX and DISTINCT compare text.
  let collation: Int?

  init(
    _ kind: AggregateKind, isDistinct: Bool, _ argument: CompiledExpression?,
    filter: CompiledExpression? = nil, collation: Int?
  ) {
    self.kind = kind
    self.isDistinct = isDistinct
    self.argument = argument
    self.filter = filter
    self.collation = collation
  }

  /// Adds the current row. Values that are kept are copied to `arena`, which belongs to the group.
  func add(to state: inout AggregateState, _ context: EvaluationContext, _ arena: EvaluationArena) {
    if let filter, filter.truth(context) != .true { return }
    guard let argument else {
      state.count += 1
      return
    }
    add(argument.evaluate(context), to: &state, context, arena)
  }

  /// Adds a value.
  @inline(__always)
  func add(
    _ value: QueryValue, to state: inout AggregateState, _ context: EvaluationContext,
    _ arena: EvaluationArena
  ) {
    switch kind {
    case .count, .minimum, .maximum: if value.isUnknown { return }
    case .arrayAggregate: if value.isMissing { return }
    default: guard value.type == .number else { return }
    }
    if isDistinct && kind != .minimum && kind != .maximum {
      let isNew = state.insert(value, context.order(collation), context.budget) {
        arena.copy($0, context.sharedKeys)
      }
      if kind == .sum || kind == .average {
        return state.add(distinctNumber: value, isNew: isNew, context)
      }
      if !isNew { return }
      // The set of values holds the items of ARRAY_AGG and MEDIAN.
      if kind == .arrayAggregate || kind == .median { return }
    }
    switch kind {
    case .count, .countNumbers: state.count += 1
    case .sum, .average: state.add(number: value, context)
    case .minimum:
      if state.count == 0 || context.order(collation).compare(value, state.value) < 0 {
        state.value = arena.copy(value, context.sharedKeys)
      }
      state.count = 1
    case .maximum:
      if state.count == 0 || context.order(collation).compare(value, state.value) > 0 {
        state.value = arena.copy(value, context.sharedKeys)
      }
      state.count = 1
    case .arrayAggregate: state.append(arena.copy(value, context.sharedKeys), arena)
    case .median: state.append(value, arena)
    default: state.add(toVariance: value, context)
    }
  }

  /// The result for the group. Without any value, COUNT gives 0, ARRAY_AGG gives [], MEDIAN and variances give NULL,
  /// and the others give MISSING. The result may point into the arenas.
  func result(
    of state: AggregateState, _ context: EvaluationContext, _ arena: EvaluationArena
  ) -> QueryValue {
    switch kind {
    case .count, .countNumbers: return .int(Int64(state.count))
    case .sum: return state.count == 0 ? .missing : state.sum
    case .average:
      guard state.count > 0 else { return .missing }
      // The sum may not be finite.
      guard let sum = state.sum.number else { return .null }
      return QueryValue(finite: sum / Double(state.count))
    case .minimum, .maximum: return state.count == 0 ? .missing : state.value
    case .median: return state.median
    case .deviation, .variance: return state.variance(kind, divisor: max(1, state.count - 1))
    case .sampleDeviation, .sampleVariance: return state.variance(kind, divisor: state.count - 1)
    case .populationDeviation, .populationVariance: return state.variance(kind, divisor: state.count)
    case .arrayAggregate:
      if let values = state.values {
        let items = arena.allocate(values.count, of: QueryValue.self)
        for index in 0..<values.count { items[index] = values[index] }
        return arena.array(items, values.count)
      }
      guard let items = state.items else { return arena.array(arena.allocate(0, of: QueryValue.self), 0) }
      return arena.array(asIs: items, state.count)
    }
  }
}
