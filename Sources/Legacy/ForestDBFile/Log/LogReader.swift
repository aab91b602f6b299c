// The log: the records that were written since the trie was last brought up to date. They are in document blocks
// behind the header at which that was done, up to the header of the last commit. Records of a transaction count if a
// commit mark in the log names them.
//
// In a file whose blocks are used again, the blocks are gone through several times. A document block says when it was
// taken, by the lowest 16 bits of the revision of the bitmap of free blocks (a u16 at 4088):
//
//   b, e     the revisions that the earlier and the later header have
//   round b  the blocks behind the earlier header
//   rounds b+1...e  all blocks from 4 on; in round e, up to the later header
//
// A block in which a record of another block goes on isn't begun with again.

/// Reads the log into tables, one for each store that is asked for.
final class LogReader {
  private let file: BlockFile
  private let header: ForestDBHeader
  private let stores: [ForestDBStore]
  private let reader: RecordReader
  private let marked: RecordReader
  private let earlier: RecordReader
  private let lastSequences: [UInt64: UInt64]
  private var isVisited: [UInt64]
  /// The blocks in which a record goes on that isn't whole.
  private var isClaimed: [UInt64]
  private var work: UInt64 = 0
  private(set) var tables: [UInt64: RecordIndex] = [:]
  private(set) var damages: [ForestDBDamage] = []

  // What tells that something is missing (LogReader+Missing).
  /// The sequences of records that count, and of all records that were found.
  private var counted: [UInt64: SequenceCoverage] = [:]
  var found: [UInt64: SequenceCoverage] = [:]
  /// Blocks that may have been of the log.
  var suspects: [Int] = []
  /// The number of records whose commit marks are missing.
  private(set) var unconfirmed = 0
  /// The sequence of the record that was committed last, for each store.
  private var latest: [UInt64: UInt64] = [:]
  /// Whether the log is read again, for records whose commit marks are missing.
  private var isLookingForUnmarked = false

  private static let firstDataBlock = Superblock.count
  private static let revisionAt = 4_088
  /// The damages that are listed.
  private static let maximumDamages = 10_000

  init(_ file: BlockFile, _ header: ForestDBHeader, _ stores: [ForestDBStore], scratch: String) {
    self.file = file
    self.header = header
    self.stores = stores
    reader = RecordReader(file, header.version)
    marked = RecordReader(file, header.version)
    earlier = RecordReader(file, header.version)
    lastSequences = Dictionary(stores.map { ($0.number, $0.lastSequence) }) { first, _ in first }
    isVisited = Array(repeating: 0, count: file.count / 64 + 1)
    isClaimed = isVisited
    for store in stores { tables[store.number] = RecordIndex(directory: scratch) }
  }

  func run() throws {
    guard header.flushedAt != UInt64(header.block) else { return }
    let after = try afterFlush()
    if isGrowing {
      counted = try coverage(of: stores, file, header)
      found = counted
    }
    try read(after)
    for store in stores {
      guard let sequence = latest[store.number], sequence > store.lastSequence else { continue }
      note(
        UInt64(header.block) * UInt64(BlockFile.blockBytes),
        "the header says that the last sequence of the store \(store.name) is \(store.lastSequence), but "
          + "changes up to \(sequence) were committed; they are left out")
    }
    guard isGrowing, !suspects.isEmpty || !damages.isEmpty else { return }
    isLookingForUnmarked = true
    isVisited = Array(repeating: 0, count: isVisited.count)
    work = 0
    try read(after)
    isLookingForUnmarked = false
    try noteMissing(file)
  }

  /// Whether no block of the file was ever used again, so that all between two headers is of the log.
  private var isGrowing: Bool { header.bitmapRevision == 0 }

  private func read(_ after: (block: Int, revision: UInt64)) throws {
    guard after.revision != header.bitmapRevision else {
      guard after.block <= header.block else { throw damaged("its last flush is later than it") }
      for block in after.block..<header.block { try read(block, round: header.bitmapRevision) }
      return
    }
    for place in try rounds(after.block, after.revision) {
      try read(Int(place & 0xFFFF_FFFF_FFFF), round: after.revision &+ place >> 48)
    }
  }

  private func damaged(_ message: String, _ block: Int? = nil) -> ForestDBError {
    ForestDBError(
      .damaged, "the log can't be read (\(message))", path: file.path,
      offset: UInt64(block ?? header.block) * UInt64(BlockFile.blockBytes))
  }

