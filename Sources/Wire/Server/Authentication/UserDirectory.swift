import Bytes
import HTTP

/// A user that a directory knows.
package struct KnownUser: Sendable {
  /// The name and the roles.
  package let context: UserContext
  /// A number that changes when the password does, or when the user is made anew. Cookies with another mark aren't good any more.
  package let mark: UInt64

  /// Makes one. See the properties.
  package init(_ context: UserContext, mark: UInt64) {
    self.context = context
    self.mark = mark
  }
}

/// Knows users, their roles and their passwords. All calls may come from any thread.
package protocol UserDirectory: Sendable {
  /// A user, if it needs no time to find out: nil if there may be one that `find` knows. It is called on a thread that serves many
  /// connections, and must not wait for anything.
  func recall(_ name: ByteString) -> KnownUser?
  /// A user; nil if there is none. It may wait.
  func find(_ name: ByteString) -> KnownUser?
  /// Calls `completion` once, from any thread, with the user if the password is right, and with nil otherwise. It takes as long for a
  /// name that isn't known. It is called on a thread for logins.
  func check(
    _ name: ByteString, _ password: [UInt8], _ completion: @escaping @Sendable (KnownUser?) -> Void)
}

/// The users whose passwords a checker knows. Each is an administrator.
package struct AdministratorDirectory: UserDirectory {
  private let checker: any PasswordChecker

  /// Makes a directory of a checker's users.
  package init(_ checker: any PasswordChecker) { self.checker = checker }

  /// A user of that name, whether the checker knows it or not: names are only asked for that a right password, or a right cookie, had.
  package func recall(_ name: ByteString) -> KnownUser? { user(name) }
  /// A user of that name, unless the checker says that there is none.
  package func find(_ name: ByteString) -> KnownUser? { checker.knows(name) ? user(name) : nil }

  package func check(
    _ name: ByteString, _ password: [UInt8], _ completion: @escaping @Sendable (KnownUser?) -> Void
  ) {
    // The mark of before: if the password changes meanwhile, the login is good for nothing.
    let user = user(name)
    checker.check(name, password) { completion($0 ? user : nil) }
  }

  private func user(_ name: ByteString) -> KnownUser {
    KnownUser(.admin(name.string), mark: checker.generation)
  }
}
