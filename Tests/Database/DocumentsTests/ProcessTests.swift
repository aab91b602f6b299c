import TestSupport

@testable import Touchstone

/// Two processes on one database, and processes that are killed.
@Suite("Several processes", .serialized) struct ProcessTests {
  private let directory = TemporaryDirectory()

  /// Has another process write so many documents, and waits for it.
  static func write(_ engine: EngineName, _ directory: TemporaryDirectory, _ name: String, _ count: Int)
    throws
  {
    let child = try startChild(.database, "documents", "write", "\(engine)", directory.path, name, "\(count)")
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
  }

  private func open(_ engine: EngineName, _ directory: TemporaryDirectory) throws -> Database {
    try Database.open("test", in: directory.path, options: options(engine, durability: .normal))
  }

  @Test(
    "a process that has hardly any file descriptors left gets an error or its document",
    arguments: someEngines)
  func scarceDescriptors(_ engine: EngineName) throws {
    let database = try open(engine, directory)
    try database.close()
    var saved = 0
    for free in isLong ? Array(0..<24) : [0, 3, 4, 5, 8, 10, 23] {
      let child = try startChild(
        .database, "documents", "scarce", "\(engine)", directory.path, "\(free)")
      try expect(child.wait(), equals: .exited(0), "\(free): \(child.errorText)")
      expect(["saved\n", "ioError\n", "busy\n"].contains(child.outputText), "\(free): \(child.outputText)")
      if child.outputText == "saved\n" { saved += 1 }
    }
    expect(saved > 0)
  }

  @Test("two processes add properties and documents, and none is lost", arguments: sharedEngines)
  func twoWriters(_ engine: EngineName) throws {
    let database = try open(engine, directory)
    let count = isLong ? 900 : 120
    let child = try startChild(
      .database, "documents", "write", "\(engine)", directory.path, "theirs", "\(count)")
    for number in 0..<count {
      try database.inBatch {
        let total = try database.document("total")?["n"].int ?? 0
        try database.save(
          "ours-\(number)", ["n": .int(Int64(number)), "ourskey\(number)": .string("ourskey\(number)")])
        try database.save("total", ["n": .int(total + 1)])
      }
    }
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
    try expect(database.document("total")?["n"].int, equals: Int64(2 * count))
    try expect(database.documentCount, equals: 2 * count + 1)
    try expect(database.lastSequence, equals: UInt64(4 * count))
    for name in ["ours", "theirs"] {
      for number in 0..<count {
        let expected: JSONValue = [
          "n": .int(Int64(number)), "\(name)key\(number)": .string("\(name)key\(number)"),
        ]
        try expect(database.document("\(name)-\(number)")?.value(), equals: expected)
      }
    }
    try expect(storageFaults(database), equals: [])
    try database.close()
  }

  @Test("names that another process has added are resolved, also in a batch", arguments: sharedEngines)
  func namesOfAnother(_ engine: EngineName) throws {
    let database = try open(engine, directory)
    try database.save("ours", ["n": 1])
    func check(_ number: Int) throws {
      let key = try database.key("theirskey\(number)")
      let document = try #require(try database.document("theirs-\(number)"))
      expect(key.isShared && document[key].string == "theirskey\(number)")
    }
    try ProcessTests.write(engine, directory, "theirs", 3)
    try check(1)
    try ProcessTests.write(engine, directory, "theirs", 6)
    try database.inBatch {
      // What a batch reads goes by all names, of which it needn't learn again with each document.
      try expect(database.store.sharedKeys.number(of: "theirskey4") != nil)
      try check(5)
    }
    try expect(!database.key("nobodyskey").isShared)
    try database.close()
  }

  @Test("after a compaction whose sync failed, nothing of what is saved is lost", arguments: someEngines)
  func unsyncedCompaction(_ engine: EngineName) throws {
    try ProcessTests.write(engine, directory, "first", 20)
    let child = try startChild(.database, "documents", "unsynced", "\(engine)", directory.path)
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
    let counts = child.outputText.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
    let saved = try #require(counts.first)
    expect(counts.count == 2 && counts[1] >= 2, "it was told of \(counts)")
    let database = try open(engine, directory)
    for number in 0..<saved {
      try expect(
        database.document("after-\(number)")?["n"].int, equals: Int64(number), "\(number) of \(saved)")
    }
    try expect(database.documentCount, equals: 21 + saved)
    try expect(storageFaults(database), equals: [])
    try database.close()
  }

