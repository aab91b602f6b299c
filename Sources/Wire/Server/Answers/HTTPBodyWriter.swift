import HTTP
import System

/// Writes the body of an answer while it is sent.
///
/// Bytes wait in memory until the client takes them, up to `HTTPServerLimits.bufferedAnswerBytes`. Any thread may call,
/// one at a time. A writer that is released before `finish` cuts the body off, so that the client doesn't take it for
/// whole.
package final class HTTPBodyWriter: HTTPBodySink {
  private let exchange: Exchange

  init(_ exchange: Exchange) { self.exchange = exchange }

  deinit { exchange.endOutput(isWhole: false) }

  /// Writes, and waits until more may be written. Throws `clientGone` when the client doesn't take more. Don't call it
  /// where waiting for a client holds up others.
  package func write(_ bytes: [UInt8]) throws(HTTPBodyError) {
    let waiter = BlockingWaiter<HTTPBodyError?>()
    exchange.offer(bytes, isDirect: true) { waiter.finish($0) }
    if let error = waiter.wait() { throw error }
  }

  /// Writes, and returns. `completion` is called when more may be written, or with the reason why not: at once, or on a
  /// handler's thread. At most one call may wait.
  package func offer(_ bytes: [UInt8], _ completion: @escaping @Sendable (HTTPBodyError?) -> Void) {
    exchange.offer(bytes, isDirect: false, completion)
  }

  /// The body is whole.
  package func finish() { exchange.endOutput(isWhole: true) }

  /// The body can't be written. The connection is closed, and the client sees that it isn't whole.
  package func fail() { exchange.endOutput(isWhole: false) }
}
