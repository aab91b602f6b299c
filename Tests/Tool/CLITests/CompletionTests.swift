import TestSupport

@testable import touchstone

/// The scripts that complete the command in shells, and the manual page.
@Suite struct CompletionTests {
  private static func path(of program: String) -> String? {
    ["/usr/bin/", "/bin/", "/usr/local/bin/"].map { $0 + program }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// What bash offers for words, the last of which is being typed.
  private func completed(_ tool: Tool, _ words: String...) throws -> [String] {
    let script = """
      source z.bash
      COMP_WORDS=(\(words.map { "'\($0)'" }.joined(separator: " ")))
      COMP_CWORD=\(words.count - 1)
      _touchstone
      printf '%s\\n' "${COMPREPLY[@]}"
      """
    return try tool.run("/bin/bash", ["--norc", "-c", script]).lines
  }

  @Test func bashCompletesCommandsOptionsAndTheirValues() throws {
    try Tool.run { tool in
      try tool.write(tool.succeed("completions", "bash").output, to: "z.bash")
      try tool.write("", to: "a file")
      try expect(completed(tool, "touchstone", "que"), equals: ["query"])
      try expect(completed(tool, "touchstone", "e"), equals: ["export", "expire", "encrypt"])
      try expect(completed(tool, "touchstone", "query", "db", "--fo"), equals: ["--format"])
      try expect(
        completed(tool, "touchstone", "query", "db", "--format", ""),
        equals: ["table", "json", "csv", "line"])
      try expect(completed(tool, "touchstone", "query", "--format", "l"), equals: ["line"])
      try expect(completed(tool, "touchstone", "create", "db", "--engine", "sqlite"), equals: ["sqlite"])
      try expect(completed(tool, "touchstone", "index", "db", "c"), equals: ["create"])
      try expect(completed(tool, "touchstone", "shell", "db", "-f", "a"), equals: ["a file"])
      try expect(completed(tool, "touchstone", "sync", "--li"), equals: ["--list"])
      try expect(completed(tool, "touchstone", "--log", "info", "key", "s"), equals: ["show"])
      try expect(completed(tool, "touchstone", "help", "gat"), equals: ["gate"])
      for command in Subcommands.all {
        let words = ["touchstone", command.usage.words[0], "--"]
        for option in command.usage.options {
          try expect(
            completed(tool, words[0], words[1], "--" + option.name).contains("--" + option.name),
            "\(words[1]) --\(option.name)")
        }
        // One that stands for all keeps the test short.
        if !isLong, command.usage.name == "get" { break }
      }
    }
  }

  @Test(.enabled(if: path(of: "fish") != nil, "fish isn't installed"))
  func fishCompletesCommandsOptionsAndTheirValues() throws {
    try Tool.run { tool in
      var tool = tool
      tool.environment = ["HOME": tool.directory, "XDG_CONFIG_HOME": tool.directory]
      try tool.write(tool.succeed("completions", "fish").output, to: "touchstone.fish")
      func completed(_ line: String) throws -> [String] {
        let script = "source touchstone.fish; complete -C '\(line)'"
        return try tool.run(Self.path(of: "fish") ?? "", ["--no-config", "-c", script]).lines
      }
      try expect(completed("touchstone que"), equals: ["query\tRuns a N1QL query"])
      try expect(
        completed("touchstone query db --format l"),
        equals: [
          "line\ttable, json (one object per line), csv or line (one property per line)"
        ])
      try expect(completed("touchstone index db c").contains { $0.hasPrefix("create") })
      try expect(
        completed("touchstone get db --hist").contains { $0.hasPrefix("--history\tPrints all known") })
    }
  }

  @Test(.enabled(if: path(of: "zsh") != nil, "zsh isn't installed"))
  func zshCompletesCommandsOptionsAndTheirValues() throws {
    try Tool.run { tool in
      var tool = tool
      tool.environment = ["PS1": "zsh> ", "HOME": tool.directory]
      try tool.write(tool.succeed("completions", "zsh").output, to: "_touchstone")
      let shell = try PseudoTerminal(tool, program: Self.path(of: "zsh") ?? "", "-f", "-i")
      try shell.wait(for: "zsh> ")
      shell.type("autoload -U compinit; compinit -u -D; source ./_touchstone; PS1='rea''dy> '\n")
      try shell.wait(for: "ready> ")
      // What is typed is printed and not run.
      shell.type("touchstone() { print -r -- \"<$*>\" }\n")
      try shell.wait(for: "ready> ")
      shell.type("touchstone que\tdb --form\tli\t\n")
      try shell.wait(for: "<query db --format line>")
      shell.type("touchstone expire db cle\t\n")
      try shell.wait(for: "<expire db clear>")
      shell.type("exit\n")
      try expect(shell.end(), equals: 0)
    }
  }

  @Test func unknownShellsAreRefused() throws {
    try Tool.run { tool in
      let result = try tool("completions", "tcsh")
      expect(result.status, equals: 2)
      expect(result.errors, equals: "touchstone completions: 'tcsh' isn't bash, zsh or fish\n")
    }
  }

  @Test func theManualPageHasEveryCommandAndOption() throws {
    try Tool.run { tool in
      let page = try tool.succeed("help", "--man").output
      expect(page.hasPrefix(".TH TOUCHSTONE 1 "))
      for command in Subcommands.all {
        expect(
          page.contains(".SS touchstone \(ManualPage.escaped(command.usage.name))\n"), "\(command.usage.name)"
        )
        for option in command.usage.options {
          expect(page.contains("\\-\\-" + ManualPage.escaped(option.name)), "\(option.name)")
        }
      }
      // troff finds nothing to complain about.
      guard let groff = Self.path(of: "groff") else { return }
      try tool.write(page, to: "touchstone.1")
      let set = try tool.run(groff, ["-man", "-Tutf8", "-ww", "touchstone.1"])
      expect(set.status, equals: 0)
      expect(set.errors, equals: "")
    }
    expect(ManualPage.escaped(".a -b 'c' \\"), equals: "\\&.a \\-b \\(aqc\\(aq \\e")
  }
}
