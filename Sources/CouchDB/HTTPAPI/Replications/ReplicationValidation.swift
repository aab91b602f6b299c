import Documents
import Fleece
import HTTP
import Replication
import Touchstone
import Views

/// Lets a database look at revisions that a replication brings, as CouchDB does: who isn't a member writes nothing, only administrators
/// write design documents, and validation functions see the rest.
package struct ReplicationValidation: Sendable {
  private let database: Database
  private let name: String
  private let user: UserContext
  private let rights: StandingRights

  /// Makes one for a database, the name under which it is served, and who replicates. `rights` says who that is when a batch comes.
  package init(_ database: Database, name: String, user: UserContext, _ rights: StandingRights) {
    self.database = database
    self.name = name
    self.user = user
    self.rights = rights
  }

  /// What looks at a revision of a batch.
  package typealias Check = @Sendable (SyncRevision) throws -> Void

  /// Makes what looks at the revisions of one batch. It throws HTTP 403 for a revision that is refused. Throws 401 or 403 if the user may
  /// write nothing.
  package func check() throws -> Check {
    let batch = try Batch(self)
    return { revision in
      try batch.check(revision.id, history: revision.history, isDeleted: revision.isDeleted) {
        try revision.body.value()
      }
    }
  }

  /// Throws HTTP 403 for a revision that is refused. `history` begins with its own ID.
  func check(_ id: String, history: [String], isDeleted: Bool, _ body: @autoclosure () throws -> JSONValue)
    throws
  {
    try Batch(self).check(id, history: history, isDeleted: isDeleted, body)
  }

  /// What holds for the revisions of one batch.
  private struct Batch: Sendable {
    let database: Database
    let isAdmin: Bool
    let isOfUsers: Bool
    let isPartitioned: Bool
    /// Nil if there are no validation functions.
    let user: ValidationUser?

    init(_ validation: ReplicationValidation) throws {
      database = validation.database
      guard let user = validation.rights.current(validation.user) else {
        throw ReplicationError(.http, 401, "there is no user \(validation.user.name ?? "") any more")
      }
      isOfUsers = validation.name.hasSameBytes(as: UserDocument.database)
      isPartitioned = try database.replicating { try $0.isPartitioned() }
      let security = KnownSecurity()
      do {
        let right: Right = DatabaseService.isSystemName(validation.name) ? .databaseAdmin : .member
        try Authorization.check(right, of: user, security.value(of: validation.database))
      } catch let error as CouchDBError { throw ReplicationError(.http, error.status, error.reason) }
      isAdmin = try user.isServerAdmin || security.value(of: database).isAdmin(user)
      self.user =
        try database.hasDesignValidations
        ? ValidationUser(
          database: validation.name, name: user.name, roles: user.roles,
          security: security.value(of: database).object) : nil
    }

    func check(_ id: String, history: [String], isDeleted: Bool, _ body: () throws -> JSONValue) throws {
      let isDesign = IncomingID.isDesign(id)
      guard isDesign || user != nil || isOfUsers || isPartitioned else { return }
      do {
        if isPartitioned { try DatabaseCall.checkPartitioned(id) }
        if isDesign {
          guard isAdmin else {
            throw CouchDBError(403, "forbidden", "You are not a db or server admin.")
          }
          if isDeleted { return }
          let name = String(decoding: id.utf8.dropFirst(IncomingID.designPrefix.utf8.count), as: UTF8.self)
          return try database.checkDesign(name, body().object ?? [:])
        }
        let object = try body().object ?? [:]
        if isOfUsers { try checkUser(id, object, isDeleted: isDeleted) }
        guard let user else { return }
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

    /// A replication doesn't hash passwords: the revision ID stands for the content.
    private func checkUser(_ id: String, _ body: JSONObject, isDeleted: Bool) throws {
      guard body["password"] == nil || body["password"]?.isNull == true else {
        throw CouchDBError(403, "forbidden", "a replication brings no passwords, only their hashes")
      }
      try UserDocument.check(
        id, body, isDeleted: isDeleted, replacing: nil, by: .everybody, isAdmin: true)
    }
  }
}
