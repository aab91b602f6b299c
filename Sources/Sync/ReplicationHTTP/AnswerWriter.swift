import HTTP
import Network
import Replication

/// Writes the bytes of an answer of status 200 as they come. Keeps the text of another answer, and why a write has failed.
protocol AnswerWriter: HTTPAnswerSink {
  var head: HTTPAnswerHead { get }
  /// The text of another answer, for its error.
  var errorText: [UInt8] { get set }
  /// Why a write has failed.
  var failure: ReplicationError? { get set }
  func write(_ bytes: UnsafeRawBufferPointer) throws
}

extension AnswerWriter {
  func receive(_ bytes: UnsafeRawBufferPointer) throws -> Bool {
    guard head.status == 200 else {
      errorText.appendErrorText(bytes)
      return true
    }
    do { try write(bytes) } catch {
      let failure = ReplicationError(error)
      self.failure = failure
      throw failure
    }
    return true
  }
}

extension [UInt8] {
  /// Appends bytes of an answer without what was asked for, up to 64 KiB in all: an error has less to say.
  mutating func appendErrorText(_ bytes: UnsafeRawBufferPointer) {
    append(contentsOf: bytes.prefix((64 << 10) - count))
  }
}
