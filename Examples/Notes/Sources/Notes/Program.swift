// The command line: runs a command, and tells its outcome by output and exit status.

import Dispatch
import Foundation
import Touchstone

let usage = """
  usage: notes add TEXT… [--tag TAG]… [--photo FILE]   saves a note and prints its ID
         notes list [--tag TAG] [--archive]            prints the notes, the latest first
         notes find WORDS…                             prints the notes with these words, the best first
         notes edit ID TEXT…                           changes a note's text
         notes archive ID                              moves a note to the archive
         notes remove ID                               deletes a note
         notes watch                                   prints how the list changes, until it is interrupted
         notes selftest                                does all of this at once, in databases of its own
  exit status: 0 done, 1 failed, 2 usage, 3 not found, 4 busy: try again later, 130 interrupted
  """

struct UsageError: Error {}

/// The commands, and how many words each needs at least.
let commands = [
  "add": 2, "list": 1, "find": 2, "edit": 3, "archive": 2, "remove": 2, "watch": 1, "selftest": 1,
]

@main struct Program {
  static func main() async {
    // An interrupt cancels the task: a write is rolled back, a watch ends.
    let task = Task { try await run(CommandLine.arguments.dropFirst()) }
    signal(SIGINT, SIG_IGN)
    let interrupt = DispatchSource.makeSignalSource(signal: SIGINT, queue: .main)
    interrupt.setEventHandler { task.cancel() }
    interrupt.resume()
    defer { interrupt.cancel() }
    do { try await task.value } catch is UsageError { fail(2, usage) } catch is CancellationError {
      fail(130, "notes: interrupted")
    } catch let error as any TouchstoneError {
      fail(error.kind == .notFound ? 3 : error.canRetry ? 4 : 1, "notes: \(error.description)")
    } catch { fail(1, "notes: \(error)") }
  }

  static func fail(_ status: Int32, _ message: String) -> Never {
    FileHandle.standardError.write(Data("\(message)\n".utf8))
    exit(status)
  }

  static func run(_ arguments: ArraySlice<String>) async throws {
    var (words, tags, photo, inArchive) = ([String](), [String](), String?.none, false)
    var rest = arguments.makeIterator()
    while let argument = rest.next() {
      switch argument {
      case "--tag", "--photo":
        guard let value = rest.next() else { throw UsageError() }
        if argument == "--tag" { tags.append(value) } else { photo = value }
      case "--archive": inArchive = true
      default: words.append(argument)
      }
    }
    guard let command = words.first, let count = commands[command], words.count >= count else {
      throw UsageError()
    }
    if command == "selftest" { return try await SelfTest.run() }
    // In the user's place for data, such as ~/.local/share/notes. A watch sees what other processes write.
    let folder = try DatabaseFolder(options: DatabaseOptions(watchesOtherProcesses: true))
    let notebook = try Notebook(folder)
    let text = words.dropFirst().joined(separator: " ")
    switch command {
    case "add":
      let blob = try photo.map { try Blob(contentsOfFile: $0) }
      print(try await notebook.add(Note(text: text, tags: tags, photo: blob)))
    case "list":
      for row in try await notebook.list(tag: tags.first, inArchive: inArchive) { print(row) }
    case "find": for row in try await notebook.find(text) { print(row) }
    case "edit":
      let text = words[2...].joined(separator: " ")
      try await notebook.update(words[1]) { ($0.text, $0.edited) = (text, Date()) }
    case "archive": try await notebook.archive(text)
    case "remove": try await notebook.remove(text)
    default: try await watch(notebook)
    }
    try folder.close()
  }

  static func watch(_ notebook: Notebook) async throws {
    var rows: [NoteRow] = []
    for try await changes in try notebook.listChanges() {
      for index in changes.removed { print("removed: ", rows[index]) }
      try changes.apply(to: &rows) { try $0.decode() }
      for index in changes.inserted { print("inserted:", rows[index]) }
      for pair in changes.moved { print("moved:   ", rows[pair.new].id, "from \(pair.old) to \(pair.new)") }
      for pair in changes.updated { print("updated: ", rows[pair.new]) }
      fflush(nil)
    }
  }
}
