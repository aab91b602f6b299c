import Glibc
import Storage

/// The blobs of a database on a server. A blob has a row in `blobs` and its bytes in `pieces`.
///
/// A blob is kept by its name, which a document refers to, or by the claim of the process that has stored it. One without both is
/// removed. A claim ends when the document is saved, or a day later: a process that was killed can't end its claims.
final class PostgresBlobs: BlobHome {
  let location: String
  private let current: Lock<(pool: ConnectionPool, isClosed: Bool)>

  init(_ settings: PostgresSettings) {
    location = settings.location.shown
    current = Lock((ConnectionPool(settings), false))
  }

  func place(of name: String) -> String { "\(location), blob \(name)" }

  func allowWriting(_ durability: Durability) {
    current.withLock { current in
      var settings = current.pool.settings
      settings.isReadOnly = false
      settings.synchronousCommit = PostgresSettings.synchronousCommit(durability)
      // Readers that have a connection of the old ones close it themselves.
      current.pool.closeAll()
      current.pool = ConnectionPool(settings)
    }
  }

  func close() {
    current.withLock { current in
      current.isClosed = true
      current.pool.closeAll()
    }
  }

  // MARK: Asking

  /// Sends requests in one transaction. It may be sent twice, so it must do the same then.
  func exchange(_ requests: [Request]) throws -> [Answer] {
    try reporting("the blobs on the server can't be reached", location) {
      let pool = current.withLock { $0.pool }
      return try pool.withConnection { connection in
        defer { pool.giveBack(connection) }
        return try connection.exchange(requests)
      }
    }
  }

  func names() throws -> [String] {
    let answer = try exchange([.prepared(.blobNames, [])])[0]
    return (0..<answer.count).map { answer.text($0, 0) }
  }

  func files() throws -> [(name: String, bytes: UInt64)] {
    let answer = try exchange([.prepared(.blobFiles, [])])[0]
    return (0..<answer.count).map { (answer.text($0, 0), UInt64(answer.integer($0, 3))) }
  }

  func length(of name: String) throws -> UInt64? {
    let answer = try exchange([.prepared(.blob, [.text(name)])])[0]
    return answer.count == 1 ? UInt64(answer.integer(0, 1)) : nil
  }

  func open(_ name: String) throws -> any BlobBytes {
    let answer = try exchange([.prepared(.blob, [.text(name)])])[0]
    guard answer.count == 1 else {
      throw StorageError(.notFound, "there is no blob of this name", path: place(of: name))
    }
    return StoredPieces(
      self, id: Array(answer.bytes(0, 0)), bytes: UInt64(answer.integer(0, 1)), place: place(of: name))
  }

  // MARK: New blobs

  func makeNew(isSecret: Bool, syncs: Bool) throws -> any NewBlobBytes {
    guard !current.withLock({ $0.isClosed }) else {
      throw StorageError(.closed, "the database was closed", path: location)
    }
    return try NewPieces(self)
  }

  func put(_ new: any NewBlobBytes, as name: String, replaces: Bool) throws -> Bool {
    guard let new = new as? NewPieces else { return false }
    let answers = try new.id.withUnsafeBytes { id in
      try exchange(
        (replaces ? [.prepared(.freeName, [.text(name), .bytes(id)])] : [])
          + [.prepared(.nameBlob, [.text(name), .bytes(id)])])
    }
    guard answers.last?.count == 1 else {
      throw StorageError(
        .notFound, "the new blob was stored more than a day ago, and was removed since; store it again",
        path: place(of: name))
    }
    return true
  }

  func mark(_ name: String) throws { _ = try exchange([.prepared(.markBlob, [.text(name)])]) }

  /// Does nothing: the name was committed before the document.
  func sync() throws {}

  // MARK: Removing

  /// The advisory lock of all who read what a snapshot names. Who removes blobs takes it alone.
  private var lock: SessionLock { SessionLock(current.withLock { $0.pool.settings }, for: "blobs") }

  func hold() throws -> (any BlobHold)? {
    let lock = lock
    let isHeld = try reporting("the blobs on the server can't be held", location) {
      try lock.share(seconds: 60)
    }
    guard isHeld else {
      lock.close()
      throw StorageError(.busy, "blobs are being removed by another process", path: location)
    }
    return PostgresBlobHold(lock)
  }

  func beginRemoval(isBlob: (String) -> Bool) throws -> any BlobRemovalPlan { try RemovalPlan(self, isBlob) }

  private final class RemovalPlan: BlobRemovalPlan {
    private let blobs: PostgresBlobs
    private var found: [String: (id: [UInt8], stamp: Int)] = [:]
    var names: Set<String> { Set(found.keys) }

    init(_ blobs: PostgresBlobs, _ isBlob: (String) -> Bool) throws {
      self.blobs = blobs
      let answer = try blobs.exchange([.prepared(.blobFiles, [])])[0]
      for row in 0..<answer.count where isBlob(answer.text(row, 0)) {
        found[answer.text(row, 0)] = (Array(answer.bytes(row, 1)), answer.integer(row, 2))
      }
    }

    func remove(_ names: Set<String>) throws -> (blobs: Int, bytes: UInt64) {
      let lock = blobs.lock
      defer { lock.close() }
      let isAlone = try reporting("the blobs on the server can't be locked", blobs.location) {
        try lock.takeAlone(seconds: 0) { true }
      }
      guard isAlone else { return (0, 0) }
      var result = (blobs: 0, bytes: UInt64(0))
      var rest = names.sorted().compactMap { found[$0] }[...]
      while !rest.isEmpty {
        let part = rest.prefix(500)
        rest = rest.dropFirst(500)
        let answers = try withIDs(part.map(\.id)) { ids in
          try blobs.exchange(
            zip(ids, part).map { .prepared(.removeName, [.bytes($0), .integer($1.stamp)]) })
        }
        for answer in answers where answer.count == 1 {
          result.blobs += 1
          result.bytes += UInt64(answer.integer(0, 0))
        }
      }
      while try blobs.exchange([.prepared(.dropUnused, [])])[0].integer(0, 0) > 0 {}
      return result
    }

    /// Calls `body` with the bytes of all IDs.
    private func withIDs<Result>(
      _ ids: [[UInt8]], _ body: ([UnsafeRawBufferPointer]) throws -> Result
    ) rethrows -> Result {
      let bytes = ids.flatMap { $0 }
      return try bytes.withUnsafeBytes { bytes in
        var offset = 0
        return try body(
          ids.map { id in
            defer { offset += id.count }
            return UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + id.count)])
          })
      }
    }
  }
}

private final class PostgresBlobHold: BlobHold {
  private let lock: SessionLock

  init(_ lock: SessionLock) { self.lock = lock }

  func end() { lock.close() }

  deinit { lock.close() }
}