  /// The block after the header at which the log was flushed, and that header's revision of the bitmap.
  private func afterFlush() throws -> (block: Int, revision: UInt64) {
    guard let flushedAt = header.flushedAt else { return (0, 0) }
    guard flushedAt < UInt64(file.count) else { throw damaged("its last flush isn't in the file") }
    let block = Int(flushedAt)
    guard header.bitmapRevision > 0 else { return (block + 1, 0) }
    guard let flushed = ForestDBHeader(try file.block(block), block: block), flushed.version == header.version
    else {
      // Records of earlier logs have lower sequences than those of the trie, so that all blocks may be read.
      note(flushedAt * UInt64(BlockFile.blockBytes), "the header of the last flush is damaged")
      return (0, 0)
    }
    guard flushed.bitmapRevision <= header.bitmapRevision,
      header.bitmapRevision - flushed.bitmapRevision < 0x8000
    else { throw damaged("the header of its last flush is later", block) }
    return (block + 1, flushed.bitmapRevision)
  }

  /// Returns the blocks of several rounds in their order: the round from the first on in the upper 16 bits, and
  /// the block. They take 8 bytes for each document block that was taken in these rounds.
  private func rounds(_ first: Int, _ revision: UInt64) throws -> [UInt64] {
    let last = header.bitmapRevision - revision
    guard last < 0x8000 else { throw damaged("it is too long") }
    var places: [UInt64] = []
    for block in 0..<file.count where try file.marker(block) == BlockMarker.document {
      let low = try file.block(block).integer(Self.revisionAt, as: UInt16.self)
      let round = UInt64(low &- UInt16(truncatingIfNeeded: revision))
      guard round <= last, round > 0 || block >= first, round == 0 || block >= Self.firstDataBlock,
        round < last || block < header.block
      else { continue }
      places.append(round << 48 | UInt64(block))
    }
    places.sort()
    return places
  }

  // MARK: Blocks

  private func read(_ block: Int, round: UInt64) throws {
    guard !contains(block) else { return }
    guard try file.marker(block) == BlockMarker.document else {
      if isGrowing, !isLookingForUnmarked, try !isKnown(block, file, header.version) {
        suspects.append(block)
      }
      return
    }
    if !isGrowing, header.version == .v2 {
      let low = try file.block(block).integer(Self.revisionAt, as: UInt16.self)
      guard low == UInt16(truncatingIfNeeded: round) else { return }
    }
    visit(block)
    var position = BlockPosition(block: block, byte: 0)
    var isAfterDamage = false
    while true {
      // What follows the last record is zero if there is room for a head, and anything otherwise.
      let isInRest = position.byte + 16 > header.version.payloadBytes
      let outcome = try reader.read(at: position)
      var isLost = false
      switch outcome {
      case .end:
        // A block begins with a record, or is of one that goes on.
        guard try isAfterDamage || position.byte == 0 && !isContinuation(block) else { return }
        if position.byte == 0 { note(position.offset, "a record of the log can't be read") }
        isLost = true
      case .noHead:
        guard !isInRest else { return }
        if try position.byte > 0 || !isContinuation(block) {
          note(position.offset, "a record of the log can't be read")
        }
        isLost = true
      case .damaged(let message):
        guard !isInRest || header.version == .v2 || reader.store.map({ tables[$0] != nil }) == true else {
          return
        }
        // The checksums of several flags were looked at.
        work += UInt64(reader.byteCount)
        if reader.flags.contains(.inTransaction) {
          try addUnmarked(reader, isWhole: false)
        } else if !isLookingForUnmarked, reader.key.first != UInt8(ascii: "K") {
          try add(reader, damage: message)
        }
        for block in reader.continuations { isClaimed[block >> 6] |= 1 << UInt64(block & 63) }
        isLost = !reader.isEndKnown
      case .mark(let offset):
        visit(reader.continuations)
        if !isLookingForUnmarked { try take(offset, at: position) }
      case .record:
        visit(reader.continuations)
        if reader.flags.contains(.inTransaction) {
          try addUnmarked(reader, isWhole: true)
        } else if !reader.flags.contains(.system), !isLookingForUnmarked {
          try add(reader, damage: nil)
        }
      }
      try count(reader, block)
      if isLost {
        guard let next = try reader.next(behind: position, isStore: { tables[$0] != nil }) else { return }
        position = next
        isAfterDamage = true
        continue
      }
      if case .damaged = outcome { isAfterDamage = true }
      position = reader.end
      if position.byte >= header.version.payloadBytes {
        guard let next = try reader.chain.following(position.block), !contains(next) else { return }
        visit(next)
        position = BlockPosition(block: next, byte: 0)
      }
    }
  }

