import Storage

// The keyspaces of expirations:
//
//   expiry       time:u64 document ID → nothing     by time
//   expirations  document ID → time:u64             by document
//
// time is milliseconds since 1970 with the highest bit inverted, big-endian. So the order of bytes is the
// order of time, also before 1970. Each document that expires has one entry in each keyspace.

/// The stored form of an expiration time.
enum ExpirationTime {
  static func stored(_ milliseconds: Int64) -> UInt64 { UInt64(bitPattern: milliseconds) ^ 1 << 63 }

  static func bytes(_ milliseconds: Int64) -> [UInt8] {
    let stored = stored(milliseconds)
    return (0..<8).map { UInt8(truncatingIfNeeded: stored >> UInt64(56 - 8 * $0)) }
  }

  static func read(_ bytes: RawSpan) throws -> Int64 {
    guard bytes.byteCount >= 8 else {
      throw DocumentError(.damaged, "the expiration time of a document can't be read")
    }
    return Int64(bitPattern: UInt64(bigEndian: bytes.unsafeLoadUnaligned(as: UInt64.self)) ^ 1 << 63)
  }
}

/// The expiration of a document.
package struct ScheduledExpiration: Sendable, Hashable {
  /// The document's ID.
  package let documentID: String
  /// The expiration time in milliseconds since 1970.
  package let milliseconds: Int64
}

extension DocumentWriter {
  /// Sets the expiration time of a document or tombstone; nil removes it. Returns false if there is no such
  /// document.
  func setExpiration(_ id: UnsafeRawBufferPointer, _ milliseconds: Int64?) throws -> Bool {
    try checkWritable()
    guard
      try transaction.contains(id.bytes, in: keyspaces.docs)
        || transaction.contains(id.bytes, in: keyspaces.deleted)
    else { return false }
    return try mutating {
      hasChangedExpirations = true
      try removeExpiration(of: id)
      guard let milliseconds else { return true }
      other.removeAll()
      other.append(bigEndian: ExpirationTime.stored(milliseconds))
      try transaction.put(id.bytes, other.bytes.bytes, in: keyspaces.expirations)
      other.append(id)
      try transaction.put(other.bytes.bytes, RawSpan(), in: keyspaces.expiry)
      earliestExpiration = min(earliestExpiration ?? milliseconds, milliseconds)
      return true
    }
  }

  /// Removes the expiration time of a document.
  func removeExpiration(of id: UnsafeRawBufferPointer) throws {
    other.removeAll()
    guard try transaction.hasEntries(keyspaces.expirations),
      try transaction.read(id.bytes, in: keyspaces.expirations, { other.append($0) })
    else { return }
    other.append(id)
    try transaction.delete(other.bytes.bytes, in: keyspaces.expiry)
    try transaction.delete(id.bytes, in: keyspaces.expirations)
  }

  /// Purges expired documents, the earliest first, at most `limit`. Returns their number.
  func purgeExpired(upTo milliseconds: Int64, limit: Int) throws -> Int {
    try checkWritable()
    let upper =
      ExpirationTime.bytes(milliseconds) + [UInt8](repeating: 0xFF, count: DocumentID.maximumStoredBytes)
    var due: [[UInt8]] = []
    try transaction.scan(
      keyspaces.expiry, KeyRange(upper: .inclusive(upper)), order: .ascending, fetch: .keys
    ) { key, _ in
      due.append([UInt8](copying: key))
      return due.count < limit
    }
    return try mutating {
      for key in due {
        guard key.count > 8 else {
          throw DocumentError(.damaged, "an entry of the expirations can't be read")
        }
        try key.withUnsafeBytes { key in
          let id = UnsafeRawBufferPointer(rebasing: key[8...])
          // A document has both entries as long as it exists. A damaged entry may name another document.
          let isItsTime = try transaction.withValue(at: id.bytes, in: keyspaces.expirations) { time in
            time.isEqual(to: UnsafeRawBufferPointer(rebasing: key[..<8]).bytes)
          }
          guard isItsTime == true, try purge(id, isExpired: true) else {
            throw DocumentError(.damaged, "there is an expiration, but no document", documentID: idText(id))
          }
        }
      }
      return due.count
    }
  }
}

extension DocumentStore {
  /// Sets the expiration time, in milliseconds since 1970. Nil means never.
  package func setExpiration(of id: String, milliseconds: Int64?) throws {
    try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      guard try writing({ try $0.setExpiration(key, milliseconds) }) else {
        throw DocumentError(
          .notFound, "there is no such document, so it can't get an expiration", documentID: id)
      }
    }
  }

  /// Returns the expiration time in milliseconds since 1970, or nil.
  package func expiration(of id: String) throws -> Int64? {
    try reading { transaction, context in
      try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
        try transaction.withValue(at: key.bytes, in: context.keyspaces.expirations) {
          try ExpirationTime.read($0)
        }
      }
    }
  }

  /// Returns the documents that expire, the earliest first.
  package func expirations(limit: Int = .max) throws -> [ScheduledExpiration] {
    guard limit > 0 else { return [] }
    return try reading { transaction, context in
      var found: [ScheduledExpiration] = []
      try transaction.scan(context.keyspaces.expiry, .all, order: .ascending, fetch: .keys) { key, _ in
        let time = try ExpirationTime.read(key)
        let id = String(copying: key.extracting(droppingFirst: 8))
        found.append(ScheduledExpiration(documentID: id, milliseconds: time))
        return found.count < limit
      }
      return found
    }
  }

  /// The number of documents that expire.
  package var expirationCount: Int {
    get throws { try count { $0.expirations } }
  }

  /// Purges documents that have expired at `milliseconds` (since 1970), at most `limit`, in one transaction.
  /// Returns their number.
  @discardableResult
  package func purgeExpiredChunk(at milliseconds: Int64, limit: Int = 1_000) throws -> Int {
    try writing { try $0.purgeExpired(upTo: milliseconds, limit: max(1, limit)) }
  }

  /// Purges what has expired. Each `chunk` is one transaction, so that other writers can run in between.
  @discardableResult
  package func purgeExpired(at milliseconds: Int64, chunk: Int = 1_000) throws -> Int {
    var total = 0
    while try expirations(limit: 1).first.map({ $0.milliseconds <= milliseconds }) ?? false {
      total += try purgeExpiredChunk(at: milliseconds, limit: chunk)
    }
    return total
  }
}

extension DocumentSnapshot {
  /// Returns the document's expiration time in milliseconds since 1970, nil if it has none.
  package func expiration(of id: String) throws -> Int64? {
    try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) {
      try expiration(ofBytes: $0.bytes)
    }
  }

  /// Returns the expiration time for the bytes of a stored ID. The ID isn't validated.
  package func expiration(ofBytes id: RawSpan) throws -> Int64? {
    let (transaction, context) = try open()
    return try transaction.withValue(at: id, in: context.keyspaces.expirations) {
      try ExpirationTime.read($0)
    }
  }
}
