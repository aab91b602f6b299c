import Fleece

// Functions of objects. Names are in the order of their bytes.

enum ObjectFunctions {
  static let table: [QueryFunction] = [
    QueryFunction("OBJECT_LENGTH", 1...1) { arguments, context, _ in
      object(arguments) { .int(Int64($0.sortedMembers(context.sharedKeys).count)) }
    },
    QueryFunction("OBJECT_NAMES", 1...1) { arguments, context, _ in
      object(arguments) { context.arena.array($0.sortedMembers(context.sharedKeys).map { .string($0.name) }) }
    },
    QueryFunction("OBJECT_VALUES", 1...1) { arguments, context, _ in
      object(arguments) { context.arena.array($0.sortedMembers(context.sharedKeys).map(\.value)) }
    },
    QueryFunction("OBJECT_PAIRS", 1...1) { arguments, context, _ in
      object(arguments) { context.pairs($0.sortedMembers(context.sharedKeys)) }
    },
    QueryFunction("OBJECT_INNER_VALUES", 1...1) { arguments, context, _ in
      object(arguments) { context.arena.array(inner($0, context).map(\.value)) }
    },
    QueryFunction("OBJECT_INNER_PAIRS", 1...1) { arguments, context, _ in
      object(arguments) { context.pairs(inner($0, context)) }
    },
    QueryFunction("OBJECT_UNWRAP", 1...1) { arguments, context, _ in
      object(arguments) {
        let members = $0.sortedMembers(context.sharedKeys)
        return members.count == 1 ? members[0].value : .null
      }
    },
    QueryFunction("OBJECT_ADD", 3...3) { arguments, context, _ in
      object(arguments) { object in
        if arguments[1].isUnknown || arguments[2].isMissing { return object }
        guard case .string(let name) = arguments[1] else { return .null }
        let members = object.sortedMembers(context.sharedKeys)
        if members.contains(where: { $0.name.equals(name) }) { return .null }
        return context.object(members + [ComputedObject.Member(name: name, value: arguments[2])])
      }
    },
    QueryFunction("OBJECT_PUT", 3...3) { arguments, context, _ in
      named(arguments) { members, name in
        members.removeAll { $0.name.equals(name) }
        members.append(ComputedObject.Member(name: name, value: arguments[2]))
        return context.object(members)
      } of: {
        $0.sortedMembers(context.sharedKeys)
      }
    },
    QueryFunction("OBJECT_RENAME", 3...3) { arguments, context, _ in
      if arguments[2].isMissing { return .missing }
      guard case .string(let new) = arguments[2] else { return arguments[0].isMissing ? .missing : .null }
      return named(arguments) { members, name in
        guard let place = members.firstIndex(where: { $0.name.equals(name) }), !name.equals(new) else {
          return arguments[0]
        }
        let value = members[place].value
        members.removeAll { $0.name.equals(name) || $0.name.equals(new) }
        members.append(ComputedObject.Member(name: new, value: value))
        return context.object(members)
      } of: {
        $0.sortedMembers(context.sharedKeys)
      }
    },
    QueryFunction("OBJECT_REMOVE", 2...127) { arguments, context, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      let names = arguments.dropFirst().compactMap(\.text)
      guard arguments[0].type == .object, names.count == arguments.count - 1 else { return .null }
      return context.object(
        arguments[0].sortedMembers(context.sharedKeys).filter { member in
          !names.contains { $0.equals(member.name) }
        })
    },
    QueryFunction("OBJECT_REPLACE", 3...3) { arguments, context, site in
      if arguments[1].isMissing { return .missing }
      return object(arguments) { object in
        guard !arguments[1].isUnknown else { return .null }
        let order = context.order(site.collation)
        return context.object(
          object.sortedMembers(context.sharedKeys).map { member in
            order.areEqual(member.value, arguments[1])
              ? ComputedObject.Member(name: member.name, value: arguments[2]) : member
          })
      }
    },
    QueryFunction("OBJECT_CONCAT", 2...127) { arguments, context, _ in
      if arguments.contains(where: \.isMissing) { return .missing }
      guard arguments.allSatisfy({ $0.type == .object }) else { return .null }
      // Of several members with one name, `object` keeps the first.
      let members = arguments.reversed().flatMap { $0.sortedMembers(context.sharedKeys) }
      return members.count <= context.limits.items
        ? context.object(members) : context.tooManyItems(of: "OBJECT_CONCAT")
    },
  ]

  /// Computes a function of one object, the first argument. Another type gives null.
  private static func object(_ arguments: Arguments, _ body: (QueryValue) -> QueryValue) -> QueryValue {
    guard arguments[0].type == .object else { return arguments[0].isMissing ? .missing : .null }
    return body(arguments[0])
  }

  /// Computes a function of the members of an object and a name, the first two arguments.
  private static func named(
    _ arguments: Arguments, _ body: (inout [ComputedObject.Member], TextSlice) -> QueryValue,
    of members: (QueryValue) -> [ComputedObject.Member]
  ) -> QueryValue {
    if arguments[0].isMissing || arguments[1].isMissing { return .missing }
    guard arguments[0].type == .object, case .string(let name) = arguments[1] else { return .null }
    var members = members(arguments[0])
    return body(&members, name)
  }

  /// The members of an object of arrays, as `array[*]` makes it, without the items that were missing. A single
  /// item that is left stands for its array.
  private static func inner(_ object: QueryValue, _ context: EvaluationContext) -> [ComputedObject.Member] {
    object.sortedMembers(context.sharedKeys).map { member in
      guard case .computedArray(let array) = member.value else { return member }
      let items = (0..<array.count).map { array.items[$0] }
      let left = items.filter { !$0.isMissing }
      if left.count == items.count { return member }
      let value = left.count == 1 ? left[0] : context.arena.array(left)
      return ComputedObject.Member(name: member.name, value: value)
    }
  }
}

extension EvaluationContext {
  /// An object of members in any order. Members with a missing value are left out; of several with one name, the
  /// first is kept.
  func object(_ members: [ComputedObject.Member]) -> QueryValue {
    let copies = arena.allocate(members.count, of: ComputedObject.Member.self)
    // Swift's sort is stable.
    let sorted = members.sorted { $0.name.compare($1.name) < 0 }
    for (index, member) in sorted.enumerated() { copies[index] = member }
    return arena.object(copies, sorted.count)
  }

  /// An array of objects with the name and the value of each member.
  func pairs(_ members: [ComputedObject.Member]) -> QueryValue {
    arena.array(
      members.map { member in
        object([
          ComputedObject.Member(name: .name, value: .string(member.name)),
          ComputedObject.Member(name: .val, value: member.value),
        ])
      })
  }
}

extension TextSlice {
  /// A constant text.
  init(_ text: StaticString) { self.init(start: text.utf8Start, count: text.utf8CodeUnitCount) }

  fileprivate static var name: TextSlice { TextSlice("name" as StaticString) }
  fileprivate static var val: TextSlice { TextSlice("val" as StaticString) }
}

extension QueryValue {
  /// The member of an object by a name that is known at run time only. Missing when there is none.
  func member(_ name: TextSlice, _ sharedKeys: SharedKeys) -> QueryValue {
    switch self {
    case .computedObject(let object): return object.value(of: name)
    case .object:
      return withUnsafePointer(to: PathMove(name: name.start, count: name.count, in: sharedKeys)) { move in
        follow(UnsafeBufferPointer(start: move, count: 1))
      }
    default: return .missing
    }
  }
}
