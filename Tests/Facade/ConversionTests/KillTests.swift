import TestSupport

/// Operations that are killed at random moments: afterwards the database is the old one or the new one, whole.
@Suite("Killed operations", .serialized) struct KillTests {
  enum Operation: String, CaseIterable, Sendable {
    case rekey, rotate, encrypt, decrypt, convertToLMDB, convertFromLMDB, convertEncrypted, copy
    case rotateLMDB, encryptLMDB

    var engine: EngineName {
      switch self {
      case .rekey, .rotate, .decrypt: .sqlcipher
      case .encrypt, .convertToLMDB, .convertEncrypted, .copy: .sqlite
      case .convertFromLMDB, .encryptLMDB: .lmdb
      case .rotateLMDB: .lmdbEncrypted
      }
    }

    func arguments(_ path: String, _ target: String) -> [String] {
      switch self {
      case .rekey, .rotate, .encrypt, .decrypt: [rawValue, path]
      case .rotateLMDB: ["rotate", path]
      case .encryptLMDB: ["encrypt", path]
      case .convertToLMDB: ["convert", path, "lmdb"]
      case .convertFromLMDB: ["convert", path, "sqlite"]
      case .convertEncrypted: ["convert", path, "sqlcipher"]
      case .copy: ["copy", path, target]
      }
    }
  }

  @Test("leave the old database or the new one, with its key and its blobs", arguments: Operation.allCases)
  func kills(_ operation: Operation) throws {
    let directory = TemporaryDirectory()
    let original = directory.path + "/original.touchstone"
    try makeFixture(operation.engine, at: original, documents: 300)
    let before = try Contents(of: original, key: key(of: operation.engine))
    let path = directory.path + "/a.touchstone"
    let target = directory.path + "/b.touchstone"
    var ends = (old: 0, new: 0)
    // As long as it takes, at first; then a part of that.
    var longest = 0.0
    var random = SeededGenerator(seed: testSeed)
    for round in 0..<(isLong ? 200 : 3) + 1 {
      try? FileManager.default.removeItem(atPath: path)
      try? FileManager.default.removeItem(atPath: target)
      try FileManager.default.copyItem(atPath: original, toPath: path)
      let child = try startChild(.database, ["conversion"] + operation.arguments(path, target))
      try child.waitForOutput()
      let begun = Date()
      if round == 0 {
        try expect(child.wait(), equals: .exited(0), "\(child.outputText)")
        longest = Date().timeIntervalSince(begun)
      } else {
        usleep(UInt32(Double.random(in: 0...1.1, using: &random) * longest * 1e6))
        child.kill()
        try child.wait()
        expect(!child.outputText.contains("failed"), "\(child.outputText)")
      }
      let isDone = child.outputText.contains("done")
      let comment: Comment = "round \(round) of \(operation) with seed \(testSeed)"
      if operation == .copy {
        let isThere = Database.exists(target)
        expect(isThere || !isDone, comment)
        // The name is that of a whole database, or of nothing.
        expect(isThere, equals: FileManager.default.fileExists(atPath: target), comment)
        if isThere { try expect(Contents(of: target, key: nil), equals: before, comment) }
        isThere ? (ends.new += 1) : (ends.old += 1)
        // The next one removes what was left.
        try? FileManager.default.removeItem(atPath: target)
        try Database.copy(path, to: target)
        try expect(!directory.names().contains { $0.hasPrefix(".") }, comment)
        continue
      }
      let keys: [UserKey?] = try Database.isEncrypted(path) ? [oldKey(), newKey()] : [nil]
      var opened: [Contents] = []
      for key in keys {
        do {
          opened.append(try Contents(of: path, key: key))
          let isNew = try isNew(operation, path, key)
          expect(isNew || !isDone, comment)
          isNew ? (ends.new += 1) : (ends.old += 1)
        } catch let error as DatabaseError where error.code == .wrongKey && keys.count > 1 {}
      }
      expect(opened, equals: [before], comment)
      let names = try directory.names("a.touchstone")
      expect(names.filter { $0.hasPrefix("data-") && !$0.hasSuffix("-lock") }.count, equals: 1, "\(names)")
      try expect(
        names.filter { $0.hasPrefix("key") }.count, equals: (try Database.isEncrypted(path) ? 1 : 0),
        "\(names)")
      expect(names.filter { $0.hasPrefix("Attachments") }.count, equals: 1, "\(names)")
      expect(!names.contains { $0.contains(".new-") }, "\(names)")
    }
    print("\(operation): \(ends.old) times the old one, \(ends.new) the new one")
    expect(ends.new > 0)
  }

  private func isNew(_ operation: Operation, _ path: String, _ key: UserKey?) throws -> Bool {
    let database = try Database.open(path, options: DatabaseOptions(creation: .openExisting, key: key))
    defer { try? database.close() }
    switch operation {
    case .rekey, .rotate, .rotateLMDB:
      try database.close()
      let newKey = try newKey()
      do {
        try Database.open(path, options: DatabaseOptions(key: newKey)).close()
        return true
      } catch let error as DatabaseError where error.code == .wrongKey { return false }
    default: return database.engineName != operation.engine
    }
  }
}
