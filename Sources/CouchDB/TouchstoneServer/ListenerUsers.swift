import Bytes
import HTTP
import HTTPAPI
import Server

/// The users of a listener that serves a folder: the administrators of its file of users, and the users of the folder's database `_users`.
/// Of a name that is in both, the file counts.
struct ListenerUsers: UserDirectory {
  let admins: UserFile
  let users: UsersDatabase

  func recall(_ name: ByteString) -> KnownUser? {
    admins.contains(name) ? admin(name) : users.recall(name).map(Self.known)
  }

  func find(_ name: ByteString) -> KnownUser? {
    admins.contains(name) ? admin(name) : users.find(name).map(Self.known)
  }

  /// A login that fails takes the time of both hashes, whoever it is for: it doesn't tell which names there are.
  func check(
    _ name: ByteString, _ password: [UInt8], _ completion: @escaping @Sendable (KnownUser?) -> Void
  ) {
    let admin = admins.contains(name) ? admin(name) : nil
    admins.check(name, password) { [users] isRight in
      if isRight, let admin { return completion(admin) }
      let user = users.check(name, password)
      completion(admin == nil ? user.map(Self.known) : nil)
    }
  }

  private func admin(_ name: ByteString) -> KnownUser {
    KnownUser(.admin(name.string), mark: admins.generation)
  }

  private static func known(_ user: UsersDatabase.User) -> KnownUser {
    KnownUser(UserContext(name: user.name, roles: user.roles), mark: user.mark)
  }
}
