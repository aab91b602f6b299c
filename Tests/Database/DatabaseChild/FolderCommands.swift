// Commands of the child process that the tests of folders start, and kill.
//
//   folder [dies N] replace|install FOLDER NAME SOURCE ENGINE
//       prints "begun", does it with the options of the engine, prints the number of its changes to files and "done";
//       `dies` kills the process before a change, counted from 0 after "begun"
//   folder [dies N] delete|move FOLDER NAME ENGINE
//       the same; `move` gives the name "b"
//   folder make FOLDER NAME ENGINE
//       makes a database at durability full, saves a document, and prints whether the folder was synced
//   folder hold FOLDER NAME ENGINE
//       opens, prints "open", and waits until it is killed

import ChildSupport
import SystemCalls
import TestSupport
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

enum FolderCommands: ChildCommands {
  static let name = "folder"
  static let usage =
    "[dies N] replace|install FOLDER NAME SOURCE ENGINE | [dies N] delete|move|make|hold FOLDER NAME ENGINE"

  static func run(_ arguments: [String]) throws {
    var words = arguments[...]
    var last: Int32?
    if words.first == "dies" {
      last = words.dropFirst().first.flatMap { Int32($0) }
      words = words.dropFirst(2)
    }
    guard words.count >= 4, let command = words.popFirst(), let path = words.popFirst(),
      let name = words.popFirst(), let engine = words.popLast()
    else { throw WrongUsage() }
    let folder = try DatabaseFolder(path, options: try options(EngineName(rawValue: engine)))
    if command == "hold" {
      let database = try folder.openExisting(name)
      say("open")
      while true { pause() }
      _ = database
    }
    if command == "make" {
      var status = stat()
      guard stat(path, &status) == 0 else { throw WrongUsage() }
      var options = try options(EngineName(rawValue: engine))
      options.durability = .full
      let database = try Database.open(name, in: path, options: options)
      try database.save("a", ["n": 1])
      return say(has_synced_directory(UInt(status.st_ino)) != 0 ? "synced" : "not synced")
    }
    let source = words.first ?? ""
    let key = try key(of: .sqlcipher)
    say("begun")
    let before = changed_files()
    if let last { die_at_change(before + last) }
    switch command {
    case "replace": try folder.replace(name, with: source, key: key)
    case "install": try folder.install(name, from: source, unlessExists: false, key: key)
    case "delete": try folder.delete(name)
    case "move": try folder.move(name, to: "b")
    default: throw WrongUsage()
    }
    say("\(changed_files() - before) changes")
    say("done")
  }
}
