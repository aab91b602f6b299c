import Foundation
import Storage
import TestSupport
import Testing

@testable import Documents
@testable import Touchstone

/// What observers and live queries hear of another process by themselves.
@Suite("Watching other processes", .serialized) struct OtherProcessTests {
  /// What was heard, in order.
  private final class Heard: Sendable {
    private let batches = Lock<[DatabaseChange]>([])

    func add(_ change: DatabaseChange) { batches.withLock { $0.append(change) } }
    var changes: [DocumentChange] { batches.withLock { $0 }.flatMap(\.changes) }
    var missed: [UInt64] { batches.withLock { $0 }.compactMap(\.missedSince) }

    /// Waits until `condition` holds; false after ten minutes.
    func wait(_ condition: (Heard) -> Bool) -> Bool {
      let deadline = Date(timeIntervalSinceNow: 600)
      while !condition(self) {
        if Date() > deadline { return false }
        usleep(2_000)
      }
      return true
    }

    func has(_ id: String, _ kind: DocumentChange.Kind) -> Bool {
      changes.contains { $0.documentID == id && $0.kind == kind }
    }
  }

  private func open(
    _ engine: EngineName, _ directory: TemporaryDirectory, watches: Bool = true, isReadOnly: Bool = false
  ) throws -> Database {
    var options = try options(engine, durability: .normal)
    options.watchesOtherProcesses = watches
    options.isReadOnly = isReadOnly
    return try Database.open("test", in: directory.path, options: options)
  }

  /// Has another process change documents, and waits for it.
  private func change(_ engine: EngineName, _ directory: TemporaryDirectory, _ ids: String...) throws {
    let child = try startChild(.database, ["documents", "change", "\(engine)", directory.path] + ids)
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
  }

  @Test("saves, purges, expirations and purged branches are heard without a write", arguments: sharedEngines)
  func everything(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let database = try open(engine, directory)
    for id in ["saved", "purged", "expired", "again", "both"] { try database.save(id, ["ours": 1]) }
    try database.apply(PulledRevision(id: "both", history: ["1-side"], body: ["side": 1]))
    let heard = Heard()
    let one = Heard()
    let tokens = [
      try database.observe { heard.add($0) },
      try database.observe("purged") { one.add(DatabaseChange(changes: [$0], missedSince: nil)) },
    ]
    try change(engine, directory, "saved", "-purged", "!expired", "-again", "again", "both-branch", "new")
    expect(
      heard.wait {
        $0.has("saved", .saved) && $0.has("purged", .purged) && $0.has("expired", .expired)
          && $0.has("again", .saved) && $0.has("both", .saved) && $0.has("new", .saved)
      }, "\(heard.changes)")
    expect(one.wait { $0.has("purged", .purged) })
    expect(heard.missed, equals: [])
    let branch = heard.changes.last { $0.documentID == "both" }
    try expect(branch?.revisionID, equals: (try database.document("both")?.revisionID))
    expect(branch?.isConflicted, equals: false)
    // What was heard isn't heard again, and nobody hears of the own purges twice.
    let count = heard.changes.count
    try database.purge("new")
    try database.noticeChanges()
    expect(heard.wait { $0.changes.count == count + 1 })
    try database.noticeChanges()
    usleep(100_000)
    expect(heard.changes.count == count + 1 && heard.has("new", .purged), "\(heard.changes)")
    try expect(storageFaults(database), equals: [])
    try expect(database.check(deep: true), equals: [])
    for token in tokens { token.cancel() }
    try database.close()
  }

  @Test("a live query runs again", arguments: sharedEngines)
  func liveQuery(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let database = try open(engine, directory)
    try database.save("a", ["ours": 1])
    let counts = Lock<[Int]>([])
    let live = try database.observe(database.query("SELECT META().id FROM _")) { outcome in
      if case .success(let rows) = outcome { counts.withLock { $0.append(rows.count) } }
    }
    func wait(for count: Int) -> Bool {
      for _ in 0..<15_000 {
        if counts.withLock({ $0.last }) == count { return true }
        usleep(2_000)
      }
      return false
    }
    expect(wait(for: 1))
    try change(engine, directory, "b", "c")
    expect(wait(for: 3))
    try change(engine, directory, "-a")
    expect(wait(for: 2))
    live.cancel()
    try database.close()
  }

  @Test("a process that writes meanwhile hears all, and of nothing twice", arguments: sharedEngines)
  func bothWrite(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let database = try open(engine, directory)
    for number in 0..<100 { try database.save("theirs\(number)", ["n": 1]) }
    let heard = Heard()
    let token = try database.observe { heard.add($0) }
    let child = try startChild(
      .database, ["documents", "change", "\(engine)", directory.path] + (0..<100).map { "-theirs\($0)" })
    var number = 0
    while child.outputText.split(separator: "\n").count < 2 {
      try database.save("ours\(number)", ["n": 1])
      if number % 2 == 0 { try database.purge("ours\(number)") }
      number += 1
    }
    try expect(child.wait(), equals: .exited(0), "\(child.errorText)")
    let purged = (number + 1) / 2
    expect(heard.wait { $0.changes.count { $0.kind == .purged } >= 100 + purged || !$0.missed.isEmpty })
    usleep(200_000)
    if heard.missed.isEmpty {
      let ids = heard.changes.filter { $0.kind == .purged }.map(\.documentID)
      expect(ids.count == 100 + purged && Set(ids).count == ids.count)
    }
    token.cancel()
    try database.close()
  }

