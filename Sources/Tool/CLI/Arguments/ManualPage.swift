import Touchstone

/// The manual page, touchstone(1), made from the same usage as the help.
enum ManualPage {
  static var text: String {
    var page = """
      .TH TOUCHSTONE 1 "" "touchstone \(touchstoneVersion)" "User Commands"
      .SH NAME
      touchstone \\- a document database with interchangeable storage engines
      .SH SYNOPSIS
      .B touchstone
      [\\-\\-log LEVELS] COMMAND ...
      .SH DESCRIPTION

      """
    page += paragraphs(Subcommands.notes)
    page += ".SH COMMANDS\n"
    for command in Subcommands.all { page += section(command.usage) }
    return page + """
      .SH ENVIRONMENT
      .TP
      .B TOUCHSTONE_KEY
      The passphrase of a database.
      .TP
      .B TOUCHSTONE_NEW_KEY
      The passphrase of a new database.
      .TP
      .B TOUCHSTONE_DATA
      The directory of data sets.
      .TP
      .B NO_COLOR
      If it is set, nothing is coloured.
      .SH FILES
      .TP
      .I ~/.local/state/touchstone/history
      What was typed in the shell, or below XDG_STATE_HOME.
      .TP
      .I ~/.editrc
      Settings of the shell's editor, editrc(5).
      .SH SEE ALSO
      editrc(5), sqlite3(1)

      """
  }

  private static func section(_ usage: Usage) -> String {
    var text = ".SS touchstone \(escaped(usage.name))\n" + escaped(usage.summary) + ".\n.PP\n"
    text += ".B " + escaped(usage.synopsis) + "\n"
    for row in usage.rows where row.name != "--help" {
      text += ".TP\n.B " + escaped(row.name) + "\n" + escaped(row.help) + "\n"
    }
    if !usage.notes.isEmpty { text += ".PP\n" + paragraphs(usage.notes) }
    return text + ".PP\n.EX\n" + usage.examples.map { escaped($0) + "\n" }.joined() + ".EE\n"
  }

  private static func paragraphs(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.isEmpty ? ".PP\n" : escaped(String($0)) + "\n" }.joined()
  }

  /// The text without meaning for troff.
  static func escaped(_ text: String) -> String {
    var result = ""
    for character in text {
      switch character {
      case "\\": result += "\\e"
      case "-": result += "\\-"
      case "'": result += "\\(aq"
      case "`": result += "\\(ga"
      case "…": result += "..."
      case "·": result += "\\(bu"
      default: result.append(character)
      }
    }
    return result.first == "." ? "\\&" + result : result
  }
}
