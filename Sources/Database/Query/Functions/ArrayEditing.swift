// Functions that make an array of the items of another one. Positions count from 0; negative ones count from
// the end.

enum ArrayEditing {
  static let table: [QueryFunction] = [
    QueryFunction("ARRAY_APPEND", 2...127) { arguments, context, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      guard arguments[0].type == .array else { return .null }
      return context.array(arguments[0].items + arguments.dropFirst(), of: "ARRAY_APPEND")
    },
    QueryFunction("ARRAY_PREPEND", 2...127) { arguments, context, _ in
      if arguments.contains(where: \.isMissing) { return .missing }
      guard let array = arguments.last, array.type == .array else { return .null }
      return context.array(arguments.dropLast() + array.items, of: "ARRAY_PREPEND")
    },
    QueryFunction("ARRAY_CONCAT", 2...127) { arguments, context, _ in
      arrays(arguments) { context.array(arguments.flatMap(\.items), of: "ARRAY_CONCAT") }
    },
    QueryFunction("ARRAY_INSERT", 3...127) { arguments, context, _ in
      if arguments.contains(where: \.isMissing) { return .missing }
      guard arguments[0].type == .array, let position = StringFunctions.wholeNumber(arguments[1]) else {
        return .null
      }
      var items = arguments[0].items
      let place = position < 0 ? items.count &+ position : position
      guard place >= 0, place <= items.count else { return .null }
      items.insert(contentsOf: arguments.dropFirst(2), at: place)
      return context.array(items, of: "ARRAY_INSERT")
    },
    QueryFunction("ARRAY_PUT", 2...127) { arguments, context, site in
      edit(arguments) {
        let order = context.order(site.collation)
        let items = arguments[0].items
        let new = arguments.dropFirst().filter { value in !items.contains { order.areEqual($0, value) } }
        return context.array(items + new, of: "ARRAY_PUT")
      }
    },
    QueryFunction("ARRAY_REMOVE", 2...127) { arguments, context, site in
      edit(arguments) {
        let order = context.order(site.collation)
        let removed = arguments.dropFirst()
        return context.array(
          arguments[0].items.filter { item in
            context.goesOn && !removed.contains { order.areEqual($0, item) }
          }, of: "ARRAY_REMOVE")
      }
    },
    QueryFunction("ARRAY_REPLACE", 3...4, replace),
    QueryFunction("ARRAY_REVERSE", 1...1) { arguments, context, _ in
      arrays(arguments) { context.array(arguments[0].items.reversed(), of: "ARRAY_REVERSE") }
    },
    QueryFunction("ARRAY_SORT", 1...1, sort),
    QueryFunction("ARRAY_MOVE", 3...3) { arguments, context, _ in
      positions(arguments) { items, from, to in
        items.insert(items.remove(at: from), at: to)
        return context.array(items, of: "ARRAY_MOVE")
      }
    },
    QueryFunction("ARRAY_SWAP", 3...3) { arguments, context, _ in
      positions(arguments) { items, first, second in
        items.swapAt(first, second)
        return context.array(items, of: "ARRAY_SWAP")
      }
    },
    QueryFunction("ARRAY_FLATTEN", 2...2) { arguments, context, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      guard arguments[0].type == .array, let depth = StringFunctions.wholeNumber(arguments[1]) else {
        return .null
      }
      var items: [QueryValue] = []
      flatten(arguments[0], depth, into: &items, context)
      return context.array(items, of: "ARRAY_FLATTEN")
    },
    QueryFunction("ARRAY_RANGE", 2...3, range), QueryFunction("ARRAY_REPEAT", 2...2, repeated),
  ]

  /// Computes a function whose arguments are all arrays. Another type gives null.
  static func arrays(_ arguments: Arguments, _ body: () -> QueryValue) -> QueryValue {
    if arguments.contains(where: \.isMissing) { return .missing }
    return arguments.allSatisfy { $0.type == .array } ? body() : .null
  }

