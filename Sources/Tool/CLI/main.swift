import Touchstone

#if canImport(Glibc)
  import Glibc
#endif
#if ROCKSDB
  import StorageRocksDB
#endif
#if WIREDTIGER
  import StorageWiredTiger
#endif
#if POSTGRES
  import StoragePostgres
#endif

LocationSecrets.hide()
StandardDescriptors.openClosed()

// Register external engines here, before the first command: Engines.register(MyEngine.type)
// (docs/engines.md).
#if ROCKSDB
  Engines.register(RocksDBEngines.rocksdb)
#endif
#if WIREDTIGER
  Engines.register(WiredTigerEngines.wiredtiger)
#endif
#if POSTGRES
  Engines.register(PostgresEngines.postgres)
#endif

// A file at the limit of its size (`ulimit -f`) is an error of the write, and not the end of the process.
signal(SIGXFSZ, SIG_IGN)

/// Runs the command that `words` name, and returns the exit status.
func run(_ words: ArraySlice<String>) -> ExitStatus {
  if words.first == "--log" {
    guard let text = words.dropFirst().first, let levels = try? LogLevels(text) else {
      StandardError.line(
        "touchstone: --log needs levels, such as 'info' or 'warning verbose:query,index' (docs/logs.md)")
      return .usage
    }
    Log.add(Log.standardError, levels: levels)
    return run(words.dropFirst(2))
  }
  let output = StandardOutput()
  var name = "touchstone"
  do {
    switch words.first {
    case nil:
      StandardError.write(Subcommands.help)
      return .usage
    case "--help", "-h", "help":
      switch words.dropFirst().first {
      case nil, "help", "--help", "-h": try output.write(Subcommands.help)
      case "--man": try output.write(ManualPage.text)
      default: try output.write(Subcommands.find(words.dropFirst(), forHelp: true).usage.help)
      }
    case "--version": try output.line("touchstone \(touchstoneVersion)")
    default:
      let isHelpOnly = words.dropFirst().first.map { $0 == "--help" || $0 == "-h" } ?? false
      let command = try Subcommands.find(words, forHelp: isHelpOnly)
      let arguments = words.dropFirst(command.usage.words.count)
      name += " " + command.usage.name
      if isHelpOnly
        || arguments.prefix(while: { $0 != "--" }).contains(where: { $0 == "--help" || $0 == "-h" })
      {
        try output.write(command.usage.help)
      } else {
        do { try command.init(Arguments(arguments, usage: command.usage)).run(output) } catch {
          // The output printed before the error belongs to the answer, such as the faults that a check found.
          try output.flush()
          throw error
        }
      }
    }
    try output.flush()
    return .done
  } catch {
    let message =
      LocationSecrets.without((error as? UsageError)?.message ?? "\(error)") + LegacyHint.of(error)
    StandardError.line("\(Style.errors.error("\(name):")) \(CommandWords.of(message))")
    return ExitStatus(error)
  }
}

exit(run(CommandLine.arguments.dropFirst()).rawValue)
