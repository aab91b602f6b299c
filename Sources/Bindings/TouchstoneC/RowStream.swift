import Storage
import Touchstone

/// One row of any kind, as C reads it.
enum AnyRow {
  case query(QueryRow)
  case computed([RowValue])

  /// Appends the row as a JSON object, without missing values.
  func writeJSON(_ names: [[UInt8]], into json: inout [UInt8]) throws {
    switch self {
    case .query(let row): try row.writeJSON(into: &json)
    case .computed(let values):
      json.append(UInt8(ascii: "{"))
      var isFirst = true
      for (name, value) in zip(names, values) {
        if case .missing = value { continue }
        if !isFirst { json.append(UInt8(ascii: ",")) }
        isFirst = false
        json.append(UInt8(ascii: "\""))
        // The names of such columns are words of this module.
        json.append(contentsOf: name)
        json.append(contentsOf: [UInt8(ascii: "\""), UInt8(ascii: ":")])
        try value.writeJSON(into: &json)
      }
      json.append(UInt8(ascii: "}"))
    }
  }
}

/// A value of a row that no query has made.
enum RowValue: Sendable {
  case missing
  case null
  case bool(Bool)
  case int(Int64)
  case text(String)
  case json([UInt8])

  func writeJSON(into json: inout [UInt8]) throws {
    switch self {
    case .missing, .null: json.append(contentsOf: "null".utf8)
    case .bool(let value): json.append(contentsOf: (value ? "true" : "false").utf8)
    case .int(let value): json.append(contentsOf: "\(value)".utf8)
    case .text(let text): json.append(contentsOf: try JSONValue.string(text).canonicalJSON().utf8)
    case .json(let text): json.append(contentsOf: text)
    }
  }
}

/// Rows in pieces that a thread makes, a few pieces ahead of the one that reads them.
final class RowStream: @unchecked Sendable {
  /// Some rows, and their JSON without brackets: `{…},{…}`.
  struct Piece {
    var rows: [AnyRow] = []
    var json: [UInt8] = []
  }
  /// Takes a row. Returns false if no more are wanted.
  typealias Sink = (AnyRow) throws -> Bool

  /// The number of pieces that may wait for the reader, and their greatest length in bytes of JSON.
  private static let (maximumWaiting, pieceBytes) = (2, 256 << 10)
  /// Streams wait for their readers, so each has a thread while it runs.
  private static let workers = Workers(maximum: 10_000)

  private struct State {
    var pieces: [Piece] = []
    var isEnded = false
    var error: (any Error)?
    var isStopped = false
  }

  private let state = Lock(State())
  private let names: [[UInt8]]
  private let cancellation: QueryCancellation
  /// Signalled when a piece or the end comes; when a piece was taken, or none is wanted any more; and when the thread is done.
  private let arrival = CountingSemaphore()
  private let room = CountingSemaphore()
  private let done = CountingSemaphore()
  /// Whether the reader knows that the thread is done. Only the reader uses it.
  private var isDone = false

  /// Starts to make rows. `produce` hands each one to the sink, and ends when that returns false.
  init(
    _ names: [String], _ cancellation: QueryCancellation = QueryCancellation(),
    _ produce: @escaping @Sendable (Sink) throws -> Void
  ) {
    self.names = names.map { Array($0.utf8) }
    self.cancellation = cancellation
    for _ in 0..<Self.maximumWaiting { room.signal() }
    Self.workers.enqueue { [self] in
      var failure: (any Error)?
      do { try run(produce) } catch { failure = error }
      state.withLock { state in
        state.isEnded = true
        if !state.isStopped { state.error = failure }
      }
      arrival.signal()
      done.signal()
    }
  }

  private func run(_ produce: (Sink) throws -> Void) throws {
    var piece = Piece()
    // The first rows come soon, the others in pieces that are worth the way.
    var limit = 4 << 10
    try produce { row in
      if !piece.json.isEmpty { piece.json.append(UInt8(ascii: ",")) }
      try row.writeJSON(names, into: &piece.json)
      piece.rows.append(row)
      guard piece.json.count >= limit else { return true }
      limit = Self.pieceBytes
      defer { piece = Piece() }
      return push(piece)
    }
    if !piece.rows.isEmpty { _ = push(piece) }
  }

  /// Hands a piece to the reader. Returns false if it wants no more.
  private func push(_ piece: Piece) -> Bool {
    room.wait()
    let isWanted = state.withLock { state in
      if !state.isStopped { state.pieces.append(piece) }
      return !state.isStopped
    }
    if isWanted { arrival.signal() }
    return isWanted
  }

  /// Returns the next rows, nil at the end. Waits for them.
  func next() throws -> Piece? {
    guard !isDone else { return nil }
    arrival.wait()
    let piece = state.withLock { $0.pieces.isEmpty ? nil : $0.pieces.removeFirst() }
    if let piece {
      room.signal()
      return piece
    }
    waitForEnd()
    if let error = state.withLock({ $0.error }) { throw error }
    return nil
  }

  /// Ends the run, and returns when the snapshot is closed.
  func stop() {
    guard !isDone else { return }
    state.withLock { state in
      state.isStopped = true
      state.pieces = []
    }
    cancellation.cancel()
    room.signal()
    waitForEnd()
  }

  private func waitForEnd() {
    done.wait()
    isDone = true
  }
}
