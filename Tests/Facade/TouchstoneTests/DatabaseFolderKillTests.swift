import Foundation
import TestSupport
import Testing
import Touchstone

/// Replacing and installing, killed before one of their changes to files, or at a random moment.
@Suite("Killed replacing and installing", .serialized) struct DatabaseFolderKillTests {
  private struct Fixture {
    let directory = TemporaryDirectory()
    let engine: EngineName
    let folder: DatabaseFolder
    let source: String
    let testKey: UserKey?
    let oldHasBlob: Bool

    /// The old database is on `engine`, and the new one on the next engine.
    init(_ engine: EngineName, oldHasBlob: Bool = true) throws {
      self.engine = engine
      self.oldHasBlob = oldHasBlob
      folder = try DatabaseFolder(directory.file("f"))
      let next = someEngines[((someEngines.firstIndex(of: engine) ?? 0) + 1) % someEngines.count]
      source = directory.file("new")
      testKey = try key(of: .sqlcipher)
      try makeDatabase(next, at: source, "new")
      try makeDatabase(engine, at: directory.file("old"), "old", hasBlob: oldHasBlob)
    }

    /// Makes the folder anew, with the old database or without.
    func reset(_ command: String) throws {
      let manager = FileManager.default
      try? manager.removeItem(atPath: folder.path)
      try manager.createDirectory(atPath: folder.path, withIntermediateDirectories: false)
      guard command == "replace" else { return }
      try manager.copyItem(
        atPath: directory.file("old.touchstone"), toPath: folder.path + "/a.touchstone")
    }

    func start(_ command: String, diesAt last: Int? = nil) throws -> ChildProcess {
      try startChild(
        .database,
        ["folder"] + (last.map { ["dies", "\($0)"] } ?? []) + [command, folder.path, "a"]
          + (["replace", "install"].contains(command) ? [source] : []) + [engine.rawValue])
    }

    /// The number of changes to files that a process has made, as it says at its end.
    static func changes(_ whole: ChildProcess) throws -> Int {
      let line = whole.outputText.split(separator: "\n").first { $0.hasSuffix(" changes") }
      return try #require(line.flatMap { Int($0.dropLast(8)) }, "\(whole.outputText) \(whole.errorText)")
    }

    /// The marker of the database after a kill; nil if there is none. Either an open or a list tidies up.
    func state(lists: Bool, _ comment: Comment) throws -> String? {
      if lists {
        let names = try folder.names()
        try expectNoLeftovers(folder.path, names.map { $0 + ".touchstone" }, comment)
      }
      guard folder.exists("a") else {
        // Nothing has the name, so it can be given again.
        if !lists { _ = try folder.names() }
        try expect(directory.names("f"), equals: [], comment)
        return nil
      }
      let isEncrypted = try Database.isEncrypted("a", in: folder.path)
      let database = try folder.openExisting("a", options: DatabaseOptions(key: isEncrypted ? testKey : nil))
      let isOld = try database.document("marker")?["marker"].string == "old"
      let found = try marker(of: database, hasBlob: !isOld || oldHasBlob)
      try expectNoLeftovers(folder.path, ["a.touchstone"], comment)
      return found
    }
  }

  @Test(
    "leave the old database or the new one, whole, and no garbage", arguments: someEngines,
    ["replace", "install"])
  func kills(_ engine: EngineName, _ command: String) throws {
    let fixture = try Fixture(engine)
    var random = SeededGenerator(seed: testSeed)
    try fixture.reset(command)
    let whole = try fixture.start(command)
    try whole.waitForOutput()
    let begun = Date()
    try expect(whole.wait(), equals: .exited(0), "\(whole.outputText)")
    let seconds = Date().timeIntervalSince(begun)
    let changes = try Fixture.changes(whole)
    try expect(fixture.state(lists: true, "whole"), equals: "new")
    // Over all engines, 200 moments of each command: half of them before a change of files, mostly near the end, where
    // the names change.
    let rounds = isLong ? 40 : 6
    var ends = (old: 0, new: 0)
    for round in 0..<rounds {
      try fixture.reset(command)
      var child: ChildProcess
      let moment: String
      if round % 2 == 0 {
        let range = min(changes, [4, 24, changes][round / 2 % 3])
        let last = changes - 1 - Int.random(in: 0..<range, using: &random)
        moment = "before change \(last) of \(changes)"
        child = try fixture.start(command, diesAt: last)
        try expect(child.wait(), equals: .signalled(9), "\(child.outputText)")
      } else {
        let delay = Double.random(in: 0...1.1, using: &random) * seconds
        moment = "after \(delay) of \(seconds) s"
        child = try fixture.start(command)
        try child.waitForOutput()
        usleep(UInt32(delay * 1e6))
        child.kill()
        try child.wait()
      }
      expect(!child.outputText.contains("failed"), "\(child.outputText)")
      let comment: Comment = "\(engine) \(command) killed \(moment), round \(round)"
      let found = try fixture.state(lists: round % 4 < 2, comment)
      expect(found == "new" || found == (command == "replace" ? "old" : nil), comment)
      expect(found == "new" || !child.outputText.contains("done"), comment)
      found == "new" ? (ends.new += 1) : (ends.old += 1)
    }
    print("\(engine) \(command): \(ends.old) times the old state, \(ends.new) the new one")
  }

