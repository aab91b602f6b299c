import CSQLite
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Fills the empty tables of a new file by writing their pages, without the library, which takes most of its time for
/// what a load in order doesn't need: statements, searches, a call of the system a page.
///
/// The library has made the file, and finds the pages when it looks next, as it does after another process has written.
final class PageLoad: BulkLoad {
  private let path: String
  private let roots: [String: UInt32]
  private let pages: PageWriter
  private let usable: Int
  /// Entries of the keyspaces that were filled.
  private(set) var counts: [(keyspace: Keyspace, entries: Int)] = []

  /// A keyspace whose trees fill.
  private final class Filling {
    let keyspace: Keyspace
    /// Of rows, or of a table without.
    private let table: PageTree
    /// Of keys, where documents have one.
    private let keys: PageTree?
    @exclusivity(unchecked) private(set) var entries = 0

    init(_ keyspace: Keyspace, table: PageTree, keys: PageTree?) {
      self.keyspace = keyspace
      self.table = table
      self.keys = keys
    }

    /// Appends an entry; `header` is a place for a record's.
    func append(
      _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ header: UnsafeMutableRawPointer
    ) throws {
      entries += 1
      let none = UnsafeRawBufferPointer(start: nil, count: 0)
      let keyType = RecordPayload.type(ofBlob: key.count)
      let valueType = RecordPayload.type(ofBlob: value.count)
      switch keyspace.shape {
      case .documents:
        let row = UInt64(entries)
        try table.append(
          RecordPayload(header: RecordPayload.header((0, keyType, valueType), in: header), key, value),
          row: row)
        let (rowType, rowBytes) = RecordPayload.type(ofInteger: row)
        var bigEndian = row.bigEndian
        try withUnsafeBytes(of: &bigEndian) { bytes in
          try keys?.append(
            RecordPayload(
              header: RecordPayload.header((nil, keyType, rowType), in: header), key,
              UnsafeRawBufferPointer(rebasing: bytes[(8 - rowBytes)...])))
        }
      case .entries:
        try table.append(
          RecordPayload(header: RecordPayload.header((nil, keyType, valueType), in: header), key, value))
      case .sequences:
        try table.append(
          RecordPayload(header: RecordPayload.header((0, valueType, nil), in: header), value, none),
          row: UInt64(bitPattern: SequenceKey.number(key)))
      }
    }

    func finish() throws {
      try table.finish()
      try keys?.finish()
    }
  }
  @exclusivity(unchecked) private var filling: Filling?
  @exclusivity(unchecked) private var fillingKeyspace: Keyspace?
  @exclusivity(unchecked) private var lastKeyCount = 0
  private let lastKey = UnsafeMutableRawPointer.allocate(
    byteCount: StorageLimits.maximumKeyBytes, alignment: 16)
  private let header = UnsafeMutableRawPointer.allocate(
    byteCount: RecordPayload.maximumHeaderBytes, alignment: 16)

  /// - Parameter roots: the root pages by the names of tables and indexes.
  init(path: String, roots: [String: UInt32], pages: PageWriter, usable: Int) {
    self.path = path
    self.roots = roots
    self.pages = pages
    self.usable = usable
  }

  deinit {
    lastKey.deallocate()
    header.deallocate()
  }

  func append(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws {
    let isValid =
      keyspace.shape == .sequences
      ? SequenceKey.isValid(key) : 1...StorageLimits.maximumKeyBytes ~= key.count
    guard isValid else {
      throw StorageError(.invalidKey, "a key of \(key.count) bytes", path: path)
    }
    guard value.count <= StorageLimits.maximumValueBytes else {
      throw StorageError(.valueTooLarge, "a value of \(value.count) bytes", path: path)
    }
    if fillingKeyspace != keyspace { try begin(keyspace) }
    guard let start = key.baseAddress, let filling else { return }
    let order = memcmp(start, lastKey, min(key.count, lastKeyCount))
    guard order > 0 || order == 0 && key.count > lastKeyCount else {
      throw StorageError(.outOfOrder, "an appended key is not greater than all others", path: path)
    }
    lastKey.copyMemory(from: start, byteCount: key.count)
    lastKeyCount = key.count
    try Unmanaged.passUnretained(filling)._withUnsafeGuaranteedRef { try $0.append(key, value, header) }
  }

  private func begin(_ keyspace: Keyspace) throws {
    try endKeyspace()
    guard !counts.contains(where: { $0.keyspace == keyspace }) else {
      throw StorageError(.outOfOrder, "another keyspace was appended to meanwhile", path: path)
    }
    let name = SQLiteLayout.table(keyspace.number)
    func tree(_ kind: PageTree.Kind, _ name: String) throws -> PageTree {
      guard let root = roots[name] else {
        throw StorageError(
          .noSuchKeyspace, "there is no keyspace of number \(keyspace.number)", path: path)
      }
      return PageTree(kind, root: root, pages: pages, usable: usable)
    }
    filling = Filling(
      keyspace, table: try tree(keyspace.shape == .entries ? .index : .table, name),
      keys: keyspace.shape == .documents ? try tree(.index, "sqlite_autoindex_\(name)_1") : nil)
    fillingKeyspace = keyspace
    lastKeyCount = 0
  }

  private func endKeyspace() throws {
    guard let ended = filling else { return }
    filling = nil
    fillingKeyspace = nil
    try ended.finish()
    counts.append((ended.keyspace, ended.entries))
  }

  /// Writes what is left.
  func finish() throws {
    try endKeyspace()
    try pages.finish()
  }
}
