import CSQLite
import SQLiteLibrary
import Storage

extension SQLiteFile {
  /// Sets the key and the settings of the use. The settings read the first page of the file with the key.
  func configure(_ connection: Connection, cacheBytes: Int, for use: Use = .writing) throws {
    try unlock(connection)
    if access == .withoutLocks { try connection.execute("PRAGMA locking_mode = EXCLUSIVE") }
    try connection.execute(
      """
      PRAGMA cache_size = -\(max(cacheBytes, 256 << 10) >> 10);
      PRAGMA temp_store = MEMORY;
      PRAGMA synchronous = \(synchronous);
      PRAGMA trusted_schema = OFF;
      """)
    // What is only read may come from somebody else. The check costs little, and only for pages from the disk.
    if access != .readWrite { try connection.execute("PRAGMA cell_size_check = ON") }
    if use == .writing {
      try connection.execute(
        "PRAGMA secure_delete = OFF; PRAGMA journal_size_limit = \(SQLiteLayout.logBytes)")
    }
    // The writer runs checkpoints itself, outside the library's commit.
    _ = csqlite_wal_autocheckpoint(connection.functions, connection.handle, 0)
  }

  /// Sets the key and the page size. SQLCipher needs both before it reads anything. Without a key only a new
  /// file needs the page size.
  private func unlock(_ connection: Connection) throws {
    guard let key else { return }
    try key.withText { try connection.setKey($0) }
    try SQLiteLayout.cipher.set(on: connection)
  }
}