  @Test("twice leave what the third one removes", arguments: [EngineName.sqlite, .lmdbEncrypted])
  func twice(_ engine: EngineName) throws {
    let fixture = try Fixture(engine)
    try fixture.reset("replace")
    let whole = try fixture.start("replace")
    try whole.wait()
    let changes = try Fixture.changes(whole)
    for last in stride(from: changes / 2, to: changes, by: isLong ? 1 : 9) {
      try fixture.reset("replace")
      for moment in [last, min(changes - 1, last + 3)] {
        let child = try fixture.start("replace", diesAt: moment)
        _ = try child.wait()
        expect(!child.outputText.contains("failed"), "\(child.outputText)")
      }
      try fixture.folder.replace("a", with: fixture.source, key: fixture.testKey)
      try expectNoLeftovers(fixture.folder.path, ["a.touchstone"], "change \(last)")
      try expect(fixture.state(lists: false, "change \(last)"), equals: "new")
    }
  }

  @Test("leave no blobs of the new database to an old one that had none", arguments: someEngines)
  func noBlobs(_ engine: EngineName) throws {
    let fixture = try Fixture(engine, oldHasBlob: false)
    try fixture.reset("replace")
    let whole = try fixture.start("replace")
    try whole.wait()
    let changes = try Fixture.changes(whole)
    var old = 0
    // The last changes: the description gets its name, and the old files are removed. A directory has many.
    for last in max(0, changes - (isLong || !isShared(engine) ? 40 : 12))..<changes {
      try fixture.reset("replace")
      let child = try fixture.start("replace", diesAt: last)
      try expect(child.wait(), equals: .signalled(9), "\(child.outputText)")
      guard try fixture.state(lists: false, "change \(last)") == "old" else { continue }
      old += 1
      let blobs = try? fixture.directory.names("f/a.touchstone/Attachments")
      expect(blobs ?? [], equals: [], "change \(last)")
    }
    expect(old > 0)
  }

  @Test(
    "leave a database that is moved or deleted whole, under one name or none", arguments: ["move", "delete"])
  func moving(_ command: String) throws {
    let fixture = try Fixture(.lmdb)
    var last = 0
    while true {
      try fixture.reset("replace")
      let child = try fixture.start(command, diesAt: last)
      let ending = try child.wait()
      expect(!child.outputText.contains("failed"), "\(child.outputText)")
      let names = try fixture.folder.names()
      expect(names == ["a"] || names == (command == "move" ? ["b"] : []), "\(command) killed at \(last)")
      try expectNoLeftovers(fixture.folder.path, names.map { $0 + ".touchstone" })
      for name in names { try expect(marker(of: try fixture.folder.openExisting(name)), equals: "old") }
      guard ending == .signalled(9) else {
        expect(names, equals: (command == "move" ? ["b"] : []))
        break
      }
      last += 1
    }
    expect(last > 1)
  }

  @Test("make one database if several processes install it at once", arguments: [EngineName.sqlite, .lmdb])
  func atOnce(_ engine: EngineName) throws {
    let fixture = try Fixture(engine)
    for _ in 0..<(isLong ? 20 : 3) {
      try fixture.reset("install")
      let children = try (0..<4).map { _ in try fixture.start("install") }
      for child in children { try expect(child.wait() != .signalled(9)) }
      let texts = children.map(\.outputText)
      expect(texts.count { $0.contains("done") }, equals: 1, "\(texts)")
      expect(texts.count { $0.contains("failed") }, equals: 3, "\(texts)")
      try expect(fixture.state(lists: true, "at once"), equals: "new")
    }
  }

  @Test(
    "leave one whole database if several processes replace it at once", arguments: [EngineName.sqlite, .lmdb])
  func replacedAtOnce(_ engine: EngineName) throws {
    let fixture = try Fixture(engine)
    for _ in 0..<(isLong ? 20 : 3) {
      try fixture.reset("replace")
      let children = try (0..<4).map { _ in try fixture.start("replace") }
      for child in children { try expect(child.wait() != .signalled(9)) }
      let texts = children.map(\.outputText)
      expect(texts.contains { $0.contains("done") }, "\(texts)")
      // Whoever comes while another one replaces it is refused.
      expect(texts.allSatisfy { $0.contains("done") || $0.contains("close it there first") }, "\(texts)")
      try expect(fixture.state(lists: true, "at once"), equals: "new")
    }
  }
}
