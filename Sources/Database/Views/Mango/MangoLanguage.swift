import Bytes
import Fleece
import Scripts
import System

/// The language "query" of design documents: indexes of `_find`. They are mapped in this process, without a program of scripts.
package struct MangoLanguage: ScriptLanguage {
  package static let name = "query"
  package var name: String { Self.name }

  package init() {}

  package func open(designDocument: [UInt8]) throws -> any ScriptContext {
    let body = try? designDocument.withUnsafeBytes { try JSONValue(json: $0) }
    return try MangoContext(body?.object ?? JSONObject())
  }
}

/// The indexes of a design document. There are no other functions.
final class MangoContext: ScriptContext {
  private let indexes: [MangoIndex]
  let views: [ScriptView]
  let hasValidation = false

  init(_ body: JSONObject) throws {
    indexes = MangoIndex.all(designID: "", body)
    views = indexes.map { ScriptView(name: $0.name, reduce: .builtIn("_count")) }
  }

  /// The names of a view's columns. Their order is a part of its map function, and isn't in the text of that.
  func columns(view: Int) -> JSONValue { .array(indexes[view].columns.map { .string($0.name) }) }

  /// The function that maps documents for a view.
  func map(view: Int) throws -> ViewMap {
    let index = indexes[view]
    let fields = index.columns.map(\.field)
    guard let filter = try index.filter.map({ try MangoSelector($0) }) else {
      return { document, emit in try Self.emit(fields, document, emit) }
    }
    let names = filter.names
    let matcher = Lock(try MangoMatcher(filter))
    return { document, emit in
      let passes = try matcher.withLock { matcher in
        guard !matcher.needsBodyAlone else {
          return try matcher.matches(id: document.view.idBytes, document.view.body, document.sharedKeys)
        }
        return matcher.matches(try MangoInput.value(of: document, names))
      }
      guard passes else { return }
      try Self.emit(fields, document, emit)
    }
  }

  private static func emit(_ fields: [MangoField], _ document: MappedDocument, _ emit: ViewEmitter) throws {
    var key: [JSONValue] = []
    for field in fields {
      guard let value = try MangoInput.value(of: document, field) else { return }
      key.append(value)
    }
    emit(JSONValue.array(key))
  }

  func beginMapping(_ batch: ScriptBatch, views: [Int]) throws -> any ScriptMapping { throw Self.none }
  func reduce(view: Int, keys: RawSpan?, values: RawSpan, rereduce: Bool) throws -> [UInt8] {
    throw Self.none
  }
  func filter(
    _ name: String, _ batch: ScriptBatch, request: [UInt8], checkWanted: () throws -> Void
  ) throws -> [Bool] { throw Self.none }
  func filter(view name: String, _ batch: ScriptBatch, checkWanted: () throws -> Void) throws -> [Bool] {
    throw Self.none
  }
  func validate(_ document: [UInt8], old: [UInt8]?, user: [UInt8], security: [UInt8]) throws -> ScriptVerdict
  {
    .allowed
  }
  func close() {}

  private static var none: ScriptError { ScriptError(.missing, "an index has no functions") }
}
