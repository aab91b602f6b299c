/// Writes a ForestDB file record by record, and says where each one is. For tests of files that are damaged.
package final class ForestDBSketch {
  /// The stores, by their numbers.
  package enum Store: Int, CaseIterable, Sendable {
    case documents, info, local, expiry

    var name: String { ["default", "info", "_local", "expiry"][rawValue] }
  }

  private let writer: ForestDBWriter
  private var sequences: [UInt64] = [0, 0, 0, 0]
  private var marks: [(store: UInt64, offset: UInt64)] = []
  /// The current records, by whole key. More can be added for the next flush.
  package var index: [[UInt8]: UInt64] = [:]
  private var root = UInt64.max
  private var flushedAt: Int?
  /// The names of the file that replaces this one, and of the one that it replaced. Empty for none.
  package var newName = ""
  package var oldName = ""
  /// The last sequence that headers say instead of the right one.
  package var saidLastSequence: UInt64?
  /// The offsets of the commit marks of the last commit.
  package private(set) var lastMarks: [Int] = []

  /// An empty file. `version` is 1 or 2.
  package init(_ path: String, version: Int = 1, key: [UInt8]? = nil) throws {
    writer = try ForestDBWriter(path, version: version, key: key)
  }

  /// A revision tree whose only revision is `GENERATION-aa`.
  package static func tree(_ generation: UInt64, _ json: String = "{}") -> [UInt8] {
    tree([(generation, 0xAA, -1, 0x82, 0, Array(json.utf8))])
  }

  /// A revision tree: generations, digests of one byte, parents (-1 for none), flags, sequences, and what follows them.
  package static func tree(
    _ revisions: [(
      generation: UInt64, digest: UInt8, parent: Int, flags: UInt8, sequence: UInt64, rest: [UInt8]
    )]
  ) -> [UInt8] {
    var bytes: [UInt8] = []
    for revision in revisions {
      let id = varint(revision.generation) + [revision.digest]
      let rest = varint(revision.sequence) + revision.rest
      bytes += ForestDBWriter.bigEndian(UInt32(8 + id.count + rest.count))
      bytes += ForestDBWriter.bigEndian(revision.parent < 0 ? UInt16.max : UInt16(revision.parent))
      bytes += [revision.flags, UInt8(id.count)] + id + rest
    }
    return bytes + [0, 0, 0, 0]
  }

  /// The bytes of a number of variable length.
  package static func varint(_ value: UInt64) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(rest & 0x7F) | 0x80)
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }

  /// The whole key of a record.
  package static func key(_ id: String, in store: Store = .documents) -> [UInt8] {
    ForestDBWriter.bigEndian(UInt64(store.rawValue)) + Array(id.utf8)
  }

  /// Writes a record. Returns its offset in the file.
  ///
  /// - Parameters:
  ///   - sequence: the sequence that the record gets instead of the next one of its store.
  ///   - isMarked: whether it is of a transaction, so that the next commit writes a mark for it.
  ///   - isAborted: whether it is of a transaction that isn't committed. It uses up no sequence.
  @discardableResult
  package func put(
    _ id: String, _ body: [UInt8], in store: Store = .documents, sequence: UInt64? = nil,
    isMarked: Bool = true, isDeleted: Bool = false, isAborted: Bool = false
  ) throws -> Int {
    try put(
      Self.key(id, in: store), body, in: store, sequence: sequence, isMarked: isMarked, isDeleted: isDeleted,
      isAborted: isAborted)
  }

  /// The same with the whole key.
  @discardableResult
  package func put(
    _ key: [UInt8], _ body: [UInt8], in store: Store, sequence: UInt64? = nil, isMarked: Bool = true,
    isDeleted: Bool = false, isAborted: Bool = false
  ) throws -> Int {
    if !isAborted { sequences[store.rawValue] += 1 }
    let next = sequences[store.rawValue] + (isAborted ? 1 : 0)
    let meta: [UInt8] =
      switch store {
      case .documents: [0, 2, 1, 0xAA, 0]
      case .local: Array("1-local".utf8)
      default: []
      }
    let flags: UInt8 = (isMarked || isAborted ? 8 : 0) | (isDeleted ? 4 : 0)
    let record = ForestDBWriter.record(
      key: key, sequence: sequence ?? next, meta: isDeleted ? [] : meta, body: isDeleted ? [] : body,
      flags: flags)
    let place = try writer.append(record, to: UInt64(store.rawValue))
    guard !isAborted else { return Int(place.offset) }
    if isMarked { marks.append((UInt64(store.rawValue), place.offset)) }
    index[key] = place.offset
    return Int(place.offset)
  }

  /// Writes one more commit mark.
  @discardableResult
  package func mark(_ offset: Int, in store: Store = .documents) throws -> Int {
    Int(try writer.append(ForestDBWriter.mark(UInt64(offset)), to: UInt64(store.rawValue)).offset)
  }

  /// Begins new blocks, so that the records behind lie in others than those before.
  package func beginBlocks() throws { try writer.flushBlocks() }

  /// Commits. With `isFlushed`, all records come into the trie. Returns the block of the header.
  @discardableResult
  package func commit(isFlushed: Bool = false) throws -> Int {
    lastMarks = []
    for (store, offset) in marks {
      lastMarks.append(Int(try writer.append(ForestDBWriter.mark(offset), to: store).offset))
    }
    marks = []
    try writer.flushBlocks()
    if isFlushed {
      let entries = index.map { (key: $0.key, offset: $0.value) }
        .sorted { $0.key.lexicographicallyPrecedes($1.key) }
      root = try ForestDBTrieWriter(writer, entries).write()
    }
    let list = try writer.append(storeList(), to: 0)
    let header = try writer.commit(
      .init(
        root: root, storeList: list.offset, flushedAt: flushedAt, isFlushed: isFlushed, newName: newName,
        oldName: oldName, lastSequence: saidLastSequence ?? sequences[0]))
    if isFlushed { flushedAt = header }
    return header
  }

  private func storeList() -> [UInt8] {
    let others = Store.allCases.dropFirst()
    var body = ForestDBWriter.bigEndian(UInt64(others.count)) + ForestDBWriter.bigEndian(UInt64(4))
    for store in others.sorted(by: { $0.name < $1.name }) {
      let name = Array(store.name.utf8) + [0]
      body += ForestDBWriter.bigEndian(UInt16(name.count)) + name
      for value in [UInt64(store.rawValue), sequences[store.rawValue], 0, 0, 0, 0, 0, 0] {
        body += ForestDBWriter.bigEndian(value)
      }
    }
    return ForestDBWriter.record(key: Array("KV_header\0".utf8), sequence: 0, body: body, flags: 0x20)
  }
}
