import Fleece

// Functions that take arrays for sets, search them, or turn arrays of objects around. The items of a result are
// in the order in which they come first.

enum ArraySets {
  static let table: [QueryFunction] = [
    QueryFunction("ARRAY_DISTINCT", 1...1, union), QueryFunction("ARRAY_UNION", 2...127, union),
    QueryFunction("ARRAY_INTERSECT", 2...127) { arguments, context, site in
      counted(arguments, context, site) { $1 == arguments.count && !$0.isUnknown }
    },
    QueryFunction("ARRAY_SYMDIFF", 2...127) { arguments, context, site in
      counted(arguments, context, site) { $1 == 1 }
    },
    QueryFunction("ARRAY_SYMDIFFN", 2...127) { arguments, context, site in
      counted(arguments, context, site) { $1 % 2 == 1 }
    },
    QueryFunction("ARRAY_EXCEPT", 2...2) { arguments, context, site in
      ArrayEditing.arrays(arguments) {
        let order = context.order(site.collation)
        let excluded = ValueSet()
        for item in arguments[1].items where context.goesOn { excluded.insert(item, order) }
        return context.array(
          arguments[0].items.filter { context.goesOn && !excluded.contains($0, order) }, of: "ARRAY_EXCEPT")
      }
    },
    QueryFunction("ARRAY_POSITION", 2...2) { arguments, context, site in
      if let unknown = unknown(among: arguments) { return unknown }
      guard arguments[0].type == .array else { return .null }
      let order = context.order(site.collation)
      var (place, found) = (0, false)
      arguments[0].forEachItem { item in
        found = order.areEqual(item, arguments[1])
        if !found { place += 1 }
        return !found && context.goesOn
      }
      return .int(found ? Int64(place) : -1)
    },
    QueryFunction("ARRAY_BINARY_SEARCH", 2...2, binarySearch),
    // An array with missing items isn't kept as a constant, where they would become null.
    QueryFunction("ARRAY_STAR", 1...1, volatility: .environment) { arguments, context, _ in
      guard arguments[0].type == .array else { return arguments[0].isMissing ? .missing : .null }
      return context.star(arguments[0])
    },
  ]

  @Sendable private static func union(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    counted(arguments, context, site) { _, _ in true }
  }

  /// The different items of several arrays that `isTaken` accepts. It also gets the number of arrays that an item
  /// is in.
  private static func counted(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite,
    _ isTaken: (QueryValue, Int) -> Bool
  ) -> QueryValue {
    ArrayEditing.arrays(arguments) {
      let order = context.order(site.collation)
      let all = ValueSet()
      var counts: [Int] = []
      for argument in arguments {
        let own = ValueSet()
        argument.forEachItem { item in
          let item = item.isMissing ? QueryValue.null : item
          if own.insert(item, order) {
            if all.insert(item, order) { counts.append(1) } else { counts[all.place(of: item, order)] += 1 }
          }
          return context.goesOn
        }
      }
      return context.array(
        counts.indices.filter { isTaken(all[$0], counts[$0]) }.map { all[$0] }, of: "a function of arrays")
    }
  }

  /// The first position of a value in a sorted array, or -1.
  @Sendable private static func binarySearch(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    if arguments.contains(where: \.isMissing) { return .missing }
    guard arguments[0].type == .array else { return .null }
    let order = context.order(site.collation)
    var (low, high) = (0, arguments[0].count)
    while low < high {
      let middle = (low + high) / 2
      if order.compare(arguments[0].itemOrNull(middle), arguments[1]) < 0 {
        low = middle + 1
      } else {
        high = middle
      }
    }
    let isFound = low < arguments[0].count && order.areEqual(arguments[0].itemOrNull(low), arguments[1])
    return .int(isFound ? Int64(low) : -1)
  }
}

extension EvaluationContext {
  /// An object of arrays from an array of objects: for each name in an object, its values in all of them. An item
  /// without the name has a missing value there, which counts as null outside of functions that tell it apart.
  func star(_ array: QueryValue) -> QueryValue {
    let objects = array.items.map { $0.sortedMembers(sharedKeys) }
    guard objects.count <= limits.items else { return tooManyItems(of: "ARRAY_STAR") }
    let names = ValueSet()
    let order = ValueOrder(sharedKeys)
    for members in objects where goesOn {
      for member in members { names.insert(.string(member.name), order) }
    }
    guard names.count * max(1, objects.count) <= limits.items else { return tooManyItems(of: "ARRAY_STAR") }
    let columns = (0..<names.count).map { _ in arena.allocate(objects.count, of: QueryValue.self) }
    for column in columns { column.update(repeating: .missing, count: objects.count) }
    for (row, members) in objects.enumerated() where goesOn {
      for member in members {
        columns[names.place(of: .string(member.name), order)][row] = member.value
      }
    }
    let result = arena.allocate(names.count, of: ComputedObject.Member.self)
    for (index, column) in columns.enumerated() {
      result[index] = ComputedObject.Member(
        name: names[index].text ?? .empty,
        value: arena.array(asIs: column, objects.count))
    }
    return arena.object(sorting: result, names.count)
  }
}

extension EvaluationArena {
  /// Makes an object of members with different names, in any order.
  func object(sorting members: UnsafeMutablePointer<ComputedObject.Member>, _ count: Int) -> QueryValue {
    var all = UnsafeMutableBufferPointer(start: members, count: count)
    all.sort { $0.name.compare($1.name) < 0 }
    return object(members, count)
  }
}
