import CSQLite
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

extension SQLiteEngine: BulkLoadingEngine {
  /// `BulkLoadingEngine.bulkLoad`. SQLCipher's files are filled so when they are of its version 3.
  public func bulkLoad(_ body: (any BulkLoad) throws -> Void) throws -> Bool {
    try checkFork()
    guard let writer else { throw readOnlyError("loading") }
    return try queue.exclusively {
      try checkOpen()
      return try storing("loading", path) { try load(writer.connection.connection, body) }
    }
  }

  private func load(_ connection: Connection, _ body: (any BulkLoad) throws -> Void) throws -> Bool {
    guard try connection.string("PRAGMA journal_mode") == "off",
      try connection.integer("SELECT count(*) FROM keyspaces WHERE entries <> 0 OR highest IS NOT NULL") == 0
    else { return false }
    if file.key != nil {
      guard try connection.string("PRAGMA cipher_version")?.hasPrefix("3.") == true else { return false }
    }
    var roots: [String: UInt32] = [:]
    for line in try connection.strings("SELECT rootpage || ' ' || name FROM sqlite_master WHERE rootpage > 1")
    {
      let parts = line.split(separator: " ", maxSplits: 1)
      guard parts.count == 2, let page = UInt32(parts[0]) else { return false }
      roots[String(parts[1])] = page
    }
    let descriptor = Glibc.open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { throw SQLiteFile.systemError("loading", path) }
    // Closing it drops the process's locks on the file: the library has none between transactions.
    defer { _ = Glibc.close(descriptor) }
    var keys: PageCipher.Keys?
    if let key = file.key {
      guard let salt = connection.readFile(count: PageAuthentication.saltBytes) else { return false }
      keys = try PageCipher.Keys(key, salt: salt)
    }
    let pageCount = UInt32((SQLiteFile.size(path) ?? 0) / SQLiteLayout.pageBytes)
    let pages = PageWriter(descriptor, path: path, keys: keys, pages: pageCount)
    var first = try FirstPage(pages)
    guard first.isFillable(pageCount) else { return false }
    let load = PageLoad(path: path, roots: roots, pages: pages, usable: first.usableBytes)
    do {
      try body(load)
      try load.finish()
    } catch {
      try? pages.finish()
      throw error
    }
    first.notePages(pages.following - 1)
    try pages.write(at: 1) { first.copy(to: $0) }
    try pages.finish()
    // In the library's first look at what was written.
    try connection.execute("BEGIN IMMEDIATE")
    for (keyspace, entries) in load.counts {
      try connection.execute("UPDATE keyspaces SET entries = \(entries) WHERE number = \(keyspace.number)")
    }
    try connection.execute("COMMIT")
    return true
  }
}

/// The header of a file's first page, integers big-endian: 16 bytes a magic, pageBytes:u16 at 16, reserved:u8 at 20,
/// changes:u32 at 24, pages:u32 at 28, autovacuum:u32 at 52, changes that `pages` was valid at:u32 at 92.
private struct FirstPage {
  private var bytes = [UInt8](repeating: 0, count: SQLiteLayout.pageBytes)

  init(_ pages: PageWriter) throws {
    try bytes.withUnsafeMutableBytes { bytes in
      if let start = bytes.baseAddress { try pages.read(1, into: start) }
    }
  }

  var usableBytes: Int { SQLiteLayout.pageBytes - Int(bytes[20]) }

  /// Whether it is what the library makes here, in a file of so many pages.
  func isFillable(_ pages: UInt32) -> Bool {
    self[28] == pages && self[24] == self[92] && self[52] == 0 && usableBytes >= 480
      && Int(bytes[16]) << 8 | Int(bytes[17]) == SQLiteLayout.pageBytes
  }

  /// Notes a change, by which the library knows that what it has cached is old.
  mutating func notePages(_ pages: UInt32) {
    self[28] = pages
    self[24] &+= 1
    self[92] = self[24]
  }

  func copy(to page: UnsafeMutableRawPointer) {
    bytes.withUnsafeBytes { bytes in
      if let start = bytes.baseAddress { page.copyMemory(from: start, byteCount: bytes.count) }
    }
  }

  private subscript(offset: Int) -> UInt32 {
    get { bytes[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) } }
    set {
      for index in 0..<4 { bytes[offset + index] = UInt8(truncatingIfNeeded: newValue >> (24 - 8 * index)) }
    }
  }
}
