import Fleece
import Storage

// Functions of the paths to the values inside an object:
//
//   path = name {"." name | "[" ["-"] digits "]"}
//   name = characters other than "." "[" "`"  |  "`" {character | "``"} "`"

enum ObjectPathFunctions {
  static let table: [QueryFunction] = [
    QueryFunction("OBJECT_FIELD", 2...2, usesPattern: true) { arguments, context, site in
      if arguments.contains(where: \.isMissing) { return .missing }
      guard arguments[0].type == .object, case .string(let text) = arguments[1] else { return .null }
      let path = context.pattern(site.pattern, for: text) { ValuePath(source: $0) }
      guard let steps = (path as? ValuePath)?.steps else { return .null }
      var value = arguments[0]
      for step in steps {
        switch step {
        case .index(let index): value = value.type == .array ? value.item(index) : .missing
        case .name(let name):
          value = name.bytes.withUnsafeBytes { value.member(TextSlice($0), context.sharedKeys) }
        }
      }
      return value.isMissing ? .null : value
    },
    QueryFunction("OBJECT_PATHS", 1...2, usesPattern: true) { arguments, context, site in
      walk(arguments, context, site, composites: true) { walk, options in
        var paths = walk.found.map(\.path)
        if !options.isOff("unique") {
          paths = paths.indices.filter { $0 == 0 || paths[$0] != paths[$0 - 1] }.map { paths[$0] }
        }
        return context.array(paths.map { .string(context.arena.copy($0)) }, of: "OBJECT_PATHS")
      }
    },
    QueryFunction("OBJECT_PAIRS_NESTED", 1...2, usesPattern: true) { arguments, context, site in
      walk(arguments, context, site, composites: false) { walk, _ in
        context.pairs(
          walk.found.map { ComputedObject.Member(name: context.arena.copy($0.path), value: $0.value) })
      }
    },
  ]

  /// Collects the paths of the first argument, as the options in the second one say.
  private static func walk(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite, composites: Bool,
    _ body: (PathWalk, FunctionOptions) -> QueryValue
  ) -> QueryValue {
    if arguments.contains(where: \.isMissing) { return .missing }
    guard arguments[0].type == .object || arguments[0].type == .array else { return .null }
    guard let options = FunctionOptions(arguments, 1, context) else { return .null }
    var walk = PathWalk(context, site)
    walk.hasComposites = options.flag("composites") ?? composites
    walk.hasSubscripts = !options.isOff("arraysubscript")
    walk.pattern = options.text("pattern").flatMap { $0.count > 0 ? $0 : nil }
    walk.matchesFields = options.text("patternspace").map { $0.string == "field" } ?? false
    walk.visit(arguments[0], "", isComposite: false)
    guard context.goesOn else { return .missing }
    guard walk.found.count <= context.limits.items else { return context.tooManyItems(of: "a list of paths") }
    // Swift compares strings by canonical equivalence, and paths are compared by their bytes.
    walk.found.sort { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
    return body(walk, options)
  }
}

/// Collects the paths to the values inside a value.
private struct PathWalk {
  let context: EvaluationContext
  let site: CallSite
  /// Whether arrays and objects have paths too, and not only the values in them that are neither.
  var hasComposites = true
  /// Whether items have their positions in paths, and not only a `*`.
  var hasSubscripts = true
  var pattern: TextSlice?
  /// Whether the pattern has to match a name of the path, and not the path.
  var matchesFields = false
  var found: [(path: String, value: QueryValue)] = []

  init(_ context: EvaluationContext, _ site: CallSite) {
    self.context = context
    self.site = site
  }

