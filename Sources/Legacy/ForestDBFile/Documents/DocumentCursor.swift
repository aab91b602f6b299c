import Bytes

/// Goes through the documents of a file with their revisions and the bodies that the file still has.
package final class DocumentCursor {
  /// What was found.
  package enum Item {
    /// A document, which the cursor lends.
    case document
    /// A document that can't be read, and its ID if that could be.
    case damaged(ForestDBDamage, id: [UInt8]?)
  }

  /// Where a body is.
  private enum Place {
    case none
    /// In the body of the record.
    case inline(Range<Int>)
    /// In the bodies that were copied.
    case copied(Range<Int>)
    /// In an older record, because it is large.
    case older
  }

  private let records: StoreCursor
  private let older: RecordReader
  /// Whether all older records are where they were written: no block was used again, and no compaction made the file.
  private let keepsOlder: Bool
  private var current = StoredRevisions()
  private var olderRevisions = StoredRevisions()
  private var body = UnsafeRawBufferPointer(start: nil, count: 0)
  private var olderBody = UnsafeRawBufferPointer(start: nil, count: 0)
  private var olderOffset = nowhere
  /// The place where the older record couldn't be used, so that it isn't read for each revision.
  private var uselessOffset = nowhere
  private var olderWork: UInt64 = 0
  /// The revisions whose bodies are in older records of the document that are damaged, by their numbers.
  package private(set) var damagedBodies: [Int: ForestDBDamage] = [:]
  private var places: ContiguousArray<Place> = []
  private var copies: [UInt8] = []

  /// Bodies of older records are copied up to this size, for each document.
  private static let maximumCopies = 4 << 20
  /// The bytes and revisions of older records that are looked at, for each byte of the file.
  private static let workFactor: UInt64 = 8

  init(_ records: StoreCursor, _ file: BlockFile, _ header: ForestDBHeader) {
    self.records = records
    older = RecordReader(file, header.version)
    keepsOlder = header.bitmapRevision == 0 && header.oldName == nil
  }

  /// Moves to the next document. Nil if there is none. Throws if the trie is damaged.
  package func next() throws -> Item? {
    guard let item = try records.next() else { return nil }
    if case .damaged(let damage, let key) = item { return .damaged(damage, id: key) }
    func damaged(_ message: String) -> Item {
      .damaged(ForestDBDamage(offset: records.offset, message: message), id: [UInt8](records.key))
    }
    guard let body = records.body() else { return damaged("its body can't be decompressed, or is too large") }
    if let fault = current.read(body, sequence: records.record.sequence) {
      return damaged("its revision tree is damaged (\(fault))")
    }
    self.body = body
    try findBodies()
    return .document
  }

  /// The document ID, not checked. Valid until the next document.
  package var id: UnsafeRawBufferPointer { records.key }
  /// The revisions, the current one first.
  package var revisions: ContiguousArray<StoredRevision> { current.list }

  /// Appends the ID of a revision as text.
  package func appendID(_ revision: Int, to text: inout [UInt8]) {
    StoredRevisions.append(UnsafeRawBufferPointer(rebasing: body[current.list[revision].id]), to: &text)
  }

  /// Whether the file has the body of a revision.
  package func hasBody(_ revision: Int) -> Bool {
    if case .none = places[revision] { false } else { true }
  }

  /// Lends the JSON of a revision; nil if the file doesn't have it.
  package func withBody<Result>(
    _ revision: Int, _ read: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result? {
    switch places[revision] {
    case .none: return nil
    case .inline(let range): return try read(UnsafeRawBufferPointer(rebasing: body[range]))
    case .copied(let range):
      return try copies.withUnsafeBytes { try read(UnsafeRawBufferPointer(rebasing: $0[range])) }
    case .older:
      guard let range = try find(revision) else { return nil }
      return try read(UnsafeRawBufferPointer(rebasing: olderBody[range]))
    }
  }

  // MARK: Bodies in older records

  private func findBodies() throws {
    places.removeAll(keepingCapacity: true)
    copies.removeAll(keepingCapacity: copies.count <= Self.maximumCopies)
    olderOffset = nowhere
    uselessOffset = nowhere
    if !damagedBodies.isEmpty { damagedBodies.removeAll() }
    for index in current.list.indices {
      let revision = current.list[index]
      if revision.isBodyHere {
        places.append(.inline(revision.body))
      } else if revision.bodyOffset != nowhere, let range = try find(index) {
        guard copies.count + range.count <= Self.maximumCopies else {
          places.append(.older)
          continue
        }
        let start = copies.count
        copies.append(contentsOf: olderBody[range])
        places.append(.copied(start..<copies.count))
      } else {
        places.append(.none)
      }
    }
    older.shrink()
    olderOffset = nowhere
  }

  /// Returns where the body of a revision is in the older record that it names. Offsets stay as they were when a
  /// file is compacted, so most of those in such a file name nothing.
  private func find(_ index: Int) throws -> Range<Int>? {
    let revision = current.list[index]
    guard revision.bodyOffset < records.offset else { return nil }
    if revision.bodyOffset != olderOffset {
      // Each record is the older one of few revisions, unless somebody wants to waste our time.
      guard revision.bodyOffset != uselessOffset, olderWork <= Self.workFactor * older.file.byteCount else {
        return nil
      }
      (olderOffset, uselessOffset) = (nowhere, revision.bodyOffset)
      let outcome = try older.read(at: revision.bodyOffset)
      olderWork += UInt64(older.byteCount)
      let isOfDocument = equalBytes(older.key, records.record.key)
      if case .damaged(let message) = outcome, isOfDocument, keepsOlder {
        damagedBodies[index] = ForestDBDamage(offset: older.offset, message: message)
      }
      guard case .record = outcome, isOfDocument, older.flags.isDisjoint(with: [.deleted, .system]),
        let body = older.body(), olderRevisions.read(body, sequence: older.sequence) == nil
      else { return nil }
      olderBody = body
      (olderOffset, uselessOffset) = (revision.bodyOffset, nowhere)
    }
    olderWork += UInt64(olderRevisions.list.count)
    guard older.sequence == revision.sequence, olderWork <= Self.workFactor * older.file.byteCount else {
      return nil
    }
    let id = UnsafeRawBufferPointer(rebasing: body[revision.id])
    for found in olderRevisions.list where found.isBodyHere {
      if equalBytes(UnsafeRawBufferPointer(rebasing: olderBody[found.id]), id) { return found.body }
    }
    return nil
  }
}
