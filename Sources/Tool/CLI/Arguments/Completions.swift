/// Scripts that complete `touchstone` in a shell, made from the usage of the commands.
enum Completions {
  /// The shells that there are scripts for.
  enum Shell: String, CaseIterable {
    case bash, zsh, fish
  }

  static func script(for shell: Shell) -> String {
    switch shell {
    case .bash: bash
    case .zsh: zsh
    case .fish: fish
    }
  }

  /// A first word, and what may follow it. `sync` is three commands: `sync`, `sync --list` and `sync --discover`.
  private struct Command {
    let word: String
    var summary: String
    var options: [any NamedOption] = []
    /// The words that an argument may be: `list create delete`.
    var words: [String] = []
    var positionals: [Positional] = []
  }

  private static var commands: [Command] {
    var commands: [Command] = []
    for subcommand in Subcommands.all {
      let usage = subcommand.usage
      let word = usage.words[0]
      let second = usage.words.dropFirst().first
      if commands.last?.word != word { commands.append(Command(word: word, summary: usage.summary)) }
      let last = commands.count - 1
      if second == nil {
        commands[last].summary = usage.summary
        commands[last].positionals = usage.positionals
      }
      var added = usage.options
      if let second, second.hasPrefix("--") { added.append(Flag(String(second.dropFirst(2)), usage.summary)) }
      for option in added where !commands[last].options.contains(where: { $0.name == option.name }) {
        commands[last].options.append(option)
      }
      if let second, !second.hasPrefix("--") { commands[last].words.append(second) }
      commands[last].words += usage.positionals.flatMap(\.choices)
    }
    return commands
  }

  private static func quoted(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
  }

  // MARK: bash

  private static var bash: String {
    var cases = ""
    for command in commands {
      var values = ""
      var withValue: [String] = []
      for option in command.options where option.valuePlaceholder != nil {
        let names = ["--\(option.name)"] + (option.letter.map { ["-\($0)"] } ?? [])
        withValue += option.choices.isEmpty ? names : []
        guard !option.choices.isEmpty else { continue }
        values +=
          "\n        \(names.joined(separator: "|"))) words=\(quoted(option.choices.joined(separator: " "))) ;;"
      }
      if !withValue.isEmpty { values += "\n        \(withValue.joined(separator: "|"))) files=1 ;;" }
      let options = (command.options.map { "--\($0.name)" } + ["--help"]).joined(separator: " ")
      cases += """
              \(command.word))
                case $previous in\(values)
                  *)
                    if [[ $current == -* ]]; then words=\(quoted(options))
                    else words=\(quoted(command.words.joined(separator: " "))) files=1
                    fi ;;
                esac ;;

        """
    }
    let names = commands.map(\.word) + ["help", "--help", "--log", "--version"]
    return """
      # Completes touchstone in bash: touchstone completions bash > /etc/bash_completion.d/touchstone
      _touchstone() {
        local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command= index words= files=
        COMPREPLY=()
        for ((index = 1; index < COMP_CWORD; index++)); do
          case ${COMP_WORDS[index]} in
            --log) ((index++)) ;;
            help | -*) ;;
            *) command=${COMP_WORDS[index]}; break ;;
          esac
        done
        case $command in
          '') words=\(quoted(names.joined(separator: " "))) ;;
      \(cases)  esac
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        if [[ -n $files ]]; then
          compopt -o filenames 2>/dev/null
          local IFS=$'\\n'
          COMPREPLY+=($(compgen -f -- "$current"))
        fi
      }
      complete -F _touchstone touchstone

      """
  }

  // MARK: zsh

  private static var zsh: String {
    /// Text between brackets or colons of `_arguments`.
    func described(_ text: String) -> String {
      String(text.flatMap { "[]:\\".contains($0) ? "\\\($0)" : String($0) })
    }
    var list = ""
    var cases = ""
    for command in commands {
      list += "    \(quoted(command.word + ":" + described(command.summary)))\n"
      var arguments: [String] = []
      for option in command.options {
        var ending = ""
        if let placeholder = option.valuePlaceholder {
          let what = option.choices.isEmpty ? "_files" : "(\(option.choices.joined(separator: " ")))"
          ending = ":\(described(placeholder)):\(what)"
        }
        for name in ["--\(option.name)"] + (option.letter.map { ["-\($0)"] } ?? []) {
          arguments.append(quoted("*\(name)[\(described(option.help))]\(ending)"))
        }
      }
      arguments.append(quoted("--help[Shows this help]"))
      if command.positionals.isEmpty, !command.words.isEmpty {
        arguments.append(quoted(":command:(\(command.words.joined(separator: " ")))"))
      }
      for positional in command.positionals where positional.count == .one || positional.count == .optional {
        let what = positional.choices.isEmpty ? "_files" : "(\(positional.choices.joined(separator: " ")))"
        arguments.append(quoted(":\(described(positional.name)):\(what)"))
      }
      arguments.append(quoted("*:file:_files"))
      cases +=
        "    \(command.word))\n      _arguments " + arguments.joined(separator: " \\\n        ") + " ;;\n"
    }
    return """
      #compdef touchstone
      # Completes touchstone in zsh: touchstone completions zsh > DIRECTORY/_touchstone, in a directory of $fpath
      _touchstone() {
        local -a commands
        commands=(
      \(list)  )
        if ((CURRENT == 2)); then
          _describe -t commands command commands
          return
        fi
        shift words
        ((CURRENT--))
        case $words[1] in
          help) _describe -t commands command commands ;;
      \(cases)  esac
      }
      if [[ $funcstack[1] == _touchstone ]]; then _touchstone "$@"; else compdef _touchstone touchstone; fi

      """
  }

  // MARK: fish

  private static var fish: String {
    func quoted(_ text: String) -> String {
      "'" + String(text.flatMap { "'\\".contains($0) ? "\\\($0)" : String($0) }) + "'"
    }
    var text = """
      # Completes touchstone in fish: touchstone completions fish > ~/.config/fish/completions/touchstone.fish
      complete -c touchstone -n __fish_use_subcommand -l help -d 'Shows all commands'
      complete -c touchstone -n __fish_use_subcommand -x -l log -d 'Writes a log to standard error'
      complete -c touchstone -n __fish_use_subcommand -f -a help -d 'Shows the help of a command'

      """
    for command in commands {
      let summary = quoted(command.summary)
      text += "complete -c touchstone -n __fish_use_subcommand -f -a \(command.word) -d \(summary)\n"
      let prefix = "complete -c touchstone -n '__fish_seen_subcommand_from \(command.word)'"
      for option in command.options {
        var line = prefix + (option.letter.map { " -s \($0)" } ?? "") + " -l \(option.name)"
        if option.valuePlaceholder != nil {
          line += option.choices.isEmpty ? " -r" : " -x -a \(quoted(option.choices.joined(separator: " ")))"
        }
        text += line + " -d \(quoted(option.help))\n"
      }
      text += prefix + " -l help -d 'Shows this help'\n"
      if !command.words.isEmpty { text += prefix + " -a \(quoted(command.words.joined(separator: " ")))\n" }
    }
    return text
  }
}
