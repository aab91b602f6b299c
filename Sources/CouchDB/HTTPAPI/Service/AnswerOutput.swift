import Bytes
import Fleece
import HTTP
import Storage

/// Writes the body of an answer piece by piece, on the thread that answers.
///
/// Up to `pieceBytes` bytes wait in it. When more come, the head of the answer goes out, and from then on an error can only cut the
/// body off.
package final class AnswerOutput {
  /// The size of a piece that is handed on, in bytes.
  static let pieceBytes = 64 << 10
  /// More memory than this is let go with a piece, in bytes.
  private static let keptBytes = 256 << 10

  private var text = JSONWriter(capacity: 4 << 10)
  /// Where pieces go: nil until the first one has left.
  private var sink: (any HTTPBodySink)?
  /// The piece that the client hasn't taken yet.
  private var offered: OfferedPiece?
  /// Sends the head of the answer, and gives what takes the body.
  private let begin: () -> any HTTPBodySink

  init(_ begin: @escaping () -> any HTTPBodySink) { self.begin = begin }

  /// Whether the head of the answer has left.
  var hasBegun: Bool { sink != nil }

  /// Writes a literal as it is.
  func append(_ text: StaticString) {
    text.withUTF8Buffer { self.text.append(json: UnsafeRawBufferPointer($0)) }
  }
  /// Writes bytes as they are.
  func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { text.append(json: $0) } }
  /// Writes bytes as they are.
  func append(_ span: RawSpan) { span.withUnsafeBytes { text.append(json: $0) } }
  /// Writes text as it is.
  func append(raw text: String) {
    var text = text
    text.withUTF8 { self.text.append(json: UnsafeRawBufferPointer($0)) }
  }
  /// Writes a JSON string, quoted and escaped.
  func append(jsonString string: String) { text.append(string: string) }
  /// Writes an integer.
  func append(_ number: UInt64) { text.append(number) }
  /// Writes an integer.
  func append(_ number: Int) { text.append(Int64(number)) }
  /// Lets `body` write JSON.
  func write(_ body: (inout JSONWriter) throws -> Void) rethrows { try body(&text) }

  /// Hands on what has been written, if that is a piece or more, and waits while the client takes its time. Call it between two rows.
  /// Throws `HTTPBodyError` when nobody takes the rest.
  func step() throws { if text.count >= Self.pieceBytes { try flush() } }

  /// Does the same without waiting for the client, unless more than `most` bytes wait for it. It is for writing while something is held,
  /// such as a snapshot.
  func step(holding most: Int) throws {
    guard text.count >= Self.pieceBytes else { return }
    if let offered {
      if !offered.isTaken, text.count <= most { return }
      try finishOffered()
    }
    let piece = OfferedPiece()
    offered = piece
    openSink().offer(take()) { piece.finish($0) }
  }

  /// Hands on what has been written.
  func flush() throws {
    try finishOffered()
    guard text.count > 0 else { return }
    try openSink().write(take())
  }

  private func openSink() -> any HTTPBodySink {
    let sink = self.sink ?? begin()
    self.sink = sink
    return sink
  }

  private func finishOffered() throws {
    guard let offered else { return }
    self.offered = nil
    if let error = offered.wait() { throw error }
  }

  /// The whole body, if none of it has left.
  func finish() throws -> [UInt8]? {
    guard let sink else { return take() }
    try flush()
    sink.finish()
    return nil
  }

  private func take() -> [UInt8] {
    var piece: [UInt8] = []
    text.write(to: &piece)
    // While a client takes its time, there is one copy of a large piece.
    if text.count > Self.keptBytes { text = JSONWriter(capacity: 4 << 10) } else { text.removeAll() }
    return piece
  }

  /// Cuts off a body that has begun.
  func fail() { sink?.fail() }
}

/// A piece that was offered to a client.
private final class OfferedPiece: Sendable {
  private let waiter = BlockingWaiter<HTTPBodyError?>()
  private let taken = Lock(false)

  /// Whether the client has taken it, or is gone.
  var isTaken: Bool { taken.withLock { $0 } }

  func finish(_ error: HTTPBodyError?) {
    taken.withLock { $0 = true }
    waiter.finish(error)
  }

  /// Waits until it is taken, and returns why it can't be.
  func wait() -> HTTPBodyError? { waiter.wait() }
}
