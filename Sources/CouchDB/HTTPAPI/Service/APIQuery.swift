import Bytes
import Fleece
import HTTP
import Views

/// The options in a query string. Of several with one name, the last one counts, as in CouchDB.
struct APIQuery: Sendable {
  /// Names and values in their order, decoded.
  let items: [(name: ByteString, value: ByteString)]

  /// Throws 400 if a percent sign isn't followed by two hexadecimal digits.
  init(_ target: HTTPTarget) throws {
    guard let items = target.queryItems else {
      throw CouchDBError(400, "bad_request", "the query isn't percent-encoded properly")
    }
    self.items = items
  }

  /// The value of an option; nil if it isn't there.
  subscript(name: StaticString) -> String? { bytes(name).map { $0.string } }

  /// The bytes of the value of an option; nil if it isn't there.
  func bytes(_ name: StaticString) -> ByteString? {
    items.last { item in name.withUTF8Buffer { item.name.bytes.elementsEqual($0) } }?.value
  }

  /// The value of an option that is `true` or `false`; nil if it isn't there. Throws 400 for something else.
  func flag(_ name: StaticString) throws -> Bool? {
    switch self[name] {
    case nil: nil
    case "true": true
    case "false": false
    case let other?:
      throw CouchDBError(400, "query_parse_error", "Invalid boolean parameter: \"\(other)\"")
    }
  }

  /// The value of an option that is JSON; nil if it isn't there. Throws 400 if it isn't JSON.
  func json(_ name: StaticString) throws -> JSONValue? {
    guard let text = bytes(name) else { return nil }
    do {
      return try text.bytes.withUnsafeBytes { bytes throws(FleeceError) in try JSONValue(json: bytes) }
    } catch {
      throw CouchDBError(400, "bad_request", "invalid UTF-8 JSON")
    }
  }
}