  @Test("a purge isn't reported after the save that made the document again", arguments: sharedEngines)
  func madeAgain(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let database = try open(engine, directory, watches: false)
    try database.store.recordPurges()
    for id in ["a", "b", "c"] { try database.save(id, ["n": 1]) }
    let heard = Heard()
    let token = try database.observe { heard.add($0) }
    try change(engine, directory, "-a", "-b", "!c")
    try database.save("a", ["n": 2])
    try database.save("c", ["n": 2])
    try database.delete("c")
    expect(
      heard.wait { $0.has("a", .saved) && $0.changes.contains { $0.documentID == "c" && $0.isDeleted } })
    try database.noticeChanges()
    expect(heard.wait { $0.has("b", .purged) })
    let unstored = heard.changes.filter { $0.kind != .saved }.map(\.documentID)
    expect(unstored, equals: ["b"])
    token.cancel()
    try database.close()
  }

  @Test("the entry of a purged branch, as earlier builds wrote it, is read", arguments: sharedEngines)
  func entryOfBranch(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let database = try open(engine, directory)
    try database.save("a", ["n": 1])
    try database.store.recordPurges()
    let id = Array("a".utf8)
    try database.store.writing { writer in try id.withUnsafeBytes { try writer.recordPurge($0, .branch) } }
    let purged = try database.read { try $0.purgedDocuments(after: 0) }
    expect(purged.ids == [id] && purged.newest == 1 && !purged.isIncomplete)
    try expect(database.check(deep: true), equals: [])
    try database.close()
  }

  @Test("more purges than are recorded are reported as missed", arguments: sharedEngines)
  func tooMany(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let database = try open(engine, directory, watches: false)
    let count = Int(PurgeRecord.kept) + 20
    try database.store.recordPurges()
    try database.inBatch { for number in 0..<count { try database.save("d\(number)", ["n": 1]) } }
    let heard = Heard()
    let token = try database.observe { heard.add($0) }
    // Own purges aren't missed, however many they are.
    try database.inBatch { for number in 0..<count { try database.purge("d\(number)") } }
    try database.noticeChanges()
    expect(heard.wait { $0.changes.count == count })
    expect(heard.missed, equals: [])
    try database.inBatch { for number in 0..<count { try database.save("d\(number)", ["n": 1]) } }
    expect(heard.wait { $0.changes.count == 2 * count })
    try change(engine, directory, "-d0")
    let child = try startChild(
      .database, ["documents", "change", "\(engine)", directory.path] + (1..<count).map { "-d\($0)" })
    try expect(child.wait(), equals: .exited(0), "\(child.errorText)")
    try database.noticeChanges()
    expect(heard.wait { !$0.missed.isEmpty })
    expect(heard.wait { $0.changes.count == 2 * count + Int(PurgeRecord.kept) }, "\(heard.changes.count)")
    expect(heard.missed, equals: [UInt64(2 * count)])
    let keyspace = try #require(try database.engine.read { try $0.keyspace(named: PurgeRecord.keyspace) })
    try expect(database.engine.read { try $0.count(of: keyspace) }, equals: Int(PurgeRecord.kept))
    token.cancel()
    try database.close()
  }

  @Test("without the option nothing is recorded, and a database for reading only hears of saves")
  func readOnly() throws {
    let directory = TemporaryDirectory()
    let database = try open(.sqlite, directory, watches: false)
    try database.save("a", ["n": 1])
    try database.purge("a")
    try expect(database.engine.read { try $0.keyspace(named: PurgeRecord.keyspace) } == nil)
    try database.close()
    let reader = try open(.sqlite, directory, isReadOnly: true)
    try expect(reader.engine.read { try $0.keyspace(named: PurgeRecord.keyspace) } == nil)
    let heard = Heard()
    let token = try reader.observe { heard.add($0) }
    try change(.sqlite, directory, "b")
    expect(heard.wait { $0.has("b", .saved) })
    token.cancel()
    try reader.close()
  }

  @Test(
    "the thread and its descriptor go with the last observer, and with the database", arguments: sharedEngines
  )
  func resources(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let database = try open(engine, directory)
    let number = try FileManager.default.attributesOfItem(atPath: database.path)[.systemFileNumber]
    let inode = String(try #require(number as? Int), radix: 16)
    /// The descriptors that watch this database. Threads of earlier tests may still be closing theirs.
    func watches() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
        let text = try? String(contentsOfFile: "/proc/self/fdinfo/\($0)", encoding: .utf8)
        return text?.contains("inotify wd:") ?? false && text?.contains(" ino:\(inode) ") ?? false
      }
    }
    func settle(_ count: Int) throws -> Bool {
      for _ in 0..<5_000 {
        if try watches() == count { return true }
        usleep(2_000)
      }
      return false
    }
    try expect(watches(), equals: 0)
    for _ in 0..<3 {
      let token = try database.observe { _ in }
      try expect(settle(1))
      token.cancel()
      try expect(settle(0))
    }
    let token = try database.observe { _ in }
    try expect(settle(1))
    try database.close()
    try expect(settle(0))
    withExtendedLifetime(token) {}
  }
}