  /// Computes a function of an array and other values, none of them null.
  private static func edit(_ arguments: Arguments, _ body: () -> QueryValue) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    return arguments[0].type == .array ? body() : .null
  }

  /// Computes a function of an array and two of its positions. Null for a position outside the array.
  private static func positions(
    _ arguments: Arguments, _ body: (inout [QueryValue], Int, Int) -> QueryValue
  ) -> QueryValue {
    edit(arguments) {
      var items = arguments[0].items
      func place(_ value: QueryValue) -> Int? {
        guard let position = StringFunctions.wholeNumber(value) else { return nil }
        let place = position < 0 ? items.count &+ position : position
        return items.indices.contains(place) ? place : nil
      }
      guard let first = place(arguments[1]), let second = place(arguments[2]) else { return .null }
      return body(&items, first, second)
    }
  }

  /// `ARRAY_REPLACE(array, old, new[, times])`. A negative number of times replaces nothing.
  @Sendable private static func replace(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    if arguments.contains(where: \.isMissing) { return .missing }
    guard arguments[0].type == .array, !arguments[1].isUnknown else { return .null }
    var left = Int.max
    if arguments.count > 3 {
      guard let times = StringFunctions.wholeNumber(arguments[3]) else { return .null }
      left = times
    }
    let order = context.order(site.collation)
    let items = arguments[0].items.map { item -> QueryValue in
      guard left > 0, order.areEqual(item, arguments[1]) else { return item }
      left -= 1
      return arguments[2]
    }
    return context.array(items, of: "ARRAY_REPLACE")
  }

  @Sendable private static func sort(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    arrays(arguments) {
      let order = context.order(site.collation)
      var items = arguments[0].items
      // Swift's sort is stable, so 1 and 1.0 keep their order.
      items.sort { context.goesOn && order.compare($0, $1) < 0 }
      return context.array(items, of: "ARRAY_SORT")
    }
  }

  /// Adds the items of an array, and those of arrays in it up to a depth. A negative depth has no limit.
  private static func flatten(
    _ array: QueryValue, _ depth: Int, into items: inout [QueryValue], _ context: EvaluationContext
  ) {
    array.forEachItem { item in
      if depth != 0, item.type == .array {
        flatten(item, depth - 1, into: &items, context)
      } else {
        items.append(item)
      }
      return context.goesOn
    }
  }

  /// `ARRAY_RANGE(start, end[, step])`: the numbers from the start up to, but not including, the end.
  @Sendable private static func range(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard let start = arguments[0].number, let end = arguments[1].number,
      let step = arguments.count > 2 ? arguments[2].number : 1
    else { return .null }
    guard step != 0, (end - start) * step > 0 else { return context.array([], of: "ARRAY_RANGE") }
    let count = ((end - start) / step).rounded(.up)
    guard count <= Double(context.limits.items), context.goesOn else {
      return context.tooManyItems(of: "ARRAY_RANGE")
    }
    let items = context.arena.allocate(Int(count), of: QueryValue.self)
    for index in 0..<Int(count) { items[index] = .double(start + Double(index) * step) }
    if case .int(let first) = arguments[0], case .int(let by) = arguments.count > 2 ? arguments[2] : .int(1) {
      for index in 0..<Int(count) { items[index] = .int(first &+ Int64(index) &* by) }
    }
    return context.arena.array(items, Int(count))
  }

  @Sendable private static func repeated(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    if arguments.contains(where: \.isMissing) { return .missing }
    guard let times = StringFunctions.wholeNumber(arguments[1]), times >= 0 else { return .null }
    guard times <= context.limits.items, context.goesOn else {
      return context.tooManyItems(of: "ARRAY_REPEAT")
    }
    let items = context.arena.allocate(times, of: QueryValue.self)
    items.update(repeating: arguments[0], count: times)
    return context.arena.array(items, times)
  }
}

extension QueryValue {
  /// The items of an array. A missing item is null.
  var items: [QueryValue] {
    var items: [QueryValue] = []
    items.reserveCapacity(count)
    forEachItem { item in
      items.append(item.isMissing ? .null : item)
      return true
    }
    return items
  }
}

extension EvaluationContext {
  /// Makes the array that a function returns. Fails when it has too many items; missing when the query has to
  /// stop.
  func array(_ items: some RandomAccessCollection<QueryValue>, of function: String) -> QueryValue {
    guard goesOn else { return .missing }
    return items.count <= limits.items ? arena.array(items) : tooManyItems(of: function)
  }

  /// Fails because the array of a function has too many items.
  func tooManyItems(of function: String) -> QueryValue {
    guard goesOn else { return .missing }
    return fail(QueryError(.evaluation, "the result of \(function) has more than \(limits.items) items"))
  }
}
