import Storage

/// Small files of secrets and certificates that options name.
enum PasswordFile {
  private static let maximumBytes = 1 << 20

  /// The first line of a file.
  static func read(_ path: String) throws -> String {
    let line = try bytes(path).prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
    guard let password = String(validating: line, as: UTF8.self), !password.isEmpty else {
      throw UsageError("the file \(path) has no password in its first line")
    }
    return password
  }

  /// The bytes of a file.
  static func bytes(_ path: String) throws -> [UInt8] {
    do { return try AtomicFile.read(path, limit: maximumBytes, mayBePipe: true) } catch {
      throw UsageError("can't read \(path): \(error)")
    }
  }
}
