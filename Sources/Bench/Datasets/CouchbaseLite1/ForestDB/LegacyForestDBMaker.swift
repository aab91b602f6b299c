import FoundationEssentials

/// Writes a database in the format of Couchbase Lite 1.2 to 1.4 with ForestDB storage. For tests and measurements of
/// upgrades.
package struct LegacyForestDBMaker {
  private let settings: LegacyDatabase
  private let shape: LegacyForestDB

  /// A maker of a database with these contents. Revision IDs are hexadecimal there.
  package init(_ settings: LegacyDatabase, _ shape: LegacyForestDB) {
    self.settings = settings
    self.shape = shape
  }

  /// Makes the database `name` in an existing directory and returns its path, `NAME.cblite2`. Nothing may exist
  /// there.
  package func make(_ name: String, in directory: String) throws -> String {
    let path = "\(directory)/\(name).cblite2"
    let manager = FileManager.default
    try manager.createDirectory(atPath: path + "/attachments", withIntermediateDirectories: true)
    if settings.key != nil {
      try Data("AES".utf8).write(to: URL(fileURLWithPath: path + "/attachments/_encryption"))
    }
    func write(_ number: Int, oldName: String = "", newName: String = "", documents: Int) throws {
      let writer = try ForestDBWriter(
        "\(path)/db.forest.\(number)", version: shape.version, key: settings.key)
      var settings = settings
      settings.documents = documents
      let attachments = LegacyAttachments(settings, in: path + "/attachments")
      try Writing(settings, shape, writer, attachments, oldName, newName).run()
    }
    let device = "C:\\Users\\somebody\\"
    switch shape.compaction {
    case .none: try write(0, documents: settings.documents)
    case .interrupted:
      try write(0, newName: device + "db.forest.1", documents: settings.documents)
      try write(1, documents: settings.documents / 2)
    case .unnoticed:
      try write(0, newName: device + "db.forest.1", documents: settings.documents / 2)
      try write(1, oldName: "/data/somebody/db.forest.0", documents: settings.documents)
    }
    try Self.writeMeta("db.forest.0", in: path)
    return path
  }

  /// Writes the file that says which file of a database counts.
  package static func writeMeta(_ name: String, in directory: String) throws {
    var meta = ForestDBWriter.bigEndian(UInt32(1)) + Array(name.utf8) + [0]
    meta += [UInt8](repeating: 0xC3, count: 1_028 - meta.count)
    meta += ForestDBWriter.bigEndian(ForestDBWriter.crc(meta))
    try Data(meta).write(to: URL(fileURLWithPath: directory + "/db.forest.meta"))
  }

  /// Makes a file of version 1 with these records of documents, whatever they hold, in its log.
  package static func make(
    _ path: String, records: [(id: [UInt8], sequence: UInt64, body: [UInt8])]
  ) throws {
    let writer = try ForestDBWriter(path, version: 1, key: nil)
    for record in records {
      let bytes = ForestDBWriter.record(
        key: ForestDBWriter.bigEndian(UInt64(0)) + record.id, sequence: record.sequence, body: record.body,
        flags: 0)
      _ = try writer.append(bytes, to: 0)
    }
    let none = ForestDBWriter.record(
      key: Array("KV_header\0".utf8), sequence: 0,
      body: ForestDBWriter.bigEndian(UInt64(0)) + ForestDBWriter.bigEndian(UInt64(1)), flags: 0x20)
    let list = try writer.append(none, to: 0)
    try writer.commit(
      .init(
        storeList: list.offset, flushedAt: nil, isFlushed: false,
        lastSequence: records.map(\.sequence).max() ?? 0))
  }

  /// One pass that writes all documents.
  private final class Writing {
    private let settings: LegacyDatabase
    private let shape: LegacyForestDB
    private let writer: ForestDBWriter
    private let attachments: LegacyAttachments
    private let names: (old: String, new: String)

    /// The current records, by whole key.
    private var current: [[UInt8]: ForestDBWriter.Place] = [:]
    private var sequences: [UInt64] = [0, 0, 0, 0]
    private var marks: [UInt64: [UInt64]] = [:]
    private var saves = 0
    private var commits = 0
    private var flushedAt: Int?
    private var root = UInt64.max
    private var reuses = 0
    private var total = 0

    private static let stores = ["default", "info", "_local", "expiry"]

    init(
      _ settings: LegacyDatabase, _ shape: LegacyForestDB, _ writer: ForestDBWriter,
      _ attachments: LegacyAttachments, _ old: String, _ new: String
    ) {
      self.settings = settings
      self.shape = shape
      self.writer = writer
      self.attachments = attachments
      names = (old, new)
    }

    func run() throws {
      for (key, value) in [
        ("privateUUID", "1d9c5c0e-8f0e-4d62-9d5c-27f5d1f0a3b1"),
        ("publicUUID", "2e9c5c0e-8f0e-4d62-9d5c-27f5d1f0a3b2"), ("pruned", "true"), ("checkpoint/abc", "17"),
      ] { try save(Array(key.utf8), body: Array(value.utf8), in: 1) }
      for number in 0..<settings.localDocuments {
        let local = settings.localDocument(number)
        try save(
          Array("_local/\(local.id)".utf8), meta: Array("\(local.generation)-local".utf8),
          body: Array(local.json.utf8), in: 2)
      }
      try commit()
      total = settings.documents * settings.history
      let window = 50
      for start in stride(from: 0, to: settings.documents, by: window) {
        let documents = (start..<min(start + window, settings.documents)).map { settings.document($0) }
        var trees = documents.map { _ in [SavedRevision]() }
        for step in 0..<(documents.map(\.revisions.count).max() ?? 0) {
          for index in documents.indices where step < documents[index].revisions.count {
            try save(documents[index], step, &trees[index])
          }
        }
        for document in documents {
          guard let expiration = document.expiration else { continue }
          try save(Array(document.id.utf8), body: ForestDBSketch.varint(UInt64(expiration)), in: 3)
          try save([7] + Array("\(expiration)\(document.id)".utf8), body: [], in: 3)
        }
        if shape.hasUnfinished, start == 0 { try abortAndPurge() }
      }
      try commit(isLast: true)
      if shape.hasUnfinished { try leaveUnfinished() }
    }

    // MARK: Documents

    private struct SavedRevision {
      var sequence: UInt64
      /// The offset of the last record that had the body.
      var bodyAt: UInt64 = 0
    }

    /// Saves a document with its first revisions, as it was when the last of them was added.
    private func save(_ document: LegacyDocument, _ step: Int, _ saved: inout [SavedRevision]) throws {
      saved.append(SavedRevision(sequence: sequences[0] + 1))
      let isLeaf = (0...step).map { index in
        !document.revisions[...step].contains { $0.parent == index }
      }
      func rank(_ index: Int) -> (Int, Int, Int, String) {
        let revision = document.revisions[index]
        let parts = revision.id.split(separator: "-", maxSplits: 1)
        return (isLeaf[index] ? 1 : 0, revision.isDeleted ? 0 : 1, Int(parts[0]) ?? 0, String(parts[1]))
      }
      let order = (0...step).sorted { rank($0) > rank($1) }
      var body: [UInt8] = []
      for index in order {
        let revision = document.revisions[index]
        let isKept = revision.body != nil && shape.reuses == 0
        var rest = ForestDBSketch.varint(index == step ? 0 : saved[index].sequence)
        var flags: UInt8 = (revision.isDeleted ? 1 : 0) | (isLeaf[index] ? 2 : 0)
        if !revision.attachments.isEmpty { flags |= 8 }
        if isLeaf[index] {
          let json = try attachments.body(revision.body ?? Array("{}".utf8), revision.attachments)
          if !json.isEmpty {
            flags |= 0x80
            rest += json
          }
        } else if isKept {
          flags |= 0x40
          rest += ForestDBSketch.varint(saved[index].bodyAt)
        }
        let id = Self.binary(revision.id)
        let parent = revision.parent.flatMap { order.firstIndex(of: $0) }.map(UInt16.init) ?? .max
        body += ForestDBWriter.bigEndian(UInt32(8 + id.count + rest.count))
        body += ForestDBWriter.bigEndian(parent) + [flags, UInt8(id.count)] + id + rest
      }
      body += [0, 0, 0, 0]
      let winner = Self.binary(document.revisions[order[0]].id)
      let meta = [0, UInt8(winner.count)] + winner + [0]
      let place = try save(Array(document.id.utf8), meta: meta, body: body, in: 0)
      for index in 0...step where isLeaf[index] { saved[index].bodyAt = place.offset }
    }

    static func binary(_ id: String) -> [UInt8] {
      let parts = id.split(separator: "-", maxSplits: 1)
      let digits = Array(parts[1].utf8).map { $0 < 0x40 ? $0 - 0x30 : $0 - 0x57 }
      return ForestDBSketch.varint(UInt64(parts[0]) ?? 0)
        + stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    // MARK: Records and commits

    @discardableResult
    private func save(_ key: [UInt8], meta: [UInt8] = [], body: [UInt8], in store: Int, flags: UInt8 = 8)
      throws
      -> ForestDBWriter.Place
    {
      sequences[store] += 1
      let key = ForestDBWriter.bigEndian(UInt64(store)) + key
      let record = ForestDBWriter.record(
        key: key, sequence: sequences[store], meta: meta, body: body, flags: flags)
      let place = try writer.append(record, to: UInt64(store))
      current[key] = place
      marks[UInt64(store), default: []].append(place.offset)
      saves += 1
      if saves % max(1, shape.commit) == 0 { try commit() }
      return place
    }

    private func commit(isLast: Bool = false) throws {
      commits += 1
      for (store, offsets) in marks.sorted(by: { $0.key < $1.key }) {
        for offset in offsets { try _ = writer.append(ForestDBWriter.mark(offset), to: store) }
      }
      marks.removeAll()
      let isFlushed = isLast ? shape.endsFlushed : shape.flush > 0 && commits % shape.flush == 0
      try writer.flushBlocks()
      if isFlushed {
        let entries = current.map { (key: $0.key, offset: $0.value.offset) }
          .sorted { $0.key.lexicographicallyPrecedes($1.key) }
        root = try ForestDBTrieWriter(writer, entries).write()
      }
      let list = try writer.append(storeList(), to: 0)
      let header = try writer.commit(
        .init(
          root: root, storeList: list.offset, flushedAt: flushedAt, isFlushed: isFlushed, newName: names.new,
          oldName: names.old, lastSequence: sequences[0]))
      if isFlushed {
        flushedAt = header
        let live = Set(current.values.flatMap(\.blocks))
        staleBlocks = writer.documentBlocks.subtracting(live).subtracting(writer.free)
      }
      reuseBlocks()
    }

    /// The blocks of records that had no current record at the last flush.
    private var staleBlocks: Set<Int> = []

    /// Gives half of the blocks back that nothing of the last flush needs, so that there can be two rounds in one
    /// log.
    private func reuseBlocks() {
      guard reuses < shape.reuses, !staleBlocks.isEmpty, saves * (shape.reuses + 1) > total * (reuses + 1)
      else {
        return
      }
      reuses += 1
      let blocks = staleBlocks.sorted().enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
      writer.reuse(blocks)
      staleBlocks.subtract(blocks)
    }

    private func storeList() -> [UInt8] {
      var body = ForestDBWriter.bigEndian(UInt64(Self.stores.count - 1)) + ForestDBWriter.bigEndian(UInt64(4))
      for (number, name) in Self.stores.enumerated().dropFirst().sorted(by: { $0.element < $1.element }) {
        let name = Array(name.utf8) + [0]
        body += ForestDBWriter.bigEndian(UInt16(name.count)) + name
        for value in [UInt64(number), sequences[number], 0, 0, 0, 0, 0, 0] {
          body += ForestDBWriter.bigEndian(value)
        }
      }
      return ForestDBWriter.record(key: Array("KV_header\0".utf8), sequence: 0, body: body, flags: 0x20)
    }

    // MARK: What must not be found

    /// A document that is made and purged, and a transaction that is aborted: its records have no marks.
    private func abortAndPurge() throws {
      try save(Array("purged".utf8), meta: [0, 2, 1, 0xAA, 0], body: Self.bodyOfPurged, in: 0)
      try commit()
      sequences[0] += 1
      let key = ForestDBWriter.bigEndian(UInt64(0)) + Array("purged".utf8)
      let place = try writer.append(
        ForestDBWriter.record(key: key, sequence: sequences[0], body: [], flags: 0x0C, time: 1_500_000_000),
        to: 0)
      current[key] = place
      marks[0, default: []].append(place.offset)
      try commit()
      for number in 0..<5 {
        let record = ForestDBWriter.record(
          key: ForestDBWriter.bigEndian(UInt64(0)) + Array(settings.documentID(number).utf8),
          sequence: sequences[0] + 1, meta: [0, 2, 1, 0xAA, 0], body: Self.bodyOfPurged, flags: 8)
        _ = try writer.append(record, to: 0)
      }
      try writer.flushBlocks()
      // A record whose last block was never written.
      var random = SeededRandom(seed: settings.seed, stream: 3, index: 0)
      let body = (0..<1_500).flatMap { _ in ForestDBWriter.bigEndian(random.next()) }
      let torn = ForestDBWriter.record(
        key: ForestDBWriter.bigEndian(UInt64(0)) + Array("torn".utf8), sequence: sequences[0] + 1, body: body,
        flags: 8)
      _ = try writer.append(torn, to: 0)
      writer.abandonBlock(of: 0)
    }

    private static let bodyOfPurged: [UInt8] =
      [0, 0, 0, 13, 0xFF, 0xFF, 0x82, 2, 1, 0xAA, 0] + Array("{}".utf8) + [0, 0, 0, 0]

    /// Records and marks of a commit whose header was never written.
    private func leaveUnfinished() throws {
      for number in 0..<min(30, settings.documents) {
        let record = ForestDBWriter.record(
          key: ForestDBWriter.bigEndian(UInt64(0)) + Array(settings.documentID(number).utf8),
          sequence: sequences[0] + UInt64(1 + number), meta: [0, 2, 1, 0xAA, 0], body: Self.bodyOfPurged,
          flags: 8)
        let place = try writer.append(record, to: 0)
        _ = try writer.append(ForestDBWriter.mark(place.offset), to: 0)
      }
      try writer.flushBlocks()
    }
  }
}
