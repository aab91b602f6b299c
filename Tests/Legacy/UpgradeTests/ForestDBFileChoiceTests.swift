import Datasets
import TestSupport

/// Which file of a directory is read, and what is told when it isn't the newest.
@Suite("The files of a ForestDB database") struct ForestDBFileChoiceTests {
  private typealias Sketch = ForestDBSketch
  private static let key = [UInt8](0..<32)
  private static let otherKey = [UInt8](1..<33)

  /// Writes file 0 with 1-aa, and file 1 with 2-aa as what a compaction made of it.
  private func make(
    _ database: SketchedDatabase, named: Int?, keys: [[UInt8]?] = [nil, nil], isBegun: Bool = false,
    isFinished: Bool = true
  ) throws {
    let first = try database.sketch(key: keys[0])
    try first.put("doc", Sketch.tree(1))
    if isBegun { first.newName = "C:\\somewhere\\db.forest.1" }
    try first.commit()
    let second = try database.sketch(number: 1, key: keys[1])
    try second.put("doc", Sketch.tree(2))
    if isFinished { second.oldName = "/somewhere/db.forest.0" }
    try second.commit()
    if let named { try LegacyForestDBMaker.writeMeta("db.forest.\(named)", in: database.source) }
  }

  /// Breaks all headers of a file.
  private func breakHeaders(_ database: SketchedDatabase, _ number: Int) throws {
    try database.damage(number) { file in
      for block in 0..<(file.bytes.count / 4_096) where file.bytes[block * 4_096 + 4_095] == 0xEE {
        file.bytes[block * 4_096 + 3] ^= 1
      }
    }
  }

  private func expectUpgrade(
    _ database: SketchedDatabase, _ counts: [String: Int], _ revision: String, key: UserKey? = nil,
    _ comment: Comment
  ) throws {
    let report = try database.upgrade(key: key)
    expect(report.issueCounts, equals: counts, "\(comment): \(report.issues)")
    try expect(database.current(), equals: ["doc": revision], comment)
  }

  @Test("are told when the one with the last contents is missing")
  func missing() throws {
    let database = try SketchedDatabase()
    try make(database, named: 1)
    try FileManager.default.removeItem(atPath: database.path(1))
    try expectUpgrade(database, ["damagedCommit": 1], "1-aa", "the newer is missing")
    // The older one was removed before the directory said that the newer one counts.
    let other = try SketchedDatabase()
    try make(other, named: 0)
    try FileManager.default.removeItem(atPath: other.path(0))
    try expectUpgrade(other, [:], "2-aa", "the older is missing")
  }

  @Test(
    "are told when the newest can't be read and nothing says that it was a part", arguments: [true, false])
  func unnamed(_ isBegun: Bool) throws {
    let database = try SketchedDatabase()
    try make(database, named: nil, isBegun: isBegun)
    try breakHeaders(database, 1)
    try expectUpgrade(database, ["damagedCommit": 1], "1-aa", "damaged headers")
    // Without any header it is what an interrupted compaction leaves, if one had begun.
    let bytes = try Data(contentsOf: URL(filePath: database.path(1)))
    try bytes.prefix(4_096).write(to: URL(filePath: database.path(1)))
    try expectUpgrade(database, isBegun ? [:] : ["damagedCommit": 1], "1-aa", "no header")
  }

  @Test("are told when the file that replaced the named one can't be read")
  func replacement() throws {
    let database = try SketchedDatabase()
    try make(database, named: 0, isBegun: true)
    try expectUpgrade(database, [:], "2-aa", "whole")
    try breakHeaders(database, 1)
    try expectUpgrade(database, ["damagedCommit": 1], "1-aa", "damaged")
  }

  @Test("with other keys aren't read in place of the named one")
  func keys() throws {
    let (key, otherKey) = (try UserKey.raw(Self.key), try UserKey.raw(Self.otherKey))
    for old in [nil, Self.otherKey] {
      let database = try SketchedDatabase()
      try make(database, named: 1, keys: [old, Self.key])
      try expect(upgradeCode { try database.upgrade() }, equals: .keyRequired)
      try expect(upgradeCode { try database.upgrade(key: otherKey) }, equals: .wrongKey)
      try expectUpgrade(database, [:], "2-aa", key: key, "the right key")
    }
  }

  @Test("are found while a key is being set")
  func settingOfKey() throws {
    let key = try UserKey.raw(Self.key)
    let finished = try SketchedDatabase()
    try make(finished, named: 0, keys: [nil, Self.key], isBegun: true)
    try expectUpgrade(finished, [:], "2-aa", key: key, "finished")
    try expectUpgrade(finished, ["damagedElsewhere": 1], "1-aa", "finished, without the key")
    let interrupted = try SketchedDatabase()
    try make(interrupted, named: 0, keys: [nil, Self.key], isBegun: true, isFinished: false)
    try expect(upgradeCode { try interrupted.upgrade(key: key) }, equals: .notEncrypted)
    try expectUpgrade(interrupted, ["damagedElsewhere": 1], "1-aa", "interrupted")
  }

  // MARK: Commits

  @Test("of version 2 that lost more than one commit say so")
  func truncated() throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch(2)
    let headers = try (1...6).map { number in
      try sketch.put("doc", Sketch.tree(UInt64(number)))
      return try sketch.commit()
    }
    let bytes = try Data(contentsOf: URL(filePath: database.path()))
    for lost in 1...5 {
      try bytes.prefix((headers[5 - lost] + 1) * 4_096).write(to: URL(filePath: database.path()))
      // A writer that is killed leaves one commit without its header.
      try expectUpgrade(database, lost == 1 ? [:] : ["damagedCommit": 1], "\(6 - lost)-aa", "\(lost) lost")
    }
  }

  @Test("of version 2 lose nothing with one superblock")
  func superblock() throws {
    for block in 0..<4 {
      let database = try SketchedDatabase()
      let sketch = try database.sketch(2)
      for number in 1...6 {
        try sketch.put("doc", Sketch.tree(UInt64(number)))
        try sketch.commit()
      }
      try database.damage { $0.bytes[block * 4_096 + 33] ^= 1 }
      try expectUpgrade(database, [:], "6-aa", "block \(block)")
    }
  }

  @Test("tell each damaged header once, whatever the bytes behind the records are", arguments: [1, 2])
  func staleBytes(_ version: Int) throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch(version)
    try sketch.put("doc", Sketch.tree(1))
    let header = try sketch.commit()
    let cut = try Data(contentsOf: URL(filePath: database.path())).count
    let place = try sketch.put("doc", Sketch.tree(2))
    let last = try sketch.commit()
    // Blocks of records come from memory that held a header before.
    try database.damage { file in
      let magic = file.bytes[(header * 4_096 + 4_087)..<(header * 4_096 + 4_095)]
      for block in place / 4_096..<last where version == 1 {
        file.bytes.replaceSubrange((block * 4_096 + 4_087)..<(block * 4_096 + 4_095), with: magic)
      }
      file.bytes[last * 4_096 + 4_088] ^= 0x40
    }
    try expectUpgrade(database, ["damagedCommit": 1], "1-aa", "a damaged header")
    // What a killed writer leaves.
    let bytes = try Data(contentsOf: URL(filePath: database.path()))
    for end in stride(from: cut, to: last * 4_096, by: 4_096) {
      try bytes.prefix(end).write(to: URL(filePath: database.path()))
      try expectUpgrade(database, [:], "1-aa", "cut at \(end)")
    }
  }
}
