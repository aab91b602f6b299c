import Bytes
import HTTP
import Views

/// The methods of a route that need the same right. An empty list stands for all methods.
struct RouteMethods: Sendable {
  let right: Right
  let names: [String]

  static func serverAdmin(_ names: String...) -> RouteMethods { .init(right: .serverAdmin, names: names) }
  static func databaseAdmin(_ names: String...) -> RouteMethods { .init(right: .databaseAdmin, names: names) }
  static func member(_ names: String...) -> RouteMethods { .init(right: .member, names: names) }
  static func metrics(_ names: String...) -> RouteMethods { .init(right: .metrics, names: names) }
  static func user(_ names: String...) -> RouteMethods { .init(right: .user, names: names) }
  static func everybody(_ names: String...) -> RouteMethods { .init(right: .everybody, names: names) }
}

/// A line of a table of routes: a pattern of paths, the methods that it has with the right that each needs, and the function that answers.
/// The function is only called for who has the right.
///
/// A segment of a pattern is itself; `{name}` is any segment, and the function gets it; `…` at the end is any number of segments, none
/// included. `Call` is what the function is asked about.
struct Route<Call: AuthorizedCall>: Sendable {
  typealias Answer = @Sendable (Call, [String]) throws -> HTTPAnswer

  private enum Segment: Sendable {
    case literal(ByteString)
    case any
  }

  let pattern: String
  /// The rights, with the methods that need them.
  let rights: [RouteMethods]
  /// Empty: the function takes any method.
  var methods: [String] { rights.flatMap(\.names) }
  /// Whether the server has what CouchDB has there.
  private(set) var isImplemented = true
  private let segments: [Segment]
  private let hasRest: Bool
  private let checksMethod: Bool
  private let function: Answer

  /// Makes a line. `checksMethod` is false for functions that look at something else before they refuse a method.
  init(
    _ pattern: String, _ first: RouteMethods, _ more: RouteMethods..., checksMethod: Bool = true,
    _ function: @escaping Answer
  ) {
    self.pattern = pattern
    rights = [first] + more
    self.checksMethod = checksMethod
    self.function = function
    var parts = pattern.split(separator: "/")
    hasRest = parts.last == "…"
    if hasRest { parts.removeLast() }
    segments = parts.map { $0.hasPrefix("{") ? .any : .literal(ByteString(String($0))) }
  }

  /// A line for what CouchDB has and this server hasn't.
  static func notImplemented(_ pattern: String, _ methods: RouteMethods) -> Route {
    var route = Route(pattern, methods) { _, _ in throw CouchDBError.notImplemented }
    route.isImplemented = false
    return route
  }

  /// The first segment, which has to be a literal; empty for the pattern of the root.
  var first: ByteString {
    if case .literal(let first)? = segments.first { first } else { ByteString("") }
  }

  /// What stands in a path in the place of names; nil if the path is another one.
  func values(_ path: [ByteString]) -> [String]? {
    guard path.count == segments.count || hasRest && path.count > segments.count else { return nil }
    var values: [String] = []
    for (part, segment) in zip(path, segments) {
      switch segment {
      case .literal(let literal): if part != literal { return nil }
      case .any: values.append(part.string)
      }
    }
    return values
  }

  /// The right that a method needs; of one that it doesn't have, the first one.
  func right(_ method: String) -> Right {
    let same = method == "HEAD" && !methods.contains(method) ? "GET" : method
    return (rights.first { $0.names.contains(same) } ?? rights[0]).right
  }

  /// Throws the error of who hasn't the right, and 405 for a method that it doesn't have. `HEAD` is there where `GET` is: the answers are
  /// the same but for the body, which isn't sent.
  func answer(_ call: Call, _ method: String, _ values: [String]) throws -> HTTPAnswer {
    try call.check(right(method))
    if checksMethod, !methods.isEmpty { try checkMethod(method) }
    return try function(call, values)
  }

  /// Throws 405 for a method that it doesn't have.
  func checkMethod(_ method: String) throws {
    guard methods.contains(method) || method == "HEAD" && methods.contains("GET") else {
      throw MethodNotAllowed(methods)
    }
  }
}

/// Lines whose patterns begin with a literal. Where several fit a path, the first one answers.
struct RouteTable<Call: AuthorizedCall>: Sendable {
  let routes: [Route<Call>]
  private let byFirst: [ByteString: [Route<Call>]]

  init(_ routes: [Route<Call>]) {
    self.routes = routes
    byFirst = Dictionary(grouping: routes, by: \.first)
  }

  /// Whether there are lines whose first segment is this one.
  func hasPaths(below first: ByteString) -> Bool { byFirst[first] != nil }

  /// The answer to a path; nil if no line fits.
  func answer(_ call: Call, _ method: String, _ path: [ByteString]) throws -> HTTPAnswer? {
    for route in byFirst[path.first ?? ByteString("")] ?? [] {
      if let values = route.values(path) { return try route.answer(call, method, values) }
    }
    return nil
  }
}

/// Another method is asked for than those that are allowed here.
struct MethodNotAllowed: Error {
  let methods: [String]
  init(_ methods: [String]) { self.methods = methods }

  var answer: HTTPAnswer {
    let list = methods.joined(separator: ",")
    return .error(
      CouchDBError(405, "method_not_allowed", "Only \(list) allowed"), headers: [.init("Allow", list)])
  }
}
