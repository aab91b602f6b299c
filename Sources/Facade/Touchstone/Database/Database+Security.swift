import Documents

// What a server lets whom do with the database: CouchDB's security object (docs/http.md). The module HTTPAPI knows what it means.

extension Database {
  /// The text of the security object; nil if none was stored. Each call reads it.
  package func securityObject() throws -> [UInt8]? { try store.securityObject() }

  /// Stores a security object, durably. It isn't replicated. Throws `invalidBody` if it is too long.
  package func setSecurityObject(_ text: [UInt8]) throws { try writable.setSecurityObject(text) }
}
