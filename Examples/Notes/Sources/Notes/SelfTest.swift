// All at once: writers, races, cancelled tasks and a watcher. Then what is left is compared with what was done.

import Foundation
import Touchstone

enum SelfTest {
  struct Failure: Error, CustomStringConvertible { let description: String }

  private static let (writers, rounds, last) = (4, 10, "the last note")

  static func run() async throws {
    try await run("in memory", Notebook(current: .inMemory(), archived: .inMemory()))
    let path = NSTemporaryDirectory() + "/notes-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: path) }
    for engine: EngineName in [.sqlite, .lmdb] {
      let folder = try DatabaseFolder(
        "\(path)/\(engine)", options: .init(engine: engine, watchesOtherProcesses: true))
      try await run("on \(engine)", Notebook(folder))
    }
  }

  private static func run(_ place: String, _ notebook: Notebook) async throws {
    async let watched = watch(notebook)
    async let late = addAndCancel(notebook)
    let shared = try await notebook.add(Note(text: "a note that all writers change"))
    var archivedCount = try await withThrowingTaskGroup(of: Int.self) { group in
      for writer in 0..<writers { group.addTask { try await write(notebook, "writer\(writer)", shared) } }
      return try await group.reduce(0, +)
    }
    // A crash in the middle of a move leaves the note in both databases. The next move completes it.
    let id = try await notebook.add(Note(text: "the newer text"))
    try await notebook.archived.write { archive in
      var copy = Note(id: id, text: "the older text")
      try archive.save(&copy)
    }
    try await notebook.archive(id)
    archivedCount += 1
    let lateCount = try await late
    _ = try await notebook.add(Note(text: last))

    let (rows, archived) = (try await notebook.list(), try await notebook.list(inArchive: true))
    try expect(try await watched == rows, "the watcher saw another list")
    try expect(archived.count == archivedCount, "\(archived.count) archived notes, not \(archivedCount)")
    try expect(archived.contains { $0.text == "the newer text" }, "the second move changed nothing")
    try expect(try await notebook.list(tag: "late").count == lateCount, "not \(lateCount) late notes")
    let edited = try await notebook.find("edited").count
    try expect(rows.count == edited + lateCount + 2, "\(rows.count) notes, \(edited) edited")
    let tags = rows.first { $0.id == shared }?.tags ?? []
    try expect(tags.count == writers * rounds, "\(tags.count) changes of one note are left")
    for row in archived where row.photo != nil {
      let note = try await notebook.archived.read { try $0.document(row.id) }
      try expect(try note?.blob(forKey: "photo")?.content() == Array(row.text.utf8), "another photo")
    }
    for database in [notebook.current, notebook.archived] {
      try expect(try database.check(deep: true).isEmpty, "\(database.name) has faults")
      try database.close()
    }
    print("\(place): ok: \(rows.count) notes, \(archived.count) archived, \(lateCount) of 20 cancelled saved")
  }

  private static func expect(_ condition: Bool, _ message: String) throws {
    if !condition { throw Failure(description: message) }
  }

  /// Adds notes and does something with each. Returns how many it has archived.
  private static func write(_ notebook: Notebook, _ name: String, _ shared: String) async throws -> Int {
    var archivedCount = 0
    for round in 0..<rounds {
      let text = "note \(round) of \(name)"
      let id = try await notebook.add(Note(text: text, photo: Blob(text.utf8)))
      switch round % 3 {
      case 0: try await notebook.update(id) { $0.text += ", edited" }
      case 1: try await notebook.remove(id)
      default:
        // Two tasks race for the note. One of them gets it.
        async let isArchived = isFirst { try await notebook.archive(id) }
        async let isRemoved = isFirst { try await notebook.remove(id) }
        let outcome = (archived: try await isArchived, removed: try await isRemoved)
        try expect(outcome.archived != outcome.removed, "\(outcome)")
        if outcome.archived { archivedCount += 1 }
      }
      try await notebook.update(shared) { $0.tags.append("\(name)-\(round)") }
    }
    return archivedCount
  }

  private static func isFirst(_ work: @Sendable () async throws -> Void) async throws -> Bool {
    try await Task.sleep(for: .microseconds(.random(in: 0..<1_000)))
    do { try await work() } catch let error as any TouchstoneError where error.kind == .notFound {
      return false
    }
    return true
  }

  /// Adds notes in tasks that are cancelled sooner or later. Returns how many have saved their note.
  private static func addAndCancel(_ notebook: Notebook) async throws -> Int {
    var count = 0
    for delay in 0..<20 {
      let task = Task { try await notebook.add(Note(text: "late", tags: ["late"])) }
      try await Task.sleep(for: .microseconds(delay * 500))
      task.cancel()
      do {
        _ = try await task.value
        count += 1
      } catch is CancellationError {}
    }
    return count
  }

  /// Applies the differences of the list until the last note is in it. Returns the list.
  private static func watch(_ notebook: Notebook) async throws -> [NoteRow] {
    var rows: [NoteRow] = []
    for try await changes in try notebook.listChanges() {
      try changes.apply(to: &rows) { try $0.decode() }
      if rows.contains(where: { $0.text == last }) { break }
    }
    return rows
  }
}
