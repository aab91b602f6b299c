import Storage

/// The code of the `StorageError` that `body` throws, or nil when it throws none.
package func code(_ body: () throws -> Void) throws -> StorageError.Code? {
  do {
    try body()
    return nil
  } catch let error as StorageError {
    return error.code
  }
}
