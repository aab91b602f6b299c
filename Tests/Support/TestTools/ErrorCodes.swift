// The codes of the errors that tests expect.

import Storage

/// Returns the error of a type that `body` throws, or nil if it throws nothing. Rethrows other errors.
package func thrown<Failure: Error>(_: Failure.Type, by body: () throws -> some Any) throws -> Failure? {
  do { _ = try body() } catch let error as Failure { return error }
  return nil
}

/// Returns the code of the `StorageError` that `body` throws, or nil if it throws nothing. Rethrows other errors.
package func storageCode(of body: () throws -> some Any) throws -> StorageError.Code? {
  try thrown(StorageError.self, by: body)?.code
}
