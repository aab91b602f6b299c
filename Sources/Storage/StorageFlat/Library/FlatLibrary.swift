import Storage

/// A library that keeps one ordered map from bytes to bytes in a directory of its own. `FlatEngine` makes a
/// storage engine of it: keyspaces are prefixes of keys, and their list and their counts are entries.
///
/// The engine calls `beginWrite` and all members of `FlatWrite` from one thread at a time, and at most one
/// write is open. Reads may come from any thread. Nobody else has the directory open, except that several
/// processes may have it open for reading.
package protocol FlatLibrary: AnyObject, Sendable {
  /// The name and version of the library.
  var library: String { get }
  /// The settings by the library's own names.
  var settings: [(name: String, value: String)] { get }

  /// Begins a snapshot.
  func beginRead() throws -> any FlatRead
  /// Lends the last committed value at a key.
  func read(_ key: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool
  /// Begins a write transaction.
  func beginWrite() throws -> any FlatWrite

  /// Whether a failed commit has left the library in a state in which it refuses to write. The engine then
  /// calls `renew` before the next write.
  var needsRenewal: Bool { get }
  /// Whether work of the library in the background has failed, so that it may refuse the next write though the cause
  /// is gone. The engine then calls `renew` before the next write, unless a snapshot is open.
  var hasFailedInBackground: Bool { get }
  /// Whether it then refuses to read too. The engine calls `renew` before the next read.
  var isUnreadable: Bool { get }
  /// Opens the directory anew. Nothing else uses the library meanwhile, and no snapshot is open. If it can't be
  /// opened for writing, this throws, and reads are possible, if they can be.
  func renew() throws

  /// Removes the entries from `lower` to before `upper`, and `record`, in a transaction of its own. Nobody
  /// reads the entries any more, except in older snapshots.
  func removeRange(from lower: [UInt8], to upper: [UInt8], record: [UInt8]) throws

  /// Writes entries into the library, which is new, empty, and open for a bulk load. `next` lends them in the order of
  /// their keys, each until its next call, and nil at the end. Nothing else uses the library meanwhile. After a failure
  /// the directory is of no use.
  func fill(_ next: () throws -> FlatEntry?) throws

  /// A number that grows with every commit and survives `close`; 0 if the library has none.
  var sequence: UInt64 { get }
  /// Whether `compact` can return unused space to the file system.
  var compactsInPlace: Bool { get }
  /// Returns unused space to the file system. Called only if the library can do that.
  func compact() throws
  /// The library's own checks of its files. One line for each fault.
  func checkFiles() throws -> [String]
  /// Bytes of the files, and those of them that `compact` or a copy would give back, about. There are `entries` entries in the
  /// library. Called while no write transaction is open.
  func size(entries: Int) throws -> (bytes: Int, unused: Int)
  /// Syncs what was written without a log, and closes the files. No transaction is open. Returns whether all commits are in files that
  /// are synced: after a failure the last ones may be in a log only that wasn't.
  func close() throws -> Bool
}

/// Lent bytes of an entry.
package typealias FlatEntry = (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)

/// The number of bytes after which `fill` commits.
private let fillBatchBytes = 1 << 20

extension FlatLibrary {
  package func fill(_ next: () throws -> FlatEntry?) throws {
    try fillByTransactions(next)
  }

  /// Fills the library with what any has: write transactions.
  package func fillByTransactions(_ next: () throws -> FlatEntry?) throws {
    var entry = try next()
    while entry != nil {
      let write = try beginWrite()
      do {
        var bytes = 0
        while let (key, value) = entry, bytes < fillBatchBytes {
          try write.set(key, value)
          bytes += key.count + value.count
          entry = try next()
        }
      } catch {
        write.abort()
        throw error
      }
      try write.commit()
    }
  }
}

/// A snapshot of a library.
package protocol FlatRead: AnyObject {
  /// Lends the value at a key to `body`. The bytes stay valid until it returns, whatever else is read.
  func read(_ key: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool
  /// Lends the values of keys. Keys without a value are skipped. Ends when `body` returns false.
  func readMany(
    _ keys: KeyList, _ body: (_ index: Int, _ value: UnsafeRawBufferPointer) throws -> Bool) throws
  /// Returns an iterator over the keys from `lower` to before `upper`.
  func iterator(from lower: [UInt8], to upper: [UInt8]) throws -> any FlatIterator
  /// Ends the snapshot. All its iterators are closed.
  func end()
}

extension FlatRead {
  package func readMany(
    _ keys: KeyList, _ body: (_ index: Int, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    var goesOn = true
    for index in 0..<keys.count where goesOn {
      _ = try keys[index].withUnsafeBytes { key in
        try read(key) { goesOn = try body(index, $0) }
      }
    }
  }
}

/// A position in the range of an iterator. A move returns whether it stands on an entry. After a write in its
/// transaction it is only closed.
package protocol FlatIterator: AnyObject {
  /// Moves to the first entry whose key is `key` or greater.
  func seek(_ key: UnsafeRawBufferPointer) throws -> Bool
  /// Moves to the last entry whose key is less than `key`.
  func seek(before key: UnsafeRawBufferPointer) throws -> Bool
  /// Moves to the next entry. The iterator stands on one.
  func next() throws -> Bool
  /// Moves to the previous entry. The iterator stands on one.
  func previous() throws -> Bool
  /// The key and the value of the entry, valid until the next move.
  func entry() throws -> FlatEntry
  /// Lends the entry that the iterator stands on, and those behind it in one direction, until `body` returns false. Each is
  /// valid until `body` returns. Afterwards the iterator stands nowhere.
  func walk(descending: Bool, _ body: (FlatEntry) throws -> Bool) throws
  /// Frees what the iterator holds. Nothing is called afterwards.
  func close()
}

extension FlatIterator {
  package func walk(descending: Bool, _ body: (FlatEntry) throws -> Bool) throws {
    repeat {
      guard try body(try entry()) else { return }
    } while try descending ? previous() : next()
  }
}

/// A write transaction of a library. Its reads see its own writes.
package protocol FlatWrite: FlatRead {
  /// Sets the value at a key. Returns whether there was none.
  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  /// Sets the value at a key, and doesn't look whether there was one.
  func set(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws
  /// Sets the value at a key that has none. The caller knows that.
  func add(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws
  /// Sets the value at a key if there is none. Returns whether it did.
  func insert(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  /// Removes the entry at a key. Returns whether there was one.
  func delete(_ key: UnsafeRawBufferPointer) throws -> Bool
  /// Removes the entry at a key that exists. The caller knows that.
  func remove(_ key: UnsafeRawBufferPointer) throws

  /// Begins a part that can be undone alone. It ends when the next part begins or the transaction ends.
  func beginPart() throws
  /// Undoes what was written since `beginPart`.
  func undoPart() throws
  /// Commits. If it throws, nothing is left behind. All its iterators are closed.
  func commit() throws
  /// Undoes everything. All its iterators are closed.
  func abort()
}