  @Test(
    "a compaction that changes files is refused while another process has them open", arguments: sharedEngines
  )
  func compactionBesideAnother(_ engine: EngineName) throws {
    let database = try open(engine, directory)
    for number in 0..<50 { try database.save("doc\(number)", ["n": 1, "k\(number)": 1]) }
    let holder = try startChild(.database, "documents", "hold", "\(engine)", directory.path)
    try holder.waitForOutput()
    let file = database.engineFile
    if try database.engine.maintenance.compactsInPlace {
      try database.compact()
    } else {
      try expect(databaseCode { try database.compact() }, equals: .inUse)
      expect(database.engineFile, equals: file)
    }
    try expect(databaseCode { try Database.delete("test", in: directory.path) }, equals: .inUse)
    try database.save("after", ["n": 1])
    holder.kill()
    try holder.wait()
    try database.compact()
    try expect((database.engineFile == file), equals: (try database.engine.maintenance.compactsInPlace))
    // Another process finds the new file, and both go on.
    let child = try startChild(.database, "documents", "write", "\(engine)", directory.path, "theirs", "20")
    try database.save("more", ["n": 1, "other": 2])
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
    try expect(database.document("theirs-7")?["theirskey7"].string, equals: "theirskey7")
    try expect(database.documentCount, equals: 50 + 2 + 21)
    try expect(storageFaults(database), equals: [])
    try database.close()
  }

  @Test(
    "processes that open, write, compact and close at the same time lose nothing",
    arguments: [EngineName.lmdb, .sqlite])
  func compactingProcesses(_ engine: EngineName) throws {
    try open(engine, directory).close()
    let children = try (0..<3).map { _ in
      try startChild(.database, "documents", "churn", "\(engine)", directory.path, isLong ? "20" : "2")
    }
    var saved = 0
    for child in children {
      try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
      saved += Int(child.outputText.split(separator: "\n").last ?? "") ?? 0
    }
    let database = try open(engine, directory)
    try expect(database.documentCount, equals: saved)
    try expect(database.lastSequence, equals: UInt64(saved))
    try expect(storageFaults(database), equals: [])
    try database.close()
  }

  @Test("a killed process leaves every acknowledged batch whole", arguments: someEngines)
  func kills(_ engine: EngineName) throws {
    try withSeed { random in
      let directory = TemporaryDirectory()
      try open(engine, directory).close()
      var next = 0
      var total = 0
      for round in 0..<times(10, sanitized: 30, long: 300) {
        let child = try startChild(.database, "documents", "batches", "\(engine)", directory.path, "\(next)")
        // Some batches, however slow the disk is, and a part of one.
        try child.waitForOutput(lines: Int.random(in: 1..<9, using: &random))
        usleep(UInt32.random(in: 0..<5_000, using: &random))
        child.kill()
        try child.wait()
        expect(!child.outputText.contains("failed"), "\(child.outputText.suffix(300))")
        let acknowledged = child.wholeLines.compactMap { Int($0) }.last
        let database = try open(engine, directory)
        let last = try database.document("counter")?["n"].int.map { Int($0) } ?? -1
        if let acknowledged { expect(last >= acknowledged, "round \(round)") }
        expect(last <= (acknowledged ?? next - 1) + 1, "round \(round)")
        for batch in max(0, next - 3)..<max(last + 1, 0) {
          for part in 0..<5 {
            let document = try database.document("batch\(batch)-\(part)", includeDeleted: true)
            if batch % 11 == 8, part == 1, batch + 2 <= last {
              expect(document == nil)
              continue
            }
            expect(document != nil, "batch \(batch), part \(part) of \(last)")
            let isDeleted = batch % 3 == 1 && part == 0 && batch + 1 <= last
            expect(document?.isDeleted, equals: isDeleted)
            if !isDeleted { expect(document?["key\(batch % 900)"].int, equals: Int64(part)) }
          }
        }
        try expect(database.document("batch\(last + 1)-0", includeDeleted: true) == nil)
        let generations = try database.revisions(of: "history")?.map { Int($0.id.generation) } ?? []
        expect(generations, equals: Array((max(0, last - 19)..<(last + 1)).map { $0 + 1 }.reversed()))
        try expect(database.changes().last?.sequence ?? 0 <= database.lastSequence)
        try expect(storageFaults(database), equals: [], "round \(round)")
        if round % 5 == 4 { try expect(database.checkIntegrity(), equals: []) }
        if round % 7 == 6 { try database.compact() }
        try database.close()
        total += last + 1 - next
        next = last + 1
      }
      expect(total > (isShort ? 10 : 30), "only \(total) batches: nothing was tested")
    }
  }
}
