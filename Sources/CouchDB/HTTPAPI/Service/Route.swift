import Bytes
import HTTP
import Views

/// A line of a table of routes: a pattern of paths, the methods that it has, and the function that answers.
///
/// A segment of a pattern is itself; `{name}` is any segment, and the function gets it; `…` at the end is any number of segments, none
/// included. `Call` is what the function is asked about.
struct Route<Call>: Sendable {
  typealias Answer = @Sendable (Call, [String]) throws -> HTTPAnswer

  private enum Segment: Sendable {
    case literal(ByteString)
    case any
  }

  let pattern: String
  /// Empty: the function takes any method.
  let methods: [String]
  /// Whether the server has what CouchDB has there.
  private(set) var isImplemented = true
  private let segments: [Segment]
  private let hasRest: Bool
  private let checksMethod: Bool
  private let function: Answer

  /// Makes a line. `checksMethod` is false for functions that look at something else before they refuse a method.
  init(_ pattern: String, _ methods: String..., checksMethod: Bool = true, _ function: @escaping Answer) {
    self.pattern = pattern
    self.methods = methods
    self.checksMethod = checksMethod
    self.function = function
    var parts = pattern.split(separator: "/")
    hasRest = parts.last == "…"
    if hasRest { parts.removeLast() }
    segments = parts.map { $0.hasPrefix("{") ? .any : .literal(ByteString(String($0))) }
  }

  /// A line for what CouchDB has and this server hasn't.
  static func notImplemented(_ pattern: String) -> Route {
    var route = Route(pattern) { _, _ in throw CouchDBError.notImplemented }
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

  /// Throws 405 for a method that it doesn't have. `HEAD` is there where `GET` is: the answers are the same but for the body, which isn't
  /// sent.
  func answer(_ call: Call, _ method: String, _ values: [String]) throws -> HTTPAnswer {
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
struct RouteTable<Call>: Sendable {
  let routes: [Route<Call>]
  private let byFirst: [ByteString: [Route<Call>]]

  init(_ routes: [Route<Call>]) {
    self.routes = routes
    byFirst = Dictionary(grouping: routes, by: \.first)
  }

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
