import Bytes
import Storage

extension InvertedIndexWriter {
  /// Returns the number of a document, or nil if the index doesn't have the document.
  func number(of id: UnsafeRawBufferPointer, _ transaction: any ReadTransaction) throws -> UInt32? {
    try DocumentPages(keyspaces, state, transaction).number(of: id)
  }

  /// Writes the IDs of added and removed documents, and the lengths of all changed documents.
  func writeDocuments(_ transaction: any WriteTransaction) throws {
    try writeNewIDs(transaction)
    try removeIDs(transaction)
    try writeLengths(transaction)
  }

  private func writeNewIDs(_ transaction: any WriteTransaction) throws {
    let added = documents.filter { $0.newID != nil }
    guard let first = added.first else { return }
    var encoder = DocumentPageEncoder()
    let tailKey = InvertedIndexFormat.blockKey(
      InvertedIndexFormat.documentList, InvertedIndexFormat.lastDocument)
    encoder.begin(first.number)
    if !isFresh {
      _ = try transaction.withBlock(tailKey, in: keyspaces.blocks) {
        try DocumentPages.copy($0, to: &encoder)
      }
    }
    for document in added {
      guard encoder.nextNumber == document.number, let id = document.newID else {
        throw InvertedIndexFormat.damaged
      }
      if encoder.page.count >= InvertedIndexFormat.blockBytes {
        let key = InvertedIndexFormat.blockKey(InvertedIndexFormat.documentList, document.number - 1)
        try put(key, encoder.page.bytes, transaction)
        encoder.begin(document.number)
      }
      id.withUnsafeBytes { encoder.append($0) }
      if document.number >= state.sortedDocuments {
        let number = withUnsafeBytes(of: document.number.bigEndian) { [UInt8]($0) }
        try transaction.put([InvertedIndexFormat.documentTag] + id, number, in: keyspaces.terms)
      }
    }
    try put(tailKey, encoder.page.bytes, transaction)
  }

  private func removeIDs(_ transaction: any WriteTransaction) throws {
    let removed = documents.filter { $0.oldID != nil }
    guard !removed.isEmpty else { return }
    let cursor = try transaction.cursor(
      in: keyspaces.blocks, InvertedIndexFormat.range(ofList: InvertedIndexFormat.documentList))
    var index = 0
    while index < removed.count {
      let sought = InvertedIndexFormat.blockKey(InvertedIndexFormat.documentList, removed[index].number)
      guard try cursor.seek(sought) else { throw InvertedIndexFormat.damaged }
      var encoder = DocumentPageEncoder()
      let key = try cursor.withEntry { key, value in
        try value.withUnsafeBytes { value in
          var page = try DocumentPage(value)
          encoder.begin(page.first)
          var id = ByteBuffer(capacity: 64)
          while !page.isAtEnd {
            let number = page.nextNumber
            let isThere = try page.next(&id)
            if index < removed.count, removed[index].number == number {
              encoder.append(nil)
              index += 1
            } else if isThere {
              encoder.append(id.bytes)
            } else {
              encoder.append(nil)
            }
          }
        }
        return try InvertedIndexFormat.number(ofKey: key)
      }
      // An ID that isn't in its page would be sought forever.
      guard index == removed.count || UInt64(removed[index].number) > key else {
        throw InvertedIndexFormat.damaged
      }
      try transaction.put(key, encoder.page.bytes, in: keyspaces.blocks)
    }
    for document in removed {
      guard let id = document.oldID else { continue }
      let key = [InvertedIndexFormat.documentTag] + id
      try transaction.delete(key.span.bytes, in: keyspaces.terms)
    }
  }

  private func writeLengths(_ transaction: any WriteTransaction) throws {
    let size = InvertedIndexFormat.lengthsPerPage
    var index = 0
    while index < documents.count {
      let group = documents[index].number / size
      let key = InvertedIndexFormat.blockKey(InvertedIndexFormat.lengthList, group)
      var page = LengthPage()
      if !isFresh {
        page = try transaction.withBlock(key, in: keyspaces.blocks) { try LengthPage($0) } ?? LengthPage()
      }
      while index < documents.count, documents[index].number / size == group {
        let document = documents[index]
        let place = Int(document.number % size)
        let (old, new) = (UInt64(page[place]), UInt64(document.length ?? 0))
        guard state.tokens >= old, old == 0 || state.documents > 0 else { throw InvertedIndexFormat.damaged }
        state.tokens = state.tokens - old &+ new
        state.documents = state.documents - (old > 0 ? 1 : 0) + (new > 0 ? 1 : 0)
        page[place] = document.length ?? 0
        index += 1
      }
      try page.encoded.withUnsafeBytes { try put(key, $0, transaction) }
    }
  }
}

