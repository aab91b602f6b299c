import Storage

/// The bytes of a text.
package func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

extension WriteTransaction {
  package func delete(_ key: [UInt8], in keyspace: Keyspace) throws -> Bool {
    try key.withUnsafeBytes { try delete($0, in: keyspace) }
  }
}
