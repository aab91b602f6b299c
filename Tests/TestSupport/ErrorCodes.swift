// The codes of the errors that tests expect.

import CBLite2
import Documents
import Storage
import Touchstone
import Upgrade

/// Returns the error of a type that `body` throws, or nil if it throws nothing. Rethrows other errors.
package func thrown<Failure: Error>(_: Failure.Type, by body: () throws -> Void) throws -> Failure? {
  do { try body() } catch let error as Failure { return error }
  return nil
}

/// Returns the code of the `StorageError` that `body` throws, or nil if it throws nothing. Rethrows other errors.
package func storageCode(of body: () throws -> Void) throws -> StorageError.Code? {
  try thrown(StorageError.self, by: body)?.code
}

/// The same for a `DocumentError`.
package func documentCode(of body: () throws -> Void) throws -> DocumentError.Code? {
  try thrown(DocumentError.self, by: body)?.code
}

/// The same for a `DatabaseError`.
package func databaseCode(of body: () throws -> Void) throws -> DatabaseError.Code? {
  try thrown(DatabaseError.self, by: body)?.code
}

/// The same for a `CBLite2Error`.
package func cblite2Code(of body: () throws -> Void) throws -> CBLite2Error.Code? {
  try thrown(CBLite2Error.self, by: body)?.code
}

/// The same for an `UpgradeError`.
package func upgradeCode(of body: () throws -> Void) throws -> UpgradeError.Code? {
  try thrown(UpgradeError.self, by: body)?.code
}
