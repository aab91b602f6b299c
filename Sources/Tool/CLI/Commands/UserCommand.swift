/// `touchstone user`: writes the file of users that `touchstone serve` reads.
struct UserCommand: Subcommand {
  private static let file = Positional("FILE", "The file of users. It is made if it doesn't exist")
  private static let name = Positional("NAME", "The user")
  private static let remove = Flag("remove", "Removes the user")

  static let usage = Usage(
    "user", "Adds a user to a file of users, or changes the password",
    positionals: [file, name], options: [UserPasswordSource.file, remove],
    examples: ["touchstone user users me --password-file secret", "touchstone user users me --remove"],
    notes: """
      The file has a line for each user, with a salted slow hash of the password. A server that runs reads it again
      when it changes. A new file is for its owner only. An existing one keeps its owner and permissions, and a link
      keeps leading to it. The password may also be in the variable TOUCHSTONE_PASSWORD.
      """)

  private let path: String
  private let user: String
  private let password: UserPasswordSource
  private let removes: Bool

  init(_ arguments: Arguments) throws {
    path = try arguments.required(Self.file)
    user = try arguments.required(Self.name)
    password = try UserPasswordSource(arguments)
    removes = arguments[Self.remove]
  }

  func run(_ output: StandardOutput) throws {
    let existed = try UserFileChange.set(
      user, password: removes ? nil : password.read(for: user), in: path)
    try output.line("\(removes ? "removed" : existed ? "changed" : "added") \(user) in \(path)")
  }
}
