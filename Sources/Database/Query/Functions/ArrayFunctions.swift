// Functions of arrays, GREATEST and LEAST. For an argument that is not an array, array functions return null.

enum ArrayFunctions {
  static let table: [QueryFunction] = [
    QueryFunction("ARRAY_AVG", 1...1) { arguments, _, _ in
      array1(arguments) { array in
        let (sum, count) = sum(array)
        return count == 0 ? .null : QueryValue(finite: sum / Double(count))
      }
    },
    QueryFunction("ARRAY_SUM", 1...1) { arguments, _, _ in
      array1(arguments) { QueryValue(finite: sum($0).sum) }
    },
    QueryFunction("ARRAY_CONTAINS", 2...2) { arguments, context, site in
      if let unknown = unknown(among: arguments) { return unknown }
      guard arguments[0].type == .array else { return .null }
      let order = context.order(site.collation)
      var isFound = false
      arguments[0].forEachItem { item in
        isFound = order.areEqual(item, arguments[1])
        return !isFound
      }
      return .bool(isFound)
    },
    QueryFunction("ARRAY_COUNT", 1...1) { arguments, _, _ in
      array1(arguments) { array in
        var count: Int64 = 0
        array.forEachItem { item in
          if !item.isUnknown { count += 1 }
          return true
        }
        return .int(count)
      }
    },
    QueryFunction("ARRAY_IFNULL", 1...1) { arguments, _, _ in
      array1(arguments) { array in
        var first = QueryValue.null
        array.forEachItem { item in
          first = item.isMissing ? .null : item
          return first.isUnknown
        }
        return first
      }
    },
    QueryFunction("ARRAY_LENGTH", 1...1) { arguments, _, _ in array1(arguments) { .int(Int64($0.count)) } },
    QueryFunction("ARRAY_MAX", 1...1) { arguments, _, _ in extreme(arguments) { $0 > $1 } },
    QueryFunction("ARRAY_MIN", 1...1) { arguments, _, _ in extreme(arguments) { $0 < $1 } },
    QueryFunction("ARRAY_OF", 0...127) { arguments, context, _ in context.arena.array(arguments) },
    QueryFunction("GREATEST", 2...127) { arguments, context, site in best(arguments, context, site, 1) },
    QueryFunction("LEAST", 2...127) { arguments, context, site in best(arguments, context, site, -1) },
  ]

  @inline(__always)
  private static func array1(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ body: (QueryValue) -> QueryValue
  ) -> QueryValue {
    guard arguments[0].type == .array else { return arguments[0].isMissing ? .missing : .null }
    return body(arguments[0])
  }

  /// The sum and the number of the numeric items.
  private static func sum(_ array: QueryValue) -> (sum: Double, count: Int) {
    var (sum, count) = (0.0, 0)
    array.forEachItem { item in
      if let number = item.number {
        sum += number
        count += 1
      }
      return true
    }
    return (sum, count)
  }

  /// The greatest or least numeric item, as a double. Null when there is none.
  private static func extreme(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ isBetter: (Double, Double) -> Bool
  ) -> QueryValue {
    array1(arguments) { array in
      var best: Double?
      array.forEachItem { item in
        if let number = item.number, best.map({ isBetter(number, $0) }) ?? true { best = number }
        return true
      }
      return best.map { .double($0) } ?? .null
    }
  }

  /// The last or first argument in the order of all values. A missing argument gives missing, else a null
  /// gives null.
  private static func best(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ context: EvaluationContext, _ site: CallSite, _ sign: Int
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    let order = context.order(site.collation)
    var best = arguments[0]
    for index in 1..<arguments.count where order.compare(arguments[index], best) * sign > 0 {
      best = arguments[index]
    }
    return best
  }
}