  mutating func visit(_ value: QueryValue, _ path: String, isComposite: Bool, depth: Int = 0) {
    guard context.goesOn, depth <= FleeceLimits.depth, found.count <= context.limits.items else { return }
    switch value.type {
    case .object:
      for member in value.sortedMembers(context.sharedKeys) {
        let name = ValuePath.quoted(member.name.string)
        let inner = path.isEmpty ? name : path + (isComposite ? "[*]." : ".") + name
        if hasComposites { add(inner, member.value) }
        visit(member.value, inner, isComposite: false, depth: depth + 1)
      }
    case .array:
      for (index, item) in value.items.enumerated() {
        let inner = hasSubscripts ? "\(path)[\(index)]" : path
        visit(item, inner, isComposite: !hasSubscripts, depth: depth + 1)
      }
    default: if !hasComposites, !path.isEmpty { add(path, value) }
    }
  }

  private mutating func add(_ path: String, _ value: QueryValue) {
    if let pattern {
      let parts = matchesFields ? ValuePath.names(in: path) : [path]
      guard parts.contains(where: { PatternFunctions.isMatch($0, pattern, context, site) }) else { return }
    }
    found.append((path, value))
  }
}

/// A path to a value inside another one, parsed from text.
private final class ValuePath: Pattern {
  /// Nil for a text that isn't a path.
  let steps: [PathStep]?

  override init(source: TextSlice) {
    steps = ValuePath.steps(of: source.string)
    super.init(source: source)
  }

  /// A name as it stands in a path.
  static func quoted(_ name: String) -> String {
    let isPlain = !name.isEmpty && !name.utf8.contains { " \t.[`".utf8.contains($0) }
    return isPlain
      ? name
      : "`" + name.split(separator: "`", omittingEmptySubsequences: false).joined(separator: "``") + "`"
  }

  /// The names of a path, as they stand in it.
  static func names(in path: String) -> [String] {
    (steps(of: path.split(separator: "[*]", omittingEmptySubsequences: false).joined()) ?? []).compactMap {
      $0.name?.string
    }
  }

  private static func steps(of text: String) -> [PathStep]? {
    var rest = Array(text.utf8)[...]
    var steps: [PathStep] = []
    repeat {
      if !steps.isEmpty, rest.first == UInt8(ascii: "[") {
        guard let end = rest.firstIndex(of: UInt8(ascii: "]")),
          let index = Int(String(decoding: rest[(rest.startIndex + 1)..<end], as: UTF8.self))
        else { return nil }
        steps.append(.index(index))
        rest = rest[(end + 1)...]
        continue
      }
      if !steps.isEmpty {
        guard rest.first == UInt8(ascii: ".") else { return nil }
        rest.removeFirst()
      }
      guard let name = name(&rest) else { return nil }
      steps.append(.name(name))
    } while !rest.isEmpty
    return steps
  }

  private static func name(_ rest: inout ArraySlice<UInt8>) -> ByteString? {
    guard rest.first == UInt8(ascii: "`") else {
      let name = rest.prefix { !".[`".utf8.contains($0) }
      rest = rest[name.endIndex...]
      return name.isEmpty ? nil : ByteString(Array(name))
    }
    rest.removeFirst()
    var name: [UInt8] = []
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "`") else {
        name.append(byte)
        continue
      }
      guard rest.first == byte else { return ByteString(name) }
      rest.removeFirst()
      name.append(byte)
    }
    return nil
  }
}

/// The options of a function: an object, its last argument.
struct FunctionOptions {
  private let object: QueryValue?
  private let sharedKeys: SharedKeys

  /// Nil for an argument that isn't an object. Without the argument there are no options.
  init?(_ arguments: Arguments, _ index: Int, _ context: EvaluationContext) {
    sharedKeys = context.sharedKeys
    guard index < arguments.count else {
      object = nil
      return
    }
    guard arguments[index].type == .object else { return nil }
    object = arguments[index]
  }

  /// The value of an option. Missing when it isn't given.
  subscript(_ name: StaticString) -> QueryValue {
    object?.member(TextSlice(name), sharedKeys) ?? .missing
  }

  func flag(_ name: StaticString) -> Bool? { if case .bool(let flag) = self[name] { flag } else { nil } }

  /// Whether an option is FALSE.
  func isOff(_ name: StaticString) -> Bool { flag(name) == false }

  func text(_ name: StaticString) -> TextSlice? { self[name].text }
}
