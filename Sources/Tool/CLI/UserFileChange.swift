import Server
import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// Changes files of users, one user at a time.
enum UserFileChange {
  /// The file of administrators in a directory of databases, which `serve` reads if no other is named.
  static let administrators = "server-admins"

  /// Sets a user's password, or removes the user if there is none. The file is made if it doesn't exist. Returns whether there was such a
  /// user. What can't be read isn't overwritten.
  static func set(_ user: String, password: String?, in path: String) throws -> Bool {
    var lines: [Substring] = []
    if access(path, F_OK) == 0 {
      _ = try UserFile(path)
      lines = String(decoding: try PasswordFile.bytes(path), as: UTF8.self).split(separator: "\n")
    }
    let before = lines.count
    lines.removeAll { $0.utf8.starts(with: "\(user):".utf8) }
    let existed = lines.count < before
    if let password {
      lines.append(Substring(try UserFile.line(user: user, password: Array(password.utf8))))
    } else if !existed {
      throw Refusal("there is no user '\(user)' in \(path)")
    }
    try AtomicFile.write(Array((lines.joined(separator: "\n") + "\n").utf8), to: path, permissions: 0o600)
    return existed
  }
}

/// Where a command gets the password of a user from: a file, an environment variable, or a prompt. A password is never an argument.
struct UserPasswordSource {
  static let file = Option(
    "password-file", "FILE", "A file with the password in one line. Without it, the password is asked for")
  static let variable = "TOUCHSTONE_PASSWORD"

  private let path: String?

  init(_ arguments: Arguments) throws { path = try arguments.value(Self.file) }

  /// The password.
  func read(for user: String) throws -> String {
    if let path { return try PasswordFile.read(path) }
    if let password = EnvironmentVariable.take(Self.variable) { return password }
    guard let password = try Passphrase.ask("Password of \(user)"), !password.isEmpty else {
      throw UsageError(
        "there is no terminal to ask for the password; use --password-file FILE or the variable \(Self.variable)"
      )
    }
    return password
  }
}
