import CSQLite
import SQLiteLibrary

extension SQLiteFile {
  /// Removes the empty log, and its index, that reading has made beside the file.
  ///
  /// A connection that only reads has to make them, and can't remove them when it closes. One that may write does, if it is
  /// the last in any process: the library asks for the lock that says so. A log that holds commits stays as it is.
  func removeEmptyLog() {
    guard access == .readOnly, Self.size(path + "-wal") == 0 else { return }
    var file = self
    file.access = .readWrite
    // Whatever goes wrong, the files stay, which does no harm.
    guard let connection = try? file.connectOnly() else { return }
    defer { connection.close() }
    try? file.configure(connection, cacheBytes: 0)
    // The log is found with the first read.
    _ = try? connection.integer("SELECT count(*) FROM sqlite_master")
  }
}
