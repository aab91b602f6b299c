import CSQLite

/// A library of the SQLite family, opened at run time and called through a table of its functions.
///
/// Each path is opened once per process and never closed. Several libraries can be used side by side. Linking
/// can't do this, because they export the same symbols (docs/storage-sqlite.md).
package final class Library: Sendable {
  /// The name of SQLite's library on Debian, for dlopen.
  package static let sqlitePath = "libsqlite3.so.0"
  /// The name of SQLCipher's library on Debian, for dlopen.
  package static let sqlcipherPath = "libsqlcipher.so.0"

  /// The path or name that the library was opened by.
  package let path: String
  /// The functions of the library. They stay valid for the life of the process and may be called from any
  /// thread.
  package nonisolated(unsafe) let functions: UnsafePointer<CSQLiteFunctions>

  private init(path: String, functions: UnsafePointer<CSQLiteFunctions>) {
    self.path = path
    self.functions = functions
  }

  /// Opens the library at `path`, a file or a name that dlopen finds. Throws `LibraryError` if it can't be
  /// opened or lacks a function. May be called from any thread.
  package static func load(_ path: String) throws -> Library {
    let size = 512
    return try withUnsafeTemporaryAllocation(of: CChar.self, capacity: size) { reason in
      reason.initialize(repeating: 0)
      guard let functions = csqlite_load(path, reason.baseAddress, size) else {
        throw LibraryError(path: path, reason: text(reason.baseAddress) ?? "")
      }
      return Library(path: path, functions: functions)
    }
  }

  /// The version of SQLite that the library is or contains: `3.40.1`.
  package var version: String { text(csqlite_libversion(functions)) ?? "" }

  /// The name of the VFS for connections that commit with `csqlite_step_commit`, or nil if there is none.
  package var logLayer: String? { text(csqlite_log_layer(functions)) }

  /// Whether the library can encrypt.
  package var hasKeys: Bool { csqlite_has_key(functions) != 0 }
}

/// The reason why a library can't be used.
package struct LibraryError: Error, Sendable, CustomStringConvertible {
  /// The path or name that was tried.
  package let path: String
  /// The message of the dynamic loader, or the name of the missing function.
  package let reason: String

  /// The path and the reason in one line, and the package of Debian that has the library.
  package var description: String {
    let package =
      switch path {
      case Library.sqlitePath: "; Debian's package libsqlite3-0 has it"
      case Library.sqlcipherPath: "; Debian's package libsqlcipher0 has it"
      default: ""
      }
    return "the library \(path) can't be used: \(reason)\(package)"
  }
}

/// Returns the string at a C pointer, or nil.
func text(_ pointer: UnsafePointer<CChar>?) -> String? { pointer.map { String(cString: $0) } }
