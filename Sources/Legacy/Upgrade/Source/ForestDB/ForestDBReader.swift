import Bytes
import ForestDBFile

/// Reads the documents of a ForestDB file one by one: those of its index in the order of their IDs, then those of
/// its log.
final class ForestDBReader: SourceReader {
  private let source: ForestDBSource
  private let documents: DocumentCursor
  private let expirations: StoreLookup?
  private var id: [UInt8] = []

  var revisions = SourceRevisions()
  private(set) var number = 0
  private(set) var expiration: Int?
  private(set) var hasInvalidExpiration = false

  init(_ source: ForestDBSource, _ documents: DocumentCursor, _ expirations: StoreLookup?) {
    self.source = source
    self.documents = documents
    self.expirations = expirations
  }

  func next(_ skipped: (SkippedOfSource) throws -> Void) throws -> Bool {
    revisions.removeAll()
    while let item = try source.reading({ try documents.next() }) {
      guard case .damaged(let damage, let id) = item else {
        number += 1
        readRevisions()
        try readExpiration()
        return true
      }
      try skipped(.damaged(id: id, reason: ForestDBSource.text(damage, source.file)))
    }
    return false
  }

  private func readRevisions() {
    for index in documents.revisions.indices {
      let revision = documents.revisions[index]
      id.removeAll(keepingCapacity: true)
      documents.appendID(index, to: &id)
      id.withUnsafeBytes {
        revisions.add(
          // Sequences above those that can be stored are invalid, as 0 is.
          sequence: Int(exactly: revision.sequence) ?? 0,
          parent: revision.parent < 0 ? nil : revision.parent, id: $0,
          isCurrent: revision.isLeaf, isDeleted: revision.isDeleted, hasBody: documents.hasBody(index))
      }
    }
    revisions.sortAndLink()
  }

  private func readExpiration() throws {
    (expiration, hasInvalidExpiration) = (nil, false)
    guard let expirations, expirations.count > 0 else { return }
    let found: Void? = try source.reading {
      try expirations.withBody(documents.id) { value in
        if var rest = value, let seconds = rest.takeVarint(), rest.isEmpty, seconds < 1_000_000_000_000_000 {
          expiration = Int(seconds)
        } else {
          hasInvalidExpiration = true
        }
      }
    }
    if found == nil { expiration = nil }
  }

  var documentID: UnsafeRawBufferPointer { documents.id }

  var damagedBodies: [(row: Int, reason: String)] {
    guard !documents.damagedBodies.isEmpty else { return [] }
    return revisions.rows.indices.compactMap { row in
      documents.damagedBodies[revisions.rows[row].place].map { (row, ForestDBSource.text($0, source.file)) }
    }
  }

  func documentCount() throws -> Int { source.documentCount }

  func withBody<Result>(_ row: Int, _ body: (UnsafeRawBufferPointer) throws -> Result) throws -> Result {
    let found = try documents.withBody(revisions.rows[row].place) { json in
      try body(json.isEmpty ? SourceText.emptyBody : json)
    }
    return try found ?? body(SourceText.emptyBody)
  }

  func close() {}
}
