import CSQLite
import SQLiteLibrary

extension SQLiteFile {
  /// Removes the empty log and its index that reading has created beside the file.
  ///
  /// A read-only connection has to create them and can't remove them. A connection that may write removes
  /// them when it closes, if it is the last one in any process. The library uses a lock to find out. A log
  /// with commits stays as it is.
  func removeEmptyLog() {
    guard access == .readOnly, !StillFile.isNeeded(path), Self.size(path + "-wal") == 0 else { return }
    var file = self
    file.access = .readWrite
    // On any failure the files stay, which does no harm.
    guard let connection = try? file.connectOnly() else { return }
    defer { connection.close() }
    try? file.configure(connection, cacheBytes: 0)
    // The library finds the log at the first read.
    _ = try? connection.integer("SELECT count(*) FROM sqlite_master")
  }
}
