import Bytes
import Documents
import Fleece
import Replication
import Touchstone
import Views

/// Lets the validation functions of a target's design documents look at revisions that a replication brings, as CouchDB does.
struct ReplicationValidation: Sendable {
  private let database: Database
  private let user: ValidationUser

  init(_ database: Database, user: String?) {
    self.database = database
    self.user = ValidationUser(database: database.name, name: user, roles: ["_admin"])
  }

  /// Throws HTTP 403 for a revision that is refused. `history` begins with its own ID.
  func check(_ id: String, history: [String], isDeleted: Bool, _ body: SyncBody) throws {
    guard try needsCheck(id, isDeleted) else { return }
    try check(id, history: history, isDeleted: isDeleted, body.value())
  }

  /// The same, of a body that was read.
  func check(_ id: String, history: [String], isDeleted: Bool, _ body: JSONValue) throws {
    guard try needsCheck(id, isDeleted) else { return }
    do {
      let object = body.object ?? [:]
      if IncomingID.isDesign(id) {
        let name = String(decoding: id.utf8.dropFirst(IncomingID.designPrefix.utf8.count), as: UTF8.self)
        return try database.checkDesign(name, object)
      }
      let history = history.compactMap { RevisionID($0) }
      let new = try ScriptedRevision(id: id, history: history, isDeleted: isDeleted, object)
      let old = try database.replaced(id, Array(history.dropFirst().prefix(1)))
      try database.validate(new, replacing: old, by: user)
    } catch let error as ValidationRefusal {
      throw ReplicationError(.http, 403, error.message)
    } catch let error as CouchDBError {
      throw ReplicationError(.http, 403, error.description)
    }
  }

  private func needsCheck(_ id: String, _ isDeleted: Bool) throws -> Bool {
    IncomingID.isDesign(id) ? !isDeleted : try database.hasDesignValidations
  }
}
