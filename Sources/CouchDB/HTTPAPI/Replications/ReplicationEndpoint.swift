import Bytes
import Fleece
import Views

/// The source or the target of a replication: a database of this server by its name, or one that a URL leads to.
enum ReplicationEndpoint: Sendable, Equatable {
  case name(String)
  case remote(RemoteDatabase)

  /// Reads the member of a request: a text, or an object with `url`, `headers` and `auth`. Nil if there is none.
  init?(_ value: JSONValue?) throws {
    let object = value?.object
    guard let value = object == nil ? value : object?["url"], !value.isNull else { return nil }
    guard let text = value.string else {
      throw CouchDBError(400, "bad_request", "a source or target must be a text, or an object with `url`")
    }
    guard !text.isEmpty else { return nil }
    if RemoteDatabase.isURL(text) {
      var remote = try RemoteDatabase(url: text)
      if let object { try remote.take(object) }
      self = .remote(remote)
    } else {
      guard text.utf8.count <= 238, text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
        throw CouchDBError(
          400, "bad_request",
          "a source or target must be a URL, or the name of a database of this server: '\(text.prefix(100))'")
      }
      self = .name(text)
    }
  }

  /// What is shown of it.
  var shown: String {
    switch self {
    case .name(let name): name
    case .remote(let remote): remote.shown
    }
  }

  /// What makes it another replication: all but secrets.
  var identity: JSONValue {
    switch self {
    case .name(let name): .string(name)
    case .remote(let remote): remote.identity
    }
  }

  static func == (left: ReplicationEndpoint, right: ReplicationEndpoint) -> Bool {
    switch (left, right) {
    case (.name(let left), .name(let right)): left.hasSameBytes(as: right)
    case (.remote(let left), .remote(let right)): left == right
    default: false
    }
  }
}
