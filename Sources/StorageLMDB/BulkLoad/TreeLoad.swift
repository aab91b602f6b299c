import Glibc
import Storage

/// Fills the empty trees of a new file by writing their pages, without LMDB, which looks for the place of each entry from
/// the root down, and for each page among those that the transaction has changed.
final class TreeLoad: BulkLoad {
  private let path: String
  private let pages: PageStream
  private var unfilled: Set<Keyspace>
  /// What was filled, in order.
  private(set) var records: [(keyspace: Keyspace, record: TreeRecord)] = []
  @exclusivity(unchecked) private var keyspace: Keyspace?
  @exclusivity(unchecked) private var tree: TreeBuilder?
  @exclusivity(unchecked) private var lastKeyCount = 0
  private let lastKey = UnsafeMutableRawPointer.allocate(
    byteCount: StorageLimits.maximumKeyBytes, alignment: 16)

  /// - Parameter keyspaces: those that may be filled.
  init(path: String, keyspaces: Set<Keyspace>, pages: PageStream) {
    self.path = path
    self.pages = pages
    unfilled = keyspaces
  }

  deinit { lastKey.deallocate() }

  func append(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws {
    guard keyspace.takes(key), let start = key.baseAddress else {
      throw StorageError(.invalidKey, "a key of \(key.count) bytes", path: path)
    }
    guard value.count <= StorageLimits.maximumValueBytes else {
      throw StorageError(.valueTooLarge, "a value of \(value.count) bytes", path: path)
    }
    if self.keyspace != keyspace { try begin(keyspace) }
    let order = memcmp(start, lastKey, min(key.count, lastKeyCount))
    guard order > 0 || order == 0 && key.count > lastKeyCount else {
      throw StorageError(.outOfOrder, "an appended key is not greater than all others", path: path)
    }
    memcpy(lastKey, start, key.count)
    lastKeyCount = key.count
    guard let tree else { return }
    try Unmanaged.passUnretained(tree)._withUnsafeGuaranteedRef { try $0.append(key, value) }
  }

  private func begin(_ keyspace: Keyspace) throws {
    try endKeyspace()
    guard unfilled.remove(keyspace) != nil else {
      let isKnown = records.contains { $0.keyspace == keyspace }
      throw isKnown
        ? StorageError(.outOfOrder, "another keyspace was appended to meanwhile", path: path)
        : StorageError(.noSuchKeyspace, "there is no keyspace of number \(keyspace.number)", path: path)
    }
    self.keyspace = keyspace
    tree = TreeBuilder(pages)
    lastKeyCount = 0
  }

  private func endKeyspace() throws {
    guard let ended = keyspace, let tree else { return }
    keyspace = nil
    self.tree = nil
    records.append((ended, try tree.finish()))
  }

  /// Writes what is left.
  func finish() throws {
    try endKeyspace()
    try pages.flush()
  }
}
