/// Where the blobs of one database are: immutable bytes by their names, in a directory or in tables of a server.
///
/// New bytes have no name until `put(_:as:replaces:)`. They belong to the process that writes them, and are gone when it
/// has ended without giving them a name. May be used from any thread. Errors are `StorageError`s.
package protocol BlobHome: AnyObject, Sendable {
  /// The directory, or the location without passwords. For errors.
  var location: String { get }
  /// Where the bytes of a name are, for errors.
  func place(of name: String) -> String

  /// All names, and those of other things that are there. Empty if nothing was ever stored.
  func names() throws -> [String]
  /// All names of bytes, with their numbers of bytes.
  func files() throws -> [(name: String, bytes: UInt64)]
  /// The number of bytes that a name has. Nil if there are none, 0 if they aren't a blob's.
  func length(of name: String) throws -> UInt64?
  /// Opens bytes by their name. They can be read to their end even if they are removed meanwhile, or their reader learns that
  /// they are gone. Throws `notFound`.
  func open(_ name: String) throws -> any BlobBytes

  /// Makes new bytes without a name. Those that are secret may be read by whoever has the key. Throws `closed` after `close()`.
  func makeNew(isSecret: Bool, syncs: Bool) throws -> any NewBlobBytes
  /// Gives new bytes a name. Called inside the write transaction whose document names the blob. `replaces` says whether the
  /// name has other bytes, which are damaged. Returns whether the bytes are still there without the name, until they are
  /// discarded.
  func put(_ new: any NewBlobBytes, as name: String, replaces: Bool) throws -> Bool
  /// Marks bytes as used, so that a removal that has begun keeps them. Called inside a write transaction.
  func mark(_ name: String) throws
  /// Makes the names that were given durable. Called before the write transaction commits.
  func sync() throws

  /// Begins the removal of bytes, between two write transactions.
  func beginRemoval(isBlob: (String) -> Bool) throws -> any BlobRemovalPlan

  /// Keeps all bytes that have names, whatever process would remove them, until the hold ends. Waits for a removal that is under way.
  /// Nil if nothing was ever stored, or if nothing can be held here.
  func hold() throws -> (any BlobHold)?

  /// Prepares for writing what was opened for reading only.
  func allowWriting(_ durability: Durability)
  /// Gives up what belongs to this process. New bytes can't be made afterwards.
  func close()
}

/// The bytes of a blob, which don't change.
package protocol BlobBytes: AnyObject, Sendable {
  /// The number of bytes.
  func length() throws -> UInt64
  /// Reads until `buffer` is full or the bytes end. Returns the number of bytes read.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws -> Int
}

/// Bytes that are being written, or wait for a name. One thread at a time writes them.
package protocol NewBlobBytes: AnyObject, Sendable {
  /// Where they are, for errors.
  var place: String { get }
  /// Writes bytes. The calls follow each other without gaps, but for a last one at the beginning.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws
  /// Ends the writing. The bytes can be read and get a name.
  func finish() throws
  /// Opens them for reading.
  func open() throws -> any BlobBytes
  /// Removes what has no name. A second call does nothing.
  func discard()
}

/// The names that a removal may remove.
package protocol BlobRemovalPlan: AnyObject {
  /// The names when the removal began.
  var names: Set<String> { get }
  /// Removes those of these names whose bytes were neither put nor marked since the beginning, and what processes have left
  /// that have ended. Called inside a write transaction. Returns the number of blobs and of their bytes: none while somebody holds
  /// them.
  func remove(_ names: Set<String>) throws -> (blobs: Int, bytes: UInt64)
}

/// Keeps the bytes of blobs from being removed, until it ends or is released. It ends with its process.
package protocol BlobHold: AnyObject, Sendable {
  func end()
}
