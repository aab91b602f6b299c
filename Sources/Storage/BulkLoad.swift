/// An engine that can fill a new file faster than transactions do.
public protocol BulkLoadingEngine: StorageEngine {
  /// Lets `body` fill the keyspaces of a file that was opened with `isBulkLoad`, all of them empty. What it appends is
  /// there when this returns. When anything throws, the file is of no use any more.
  ///
  /// - Returns: false when this file can't be filled so; `body` was not called then, and nothing has changed.
  func bulkLoad(_ body: (any BulkLoad) throws -> Void) throws -> Bool
}

/// Fills keyspaces, one after the other. One thread at a time, within the body it was handed to.
public protocol BulkLoad: AnyObject {
  /// Adds an entry to a keyspace. Throws `outOfOrder` unless its key is greater than all others of it, and when another
  /// keyspace was appended to since.
  func append(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws
}
