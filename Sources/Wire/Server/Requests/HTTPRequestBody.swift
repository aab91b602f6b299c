import HTTP
import System

/// The body of a request. It is pulled: what the handler doesn't ask for stays with the client.
///
/// The client is asked for it (100-continue) when the handler first asks. A handler that answers before spares the client
/// the sending.
package struct HTTPRequestBody: HTTPBodySource {
  let exchange: Exchange

  /// The length that the client announced; nil for a chunked body, 0 if there is none.
  package var length: Int? { exchange.head?.bodyLength ?? 0 }

  /// Asks for what has come: some bytes, or nil at the end. `completion` is called at once, or on a handler's thread. At
  /// most one call may wait.
  package func receive(_ completion: @escaping @Sendable (Result<[UInt8]?, HTTPBodyError>) -> Void) {
    exchange.readInput(isDirect: false, completion)
  }

  /// Waits for what comes: some bytes, or nil at the end.
  package func read() throws(HTTPBodyError) -> [UInt8]? {
    let waiter = BlockingWaiter<Result<[UInt8]?, HTTPBodyError>>()
    exchange.readInput(isDirect: true) { waiter.finish($0) }
    return try waiter.wait().get()
  }
}