  private func count(_ record: RecordReader, _ block: Int) throws {
    work += UInt64(record.byteCount)
    guard work <= 8 * file.byteCount else { throw damaged("its records are reached again and again", block) }
  }

  /// Whether a record that isn't whole probably goes on in a block: a killed writer leaves such blocks, and
  /// what it hadn't written yet is zero.
  private func isContinuation(_ block: Int) throws -> Bool {
    if isClaimed[block >> 6] >> UInt64(block & 63) & 1 == 1 { return true }
    return try header.version == .v1 && block > 0 && file.marker(block - 1) == 0
  }

  private func contains(_ block: Int) -> Bool { isVisited[block >> 6] >> UInt64(block & 63) & 1 == 1 }
  private func visit(_ block: Int) { isVisited[block >> 6] |= 1 << UInt64(block & 63) }
  private func visit(_ blocks: [Int]) { for block in blocks { visit(block) } }

  // MARK: Records

  /// Takes the record that a commit mark names. It may lie anywhere in the file.
  private func take(_ offset: UInt64, at mark: BlockPosition) throws {
    let outcome = try marked.read(at: offset)
    try count(marked, mark.block)
    switch outcome {
    case .record: if !marked.flags.contains(.system) { try add(marked, damage: nil) }
    case .damaged(let message) where marked.store != nil:
      work += UInt64(marked.byteCount)
      try add(marked, damage: message)
    default: note(mark.offset, "a record of the log was committed, but can't be read where its mark says")
    }
  }

  /// Adds a record. The sequence of one whose checksum is wrong isn't believed: it comes after those before it in
  /// the log, and before those behind it.
  private func add(_ record: RecordReader, damage: String?) throws {
    guard let store = record.store, let last = lastSequences[store], let table = tables[store] else {
      if let damage { note(record.offset, "a record of the log can't be read: \(damage)") }
      return
    }
    if damage == nil {
      latest[store] = record.sequence
      guard record.sequence <= last else { return }
      counted[store]?.add(record.sequence)
      found[store]?.add(record.sequence)
    }
    try put(record, in: table, damage == nil ? [] : [.damaged])
  }

  /// Looks at a record of a transaction that isn't known to be committed. If something is damaged, one whose
  /// sequence no other has was probably committed.
  private func addUnmarked(_ record: RecordReader, isWhole: Bool) throws {
    guard let store = record.store, let table = tables[store] else { return }
    guard isLookingForUnmarked else {
      if isWhole { found[store]?.add(record.sequence) }
      return
    }
    guard counted[store]?.isMissing(record.sequence) == true else { return }
    if try put(record, in: table, [.unconfirmed]) { unconfirmed += 1 }
  }

  /// Returns whether the table has the record now.
  @discardableResult
  private func put(
    _ record: RecordReader, in table: RecordIndex, _ states: [RecordIndex.State]
  ) throws -> Bool {
    var entry = RecordIndex.Entry(
      hash: RecordIndex.hash(record.userKey), offset: record.offset, sequence: record.sequence, state: 0)
    if record.flags.contains(.deleted) { entry.state |= RecordIndex.State.deleted.rawValue }
    for state in states { entry.state |= state.rawValue }
    guard let found = try table.find(entry.hash, { try earlier.hasKey(at: $0, record.key) }) else {
      try table.add(entry)
      return true
    }
    let old = table[found]
    let isLater =
      states.contains(.damaged) || old.state & RecordIndex.hidesOlder != 0 && !isLookingForUnmarked
      || entry.sequence >= old.sequence
    if isLater { table[found] = entry }
    return isLater
  }

  func note(_ offset: UInt64, _ message: String) {
    guard damages.count < Self.maximumDamages, !isLookingForUnmarked else { return }
    damages.append(ForestDBDamage(offset: offset, message: message))
  }
}