/// The pages of IDs in a transaction's snapshot.
struct DocumentPages {
  private let keyspaces: InvertedIndexKeyspaces
  private let state: InvertedIndexState
  private let transaction: any ReadTransaction

  init(
    _ keyspaces: InvertedIndexKeyspaces, _ state: InvertedIndexState, _ transaction: any ReadTransaction
  ) {
    self.keyspaces = keyspaces
    self.state = state
    self.transaction = transaction
  }

  /// Adds all items of a page to the page that the encoder builds.
  static func copy(_ bytes: UnsafeRawBufferPointer, to encoder: inout DocumentPageEncoder) throws {
    var page = try DocumentPage(bytes)
    var id = ByteBuffer(capacity: 64)
    encoder.begin(page.first)
    while !page.isAtEnd { encoder.append(try page.next(&id) ? id.bytes : nil) }
  }

  /// Returns the number of a document, or nil if the index doesn't have the document.
  func number(of id: UnsafeRawBufferPointer) throws -> UInt32? {
    let late = try transaction.withValue(at: InvertedIndexFormat.documentKey(id), in: keyspaces.terms) {
      guard $0.byteCount == 4 else { throw InvertedIndexFormat.damaged }
      return UInt32(bigEndian: $0.unsafeLoadUnaligned(as: UInt32.self))
    }
    if let late { return late }
    return try sortedNumber(of: id)
  }

  /// Returns the number of a document among those in the order of their IDs. A binary search over the pages.
  func sortedNumber(of sought: UnsafeRawBufferPointer) throws -> UInt32? {
    guard state.sortedDocuments > 0 else { return nil }
    let cursor = try transaction.cursor(
      in: keyspaces.blocks, InvertedIndexFormat.range(ofList: InvertedIndexFormat.documentList))
    var id = ByteBuffer(capacity: 64)
    // Numbers below `low` have lower IDs. Numbers from `high` on have higher IDs.
    var low: UInt32 = 0
    var high = state.sortedDocuments
    while low < high {
      let middle = low + (high - low) / 2
      guard try cursor.seek(InvertedIndexFormat.blockKey(InvertedIndexFormat.documentList, middle)) else {
        throw InvertedIndexFormat.damaged
      }
      let place = try cursor.withEntry { _, value in
        try value.withUnsafeBytes { try DocumentPages.place(of: sought, in: $0, below: high, middle, &id) }
      }
      switch place {
      case .found(let number): return number
      case .nowhere: return nil
      case .below(let first): high = first
      case .above(let next): low = max(next, middle + 1)
      }
    }
    return nil
  }

  /// The result of looking for an ID in a page.
  private enum Place {
    case found(UInt32)
    case nowhere
    /// The ID's number is below the first number of the page.
    case below(UInt32)
    /// The ID's number is at least this one.
    case above(UInt32)
  }

  private static func place(
    of sought: UnsafeRawBufferPointer, in bytes: UnsafeRawBufferPointer, below high: UInt32, _ middle: UInt32,
    _ id: inout ByteBuffer
  ) throws -> Place {
    var page = try DocumentPage(bytes)
    let first = page.first
    guard first <= middle else { throw InvertedIndexFormat.damaged }
    var isAnyBelow = false
    while !page.isAtEnd, page.nextNumber < high {
      let number = page.nextNumber
      guard try page.next(&id) else { continue }
      let order = compareBytes(id.bytes, sought)
      if order == 0 { return .found(number) }
      // A lower ID is in the same page, so the sought ID doesn't exist.
      if order > 0 { return isAnyBelow ? .nowhere : .below(first) }
      isAnyBelow = true
    }
    return .above(page.nextNumber)
  }
}
