// Distances of vectors, which are arrays of numbers. There is no vector index: all distances are exact.

enum VectorFunctions {
  static let table: [QueryFunction] = [
    QueryFunction("VECTOR_DISTANCE", 3...3, distance),
    // The further arguments say how an index is searched.
    QueryFunction("APPROX_VECTOR_DISTANCE", 3...6, distance),
    fixed("EUCLIDEAN_DISTANCE", .euclidean), fixed("SQUARED_EUCLIDEAN_DISTANCE", .squared),
    fixed("COSINE_DISTANCE", .cosine),
  ]

  /// What is measured. Less is nearer.
  private enum Metric {
    case euclidean, squared, cosine, dot

    /// The metric of a name, in any case. Nil for other names.
    init?(_ name: String) {
      switch name.uppercased() {
      case "L2", "EUCLIDEAN": self = .euclidean
      case "L2_SQUARED", "EUCLIDEAN_SQUARED": self = .squared
      case "COSINE": self = .cosine
      case "DOT": self = .dot
      default: return nil
      }
    }
  }

  @Sendable private static func distance(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard case .string(let name) = arguments[2], let metric = Metric(name.string) else { return .null }
    return distance(arguments[0], arguments[1], metric)
  }

  private static func fixed(_ name: String, _ metric: Metric) -> QueryFunction {
    QueryFunction(name, 2...2) { arguments, _, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      return distance(arguments[0], arguments[1], metric)
    }
  }

  /// Null for values that aren't vectors of the same length.
  private static func distance(_ left: QueryValue, _ right: QueryValue, _ metric: Metric) -> QueryValue {
    guard let left = numbers(left), let right = numbers(right), left.count == right.count else {
      return .null
    }
    var sum = 0.0
    switch metric {
    case .euclidean, .squared:
      for (a, b) in zip(left, right) { sum += (a - b) * (a - b) }
      return QueryValue(finite: metric == .squared ? sum : sum.squareRoot())
    case .dot:
      for (a, b) in zip(left, right) { sum += a * b }
      return QueryValue(finite: 0 - sum)
    case .cosine:
      var squares = (left: 0.0, right: 0.0)
      for (a, b) in zip(left, right) {
        sum += a * b
        squares.left += a * a
        squares.right += b * b
      }
      return QueryValue(finite: 1 - sum / (squares.left * squares.right).squareRoot())
    }
  }

  private static func numbers(_ value: QueryValue) -> [Double]? {
    guard value.type == .array else { return nil }
    var numbers: [Double] = []
    numbers.reserveCapacity(value.count)
    var isVector = true
    value.forEachItem { item in
      if let number = item.number { numbers.append(number) } else { isVector = false }
      return isVector
    }
    return isVector && !numbers.isEmpty ? numbers : nil
  }
}
