import Query
import Touchstone

/// A command of the tool. To add one, add a type that conforms to this protocol, and its name in
/// `Subcommands.all`.
protocol Subcommand: SendableMetatype {
  static var usage: Usage { get }

  /// Reads the arguments. Throws a `UsageError` before anything is done.
  init(_ arguments: Arguments) throws

  /// Runs the command. Results go to `output`. An error becomes a line on standard error and the exit status
  /// (`ExitStatus`).
  func run(_ output: StandardOutput) throws
}

enum Subcommands {
  /// All commands, in the order of the help.
  static var all: [any Subcommand.Type] {
    [
      CreateCommand.self, InfoCommand.self, DeleteCommand.self,
      ImportCommand.self, ExportCommand.self,
      GetCommand.self, PutCommand.self, RemoveCommand.self, ListCommand.self, ChangesCommand.self,
      PurgeCommand.self, ExpireCommand.self, ConflictsCommand.self, LocalCommand.self, SchemaCommand.self,
      DepthCommand.self,
      QueryCommand.self, FindCommand.self, ShellCommand.self, AdviseCommand.self,
      IndexCommand.self, ViewCommand.self,
      CompactCommand.self, CheckCommand.self, VerifyCommand.self, BackupCommand.self, ConvertCommand.self,
      CopyCommand.self,
      JobsCommand.self, DiscoverCommand.self, SyncCommand.self, ServeCommand.self, UsersCommand.self,
      UserCommand.self,
      UpgradeCommand.self,
      RekeyCommand.self, EncryptCommand.self, DecryptCommand.self, KeyShowCommand.self,
      DatasetsCommand.self, BenchCommand.self, CompareCommand.self, GateCommand.self, TrendCommand.self,
      ReportCommand.self, CompletionsCommand.self, VersionCommand.self,
    ]
  }

  /// The command that `words` begin with. Throws a `UsageError` if there is none. For help, the first word of `key show` is
  /// enough.
  static func find(_ words: ArraySlice<String>, forHelp: Bool = false) throws -> any Subcommand.Type {
    for command in all where words.starts(with: command.usage.words) { return command }
    let word = words.first ?? ""
    if forHelp, let command = all.first(where: { $0.usage.name.hasPrefix(word + " ") }) { return command }
    let continuations = all.map { $0.usage.name }.filter { $0.hasPrefix(word + " ") }
    guard continuations.isEmpty else {
      throw UsageError(
        "'\(word)' isn't a complete command; commands are: \(continuations.joined(separator: ", "))")
    }
    let hint = Suggestions.hint(for: word, among: all.map { $0.usage.words[0] })
    if let known = synonyms[word] { throw UsageError("there is no command '\(word)'; it is called \(known)") }
    if Database.exists(word) {
      throw UsageError(
        "'\(word)' is a database, and not a command; 'touchstone shell \(word)' opens it for queries, and touchstone --help "
          + "lists all commands")
    }
    throw UsageError("there is no command '\(word)'\(hint); touchstone --help lists all commands")
  }

  /// What the commands are called elsewhere.
  private static let synonyms = [
    "cat": "get", "list": "ls", "remove": "rm", "save": "put", "select": "query", "sql": "query",
    "replicate": "sync", "server": "serve", "console": "shell", "migrate": "upgrade", "vacuum": "compact",
    "dump": "export", "load": "import", "benchmark": "bench",
  ]

  static var help: String {
    let commands = all.map { (name: $0.usage.name, help: $0.usage.summary) }
    return Usage.paragraphs(
      "touchstone: a document database with interchangeable storage engines, and a benchmark that compares them."
    )
      + "\n" + Style.output.bold("Usage:") + " touchstone [--log LEVELS] COMMAND …\n\n"
      + Usage.columns(commands, indent: 16) + "\n" + Usage.paragraphs(notes)
  }

  static let notes = """
    touchstone COMMAND --help shows the options of a command and an example. touchstone help --man prints a manual
    page, and touchstone version the version.

    DB is the path of a NAME.touchstone directory. The suffix may be left out. Put -- before IDs and names that
    begin with -, after all options: touchstone get DB --json -- -rSvBcUzkbsB9gO. A key is never an argument. It
    comes from --key-file FILE, from the variable TOUCHSTONE_KEY, or from a prompt on a terminal.

    --log writes a log to standard error: info, or 'warning verbose:query' for one domain (docs/logs.md). With the
    variable NO_COLOR, nothing is coloured.

    Status: 0 done · 1 the answer is no · 2 wrong usage or bad input · 3 the database can't be opened or is
    damaged · 4 a gate couldn't see · 130 stopped by Ctrl-C.
    """
}
