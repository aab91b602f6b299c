/// A record of the entries that a copy has read, with one digest for each piece of about 1 MiB.
///
/// The record verifies a copy without reading the original again.
package struct KeyspaceRecord: Sendable {
  /// A range of consecutive entries in one keyspace.
  struct Piece: Sendable {
    let keyspace: String
    let shape: KeyspaceShape
    let range: KeyRange
    let digest: EntryDigest
  }

  /// The number of key and value bytes after which a piece ends.
  static let pieceBytes = 1 << 20

  var pieces: [Piece] = []

  /// An empty record.
  init() {}

  /// The number of recorded entries and bytes.
  package var total: CopyProgress {
    let entries = pieces.reduce(0) { $0 + $1.digest.entries }
    return CopyProgress(
      entries: entries, bytes: pieces.reduce(0) { $0 + $1.digest.bytes }, totalEntries: entries)
  }

  /// Compares the last commit of `copy` with what was read of the original.
  ///
  /// Checks that the keyspaces and their shapes are the same, and that each piece has the same number of
  /// entries with the same bytes. Throws `damaged` at the first difference. Uses at most `threads` threads,
  /// including the calling one.
  ///
  /// Only the calling thread calls `onProgress`. An error thrown by `onProgress` ends the comparison.
  package func verify(
    _ copy: any StorageEngine, threads: Int = 2, onProgress: (CopyProgress) throws -> Void = { _ in }
  ) throws {
    let shared = Shared(pieces, copy)
    try copy.read { try checkKeyspaces($0, copy.location) }
    let others = max(0, min(threads, pieces.count) - 1)
    let done = CountingSemaphore()
    let workers = Workers(maximum: max(1, others))
    for _ in 0..<others {
      workers.enqueue {
        shared.run { _ in }
        done.signal()
      }
    }
    shared.run { progress in try onProgress(progress) }
    for _ in 0..<others { done.wait() }
    if let failure = shared.failure { throw failure }
    try onProgress(total)
  }

  private func checkKeyspaces(_ copy: any ReadTransaction, _ path: String) throws {
    let found = try copy.keyspaces()
    var expected: [String: (shape: KeyspaceShape, entries: Int)] = [:]
    for piece in pieces {
      expected[piece.keyspace, default: (piece.shape, 0)].entries += piece.digest.entries
    }
    guard Set(found.keys) == Set(expected.keys) else {
      throw Self.different(
        "it has the keyspaces \(found.keys.sorted()) instead of \(expected.keys.sorted())", path)
    }
    for (name, keyspace) in found {
      guard let wanted = expected[name], wanted.shape == keyspace.shape else {
        throw Self.different("the keyspace \(name) has another shape", path)
      }
      let count = try copy.count(of: keyspace)
      guard count == wanted.entries else {
        throw Self.different("the keyspace \(name) has \(count) entries instead of \(wanted.entries)", path)
      }
    }
  }

  private static func different(_ what: String, _ path: String) -> StorageError {
    StorageError(.damaged, "the copy differs from the original: \(what)", path: path)
  }

  /// The pieces to check, shared by all threads. Each thread takes the next unchecked piece.
  private final class Shared: Sendable {
    private struct State {
      var next = 0
      var done = CopyProgress(entries: 0, bytes: 0, totalEntries: 0)
      var failure: (any Error)?
    }
    private let pieces: [Piece]
    private let copy: any StorageEngine
    private let state = Lock(State())

    init(_ pieces: [Piece], _ copy: any StorageEngine) {
      self.pieces = pieces
      self.copy = copy
      let total = pieces.reduce(0) { $0 + $1.digest.entries }
      state.withLock { $0.done.totalEntries = total }
    }

    var failure: (any Error)? { state.withLock { $0.failure } }

    /// Checks pieces until none is left or a check fails.
    func run(_ onProgress: (CopyProgress) throws -> Void) {
      do {
        try copy.read { transaction in
          let keyspaces = try transaction.keyspaces()
          while let piece = next() {
            try check(piece, keyspaces, transaction)
            let done = state.withLock { state in
              state.done.entries += piece.digest.entries
              state.done.bytes += piece.digest.bytes
              return state.done
            }
            try onProgress(done)
          }
        }
      } catch {
        state.withLock { if $0.failure == nil { $0.failure = error } }
      }
    }

    private func next() -> Piece? {
      state.withLock { state in
        guard state.failure == nil, state.next < pieces.count else { return nil }
        state.next += 1
        return pieces[state.next - 1]
      }
    }

    private func check(_ piece: Piece, _ keyspaces: [String: Keyspace], _ transaction: any ReadTransaction)
      throws
    {
      guard let keyspace = keyspaces[piece.keyspace] else {
        throw KeyspaceRecord.different("the keyspace \(piece.keyspace) is missing", copy.location)
      }
      guard try EntryDigest.of(piece.range, in: keyspace, transaction).isSame(as: piece.digest) else {
        let first =
          switch piece.range.lower {
          case .exclusive(let key), .inclusive(let key): "after the key \(key.map { String($0, radix: 16) })"
          case .unbounded: "at its beginning"
          }
        throw KeyspaceRecord.different("entries of the keyspace \(piece.keyspace), \(first)", copy.location)
      }
    }
  }
}
