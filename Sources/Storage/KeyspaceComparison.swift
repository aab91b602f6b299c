#if canImport(Glibc)
  import Glibc
#endif

/// Compares all that two snapshots hold, entry by entry, in constant memory.
public enum KeyspaceComparison {
  /// Throws `damaged`, with the first difference, unless both hold the same keyspaces with the same shapes and
  /// entries. `path` names the file that is held against the other. What `onProgress` throws ends the comparison.
  @discardableResult
  public static func check(
    _ copy: any ReadTransaction, against original: any ReadTransaction, path: String,
    onProgress: (CopyProgress) throws -> Void = { _ in }
  ) throws -> CopyProgress {
    func different(_ what: String) -> StorageError {
      StorageError(.damaged, "the copy is not what was copied: \(what)", path: path)
    }
    let originals = try original.keyspaces()
    let copies = try copy.keyspaces()
    guard Set(originals.keys) == Set(copies.keys) else {
      throw different("it has the keyspaces \(copies.keys.sorted()), and not \(originals.keys.sorted())")
    }
    var progress = CopyProgress(
      entries: 0, bytes: 0, totalEntries: try originals.values.reduce(0) { $0 + (try original.count(of: $1)) }
    )
    for (name, keyspace) in originals.sorted(by: { $0.value.number < $1.value.number }) {
      guard let other = copies[name], other.shape == keyspace.shape else {
        throw different("the keyspace \(name) has another shape")
      }
      let counts = (try copy.count(of: other), try original.count(of: keyspace))
      guard counts.0 == counts.1 else {
        throw different("the keyspace \(name) has \(counts.0) entries, and not \(counts.1)")
      }
      let cursor = try copy.cursor(in: other, .all)
      var entries = 0
      var bytes = 0
      try original.scan(keyspace) { key, value in
        guard let entry = try cursor.next(), equal(entry.key, key), equal(entry.value, value) else {
          throw different("entry \(entries) of the keyspace \(name)")
        }
        entries += 1
        bytes += key.count + value.count
        if entries % KeyspaceCopy.progressEntries == 0 {
          try onProgress(
            CopyProgress(
              entries: progress.entries + entries, bytes: progress.bytes + bytes,
              totalEntries: progress.totalEntries))
        }
        return true
      }
      guard try cursor.next() == nil else { throw different("the keyspace \(name) has more entries") }
      progress.entries += entries
      progress.bytes += bytes
    }
    try onProgress(progress)
    return progress
  }

  @inline(__always)
  private static func equal(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    guard left.count == right.count else { return false }
    guard let start = left.baseAddress, let other = right.baseAddress else { return true }
    return memcmp(start, other, left.count) == 0
  }
}
