/// `touchstone completions`: prints a script that completes the command in a shell.
struct CompletionsCommand: Subcommand {
  private static let shell = Positional("SHELL", "The shell").choosing(
    Completions.Shell.allCases.map(\.rawValue))

  static let usage = Usage(
    "completions", "Prints a script that completes touchstone in a shell",
    positionals: [shell], options: [],
    examples: [
      "touchstone completions bash > ~/.local/share/bash-completion/completions/touchstone",
      "touchstone completions zsh > ~/.zsh/completions/_touchstone",
      "touchstone completions fish > ~/.config/fish/completions/touchstone.fish",
    ],
    notes: "zsh looks for the file in the directories of $fpath. make install puts all three in their places."
  )

  private let shell: Completions.Shell

  init(_ arguments: Arguments) throws {
    let name = try arguments.required(Self.shell)
    guard let shell = Completions.Shell(rawValue: name) else {
      throw UsageError("'\(name)' isn't bash, zsh or fish")
    }
    self.shell = shell
  }

  func run(_ output: StandardOutput) throws { try output.write(Completions.script(for: shell)) }
}
