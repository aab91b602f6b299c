/// The library's messages name its own calls, for apps. The command has other words for them.
enum CommandWords {
  /// Returns the message with the words of the command.
  static func of(_ message: String) -> String {
    table.reduce(message) { message, entry in
      guard let range = message.firstRange(of: entry.library) else { return message }
      return message.replacingCharacters(in: range, with: entry.command)
    }
  }

  private static let table: [(library: String, command: String)] = [
    (", or use lastWriteWins", ", or leave out --rev, so that the last write wins"),
    ("make it first, or set makesParents", "make it first"),
    ("or set a higher Query.Options.rowLimit", "or use a higher --row-limit"),
    (", or set a higher Query.Options.memoryLimit", ""),
    (", or set a higher Query.Options.temporaryFileLimit", ""),
    ("has no value; pass one to run", "has no value; give it one with --param, or with .param in the shell"),
    (
      "put a Blob into the document that was made from the content or read from an open database, or store the "
        + "content with makeBlob first",
      "import it with the files of an export (--blobs DIR), or give the content with put --attachment NAME=FILE"
    ),
  ]
}

extension String {
  fileprivate func replacingCharacters(in range: Range<String.Index>, with text: String) -> String {
    String(self[..<range.lowerBound]) + text + String(self[range.upperBound...])
  }
}
