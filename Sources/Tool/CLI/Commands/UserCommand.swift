import Server
import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone user`: writes the file of users that `touchstone serve` reads.
struct UserCommand: Subcommand {
  private static let file = Positional("FILE", "The file of users. It is made if it doesn't exist")
  private static let name = Positional("NAME", "The user")
  private static let passwordFile = Option(
    "password-file", "FILE", "A file with the password in one line. Without it, the password is asked for")
  private static let remove = Flag("remove", "Removes the user")

  static let usage = Usage(
    "user", "Adds a user to a file of users, or changes the password",
    positionals: [file, name], options: [passwordFile, remove],
    examples: ["touchstone user users me --password-file secret", "touchstone user users me --remove"],
    notes: """
      The file has a line for each user, with a salted slow hash of the password. A server that runs reads it again
      when it changes. A new file is for its owner only. An existing one keeps its owner and permissions, and a link
      keeps leading to it.
      """)

  private let path: String
  private let user: String
  private let passwordPath: String?
  private let removes: Bool

  init(_ arguments: Arguments) throws {
    path = try arguments.required(Self.file)
    user = try arguments.required(Self.name)
    passwordPath = try arguments.value(Self.passwordFile)
    removes = arguments[Self.remove]
  }

  func run(_ output: StandardOutput) throws {
    var lines: [Substring] = []
    if access(path, F_OK) == 0 {
      // What can't be read isn't overwritten.
      _ = try UserFile(path)
      lines = String(decoding: try PasswordFile.bytes(path), as: UTF8.self).split(separator: "\n")
    }
    let before = lines.count
    lines.removeAll { $0.utf8.starts(with: "\(user):".utf8) }
    let existed = lines.count < before
    if removes {
      guard existed else { throw Refusal("there is no user '\(user)' in \(path)") }
    } else {
      let line = try UserFile.line(user: user, password: Array(password().utf8))
      lines.append(Substring(line))
    }
    try AtomicFile.write(Array((lines.joined(separator: "\n") + "\n").utf8), to: path, permissions: 0o600)
    try output.line("\(removes ? "removed" : existed ? "changed" : "added") \(user) in \(path)")
  }

  private func password() throws -> String {
    if let passwordPath { return try PasswordFile.read(passwordPath) }
    guard let password = try Passphrase.ask("Password of \(user)"), !password.isEmpty else {
      throw UsageError("there is no terminal to ask for the password; use --password-file FILE")
    }
    return password
  }
}
