// A ForestDB file of Couchbase Lite 1.2 to 1.4: keys and values with sequences, in blocks of 4,096 bytes
// (docs/forestdb.md). It is read from the header of the last commit: the trie first, and the log over it.

import Encryption

/// A ForestDB file, open for reading. Nothing is written to it, and no lock is taken. One thread at a time.
package final class ForestDBFile {
  let file: BlockFile
  let header: ForestDBHeader
  /// The stores, the default one first.
  package let stores: [ForestDBStore]
  /// Commits that can't be read, so that an earlier one is.
  package let commitDamages: [ForestDBDamage]
  /// Records of the log that can't be read, besides those that cursors report.
  package let logDamages: [ForestDBDamage]
  private let logs: [UInt64: RecordIndex]
  private let scratch: String

  /// The stores that Couchbase Lite writes. Only their records are read from the log.
  package static let storeNames = ["default", "_local", "info", "expiry"]

  /// Opens a file with its key, if it is encrypted. A large log takes room in the directory `scratch`.
  package convenience init(_ path: String, key: SecretBytes?, scratch: String) throws {
    let file = try BlockFile(path, key: key)
    try self.init(file, LastCommit(file), scratch: scratch)
  }

  /// Takes over a descriptor of a file. `path` is for messages.
  package convenience init(descriptor: Int32, path: String, scratch: String) throws {
    let file = try BlockFile(descriptor: descriptor, path: path, key: nil)
    try self.init(file, LastCommit(file), scratch: scratch)
  }

  init(_ file: BlockFile, _ commit: LastCommit, scratch: String) throws {
    self.file = file
    self.scratch = scratch
    header = commit.header
    stores = try ForestDBStore.list(RecordReader(file, header.version), header)
    let log = LogReader(
      file, header, stores.filter { Self.storeNames.contains($0.name) }, scratch: scratch)
    try log.run()
    logs = log.tables
    commitDamages = commit.damages + Self.cutOff(file)
    logDamages = log.damages
  }

  /// A writer writes whole blocks, so a file that ends within one was cut off.
  private static func cutOff(_ file: BlockFile) -> [ForestDBDamage] {
    guard file.restBytes > 0 else { return [] }
    return [
      ForestDBDamage(
        offset: file.byteCount,
        message:
          "the file ends within a block, so it was cut off; what was saved behind its last commit is missing")
    ]
  }

  /// The last sequence of the documents.
  package var lastSequence: UInt64 { header.lastSequence }
  /// The path of the file.
  package var path: String { file.path }
  /// The version of the format.
  package var version: ForestDBVersion { header.version }
  /// The size of the file in bytes, without a part of a block at its end.
  package var byteCount: UInt64 { file.byteCount }

  /// Returns the store with this name; nil if there is none.
  package func store(_ name: String) -> ForestDBStore? { stores.first { $0.name == name } }

  /// Returns a cursor over the records of a store. Several may be used in turns.
  package func records(of store: ForestDBStore) throws -> StoreCursor {
    try StoreCursor(file, header, store, logs[store.number])
  }

  /// Reads the keys of a store, so that its records can be found by them.
  package func lookup(in store: ForestDBStore, ignoring first: UInt8? = nil) throws -> StoreLookup {
    try StoreLookup(records(of: store), file, header.version, ignoring: first, scratch: scratch)
  }

  /// Returns a cursor over the documents.
  package func documents() throws -> DocumentCursor {
    try DocumentCursor(records(of: stores[0]), file, header)
  }
}
