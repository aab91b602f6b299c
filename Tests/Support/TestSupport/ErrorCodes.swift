// The codes of the errors that tests above the engines expect. Each function is as `storageCode`.

import CBLite2
import Documents
import TestTools
import Touchstone
import Upgrade

/// Returns the code of the `DocumentError` that `body` throws, or nil if it throws nothing. Rethrows other errors.
package func documentCode(of body: () throws -> some Any) throws -> DocumentError.Code? {
  try thrown(DocumentError.self, by: body)?.code
}

/// The same for a `DatabaseError`.
package func databaseCode(of body: () throws -> some Any) throws -> DatabaseError.Code? {
  try thrown(DatabaseError.self, by: body)?.code
}

/// The same for a `CBLite2Error`.
package func cblite2Code(of body: () throws -> some Any) throws -> CBLite2Error.Code? {
  try thrown(CBLite2Error.self, by: body)?.code
}

/// The same for a `QueryError`.
package func queryCode(of body: () throws -> some Any) throws -> QueryError.Code? {
  try thrown(QueryError.self, by: body)?.code
}

/// The same for an `UpgradeError`.
package func upgradeCode(of body: () throws -> some Any) throws -> UpgradeError.Code? {
  try thrown(UpgradeError.self, by: body)?.code
}
