/// The error of a ForestDB file that can't be read: what was found, and where.
package struct ForestDBError: Error, Sendable, CustomStringConvertible {
  /// The kind of failure.
  package enum Code: String, Sendable, CaseIterable {
    /// There is no such file.
    case notFound
    /// The file isn't a ForestDB file, or not one that Couchbase Lite wrote.
    case foreign
    /// A ForestDB file of a version or with a feature that isn't read.
    case unsupported
    /// The file is empty, or ends before something that it refers to.
    case truncated
    /// The file is damaged.
    case damaged
    /// No block of the file can be read without a key.
    case keyRequired
    /// No block of the file can be read with the key.
    case wrongKey
    /// A key was given, but the file isn't encrypted.
    case notEncrypted
  }

  /// The kind of failure.
  package let code: Code
  /// A description of what was found, for people.
  package let message: String
  /// The path of the file or directory.
  package let path: String
  /// The place in the file, in bytes; nil if it concerns the whole file.
  package let offset: UInt64?

  init(_ code: Code, _ message: String, path: String, offset: UInt64? = nil) {
    self.code = code
    self.message = message
    self.path = path
    self.offset = offset
  }

  package var description: String {
    offset.map { "\(message), at byte \($0): \(path)" } ?? "\(message): \(path)"
  }
}

/// A part of a file that can't be read, although the rest can.
package struct ForestDBDamage: Sendable, Hashable {
  /// The place in the file, in bytes.
  package let offset: UInt64
  /// What was found there.
  package let message: String
  /// The file, if it isn't the one that is read.
  package var file: String?
}
