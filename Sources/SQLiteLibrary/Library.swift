import CSQLite

/// A SQLite-family library, opened at run time and called through a table of its functions.
///
/// A library is opened once a path in a process and never closed. Two of them live side by side, which
/// linking them can't give: both export the same symbols (docs/storage-sqlite.md).
public final class Library: Sendable {
  /// Debian's name of SQLite, as dlopen looks for it.
  public static let sqlitePath = "libsqlite3.so.0"
  /// Debian's name of SQLCipher.
  public static let sqlcipherPath = "libsqlcipher.so.0"

  /// The path it was opened by.
  public let path: String
  /// Its functions, for as long as the process lives. They may be called from any thread.
  public nonisolated(unsafe) let functions: UnsafePointer<CSQLiteFunctions>

  private init(path: String, functions: UnsafePointer<CSQLiteFunctions>) {
    self.path = path
    self.functions = functions
  }

  /// The library at `path`, a file or a name that dlopen finds. Throws `LibraryError` when it can't be
  /// opened or lacks a function. Any thread may call this.
  public static func load(_ path: String) throws -> Library {
    let size = 512
    return try withUnsafeTemporaryAllocation(of: CChar.self, capacity: size) { reason in
      reason.initialize(repeating: 0)
      guard let functions = csqlite_load(path, reason.baseAddress, size) else {
        throw LibraryError(path: path, reason: text(reason.baseAddress) ?? "")
      }
      return Library(path: path, functions: functions)
    }
  }

  /// The version of SQLite that it is or contains: `3.40.1`.
  public var version: String { text(csqlite_libversion(functions)) ?? "" }

  /// Whether it encrypts.
  public var hasKeys: Bool { csqlite_has_key(functions) != 0 }
}

/// Why a library can't be used.
public struct LibraryError: Error, Sendable, CustomStringConvertible {
  /// The path or name that was tried.
  public let path: String
  /// What the dynamic loader said, or which function is missing.
  public let reason: String

  /// Which library, and why.
  public var description: String { "the library \(path) can't be used: \(reason)" }
}

/// The string at a C pointer, or nil.
func text(_ pointer: UnsafePointer<CChar>?) -> String? { pointer.map { String(cString: $0) } }
