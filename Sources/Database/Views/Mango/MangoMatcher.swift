import Bytes
import Documents
import Fleece

/// Tells whether documents pass a selector. Used on one thread at a time.
package final class MangoMatcher {
  private let root: MangoNode
  private let run: MangoRun
  /// Encodes documents that aren't stored.
  private lazy var encoder = BodyEncoder()
  private lazy var names = SharedKeysBuilder(.empty)

  /// Whether the selector asks for no more than the ID and the body of a document. If it asks for other members, such as `_rev`, it needs
  /// an object with them.
  package let needsBodyAlone: Bool

  /// Whether nobody waits for the results any more. A match ends then, also within a document.
  package var isCancelled: () -> Bool {
    get { run.effort.isCancelled }
    set { run.effort.isCancelled = newValue }
  }
  /// Whether the last match ended so. Its result is false then, and means nothing.
  package var wasCancelled: Bool { run.effort.wasCancelled }

  /// Throws if ICU has no collator.
  package init(_ selector: MangoSelector) throws {
    root = selector.compiled()
    run = MangoRun(try MangoCollation())
    needsBodyAlone =
      selector.names.map { names in
        names.allSatisfy { $0 == "_id" || $0.bytes.first != UInt8(ascii: "_") }
      } ?? false
  }

  /// Whether a stored document passes, whose body needs `sharedKeys`. For selectors that need the body alone. Throws `damaged` if there is
  /// no body.
  package func matches(id: RawSpan, _ body: Value?, _ sharedKeys: SharedKeys) throws -> Bool {
    guard let body = body?.unsafeValue else {
      throw DocumentError(.damaged, "a stored document can't be read", documentID: String(copying: id))
    }
    return id.withUnsafeBytes { matches(id: $0, body, sharedKeys) }
  }

  /// Whether a document passes that has `_id`, `_rev` and what else the selector asks for (`MangoSelector.names`).
  package func matches(_ document: JSONValue) -> Bool {
    guard (try? encoder.encode(document, keys: names, withCanonicalJSON: false)) != nil,
      let body = FleeceReader.root(of: encoder.fleece)
    else { return false }
    let sharedKeys = names.snapshot()
    let id = body.value(of: "_id", sharedKeys: sharedKeys)?.utf8
    return matches(id: id, body, sharedKeys)
  }

  /// Whether a document passes whose ID isn't in the body; nil: it has none. For selectors that ask for nothing else that isn't there.
  func matches(id: UnsafeRawBufferPointer?, _ body: UnsafeValue, _ sharedKeys: SharedKeys) -> Bool {
    if sharedKeys !== run.sharedKeys {
      run.sharedKeys = sharedKeys
      root.resolve(sharedKeys)
    }
    run.id = id
    run.effort.begin()
    let passes = root.passes(.stored(body), run) && !run.effort.wasCancelled
    run.id = nil
    return passes
  }
}

extension MangoSelector {
  /// The names of the document's members that the selector looks at; nil if it looks at the whole document.
  package var names: Set<ByteString>? {
    switch self {
    case .all: return []
    case .and(let parts), .or(let parts):
      var names: Set<ByteString> = []
      for part in parts {
        guard let own = part.names else { return nil }
        names.formUnion(own)
      }
      return names
    case .not(let other): return other.names
    case .field(let field, _): return field.parts.first.map { [ByteString($0)] }
    }
  }
}
