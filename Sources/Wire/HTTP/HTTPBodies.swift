import System

/// The body of a request. It is pulled: what nobody asks for stays with the client.
package protocol HTTPBodySource: Sendable {
  /// The length that the client announced; nil for a chunked body, 0 if there is none.
  var length: Int? { get }

  /// Asks for what has come: some bytes, or nil at the end. `completion` is called at once or later, on any thread. At
  /// most one call may wait.
  func receive(_ completion: @escaping @Sendable (Result<[UInt8]?, HTTPBodyError>) -> Void)

  /// Waits for what comes: some bytes, or nil at the end.
  func read() throws(HTTPBodyError) -> [UInt8]?
}

extension HTTPBodySource {
  /// Waits for the whole body. Throws `tooLong` if it has more than `limit` bytes, without reading it if the client
  /// announced its length.
  package func collect(limit: Int) throws(HTTPBodyError) -> [UInt8] {
    if let length, length > limit { throw .tooLong }
    var bytes: [UInt8] = []
    while let next = try read() {
      guard next.count <= limit - bytes.count else { throw .tooLong }
      if bytes.isEmpty { bytes = next } else { bytes += next }
    }
    return bytes
  }

  /// Collects the whole body without a thread that waits. See `collect(limit:)`.
  package func collect(
    limit: Int, _ completion: @escaping @Sendable (Result<[UInt8], HTTPBodyError>) -> Void
  ) {
    if let length, length > limit { return completion(.failure(.tooLong)) }
    let bytes = Lock<[UInt8]>([])
    @Sendable func next() {
      receive { result in
        switch result {
        case .failure(let error): completion(.failure(error))
        case .success(nil): completion(.success(bytes.withLock { $0 }))
        case .success(let part?):
          let fits = bytes.withLock { bytes in
            guard part.count <= limit - bytes.count else { return false }
            bytes += part
            return true
          }
          if fits { next() } else { completion(.failure(.tooLong)) }
        }
      }
    }
    next()
  }
}

/// Writes the body of an answer while it is sent. Any thread may call, one at a time. One that is released before `finish` cuts the
/// body off, so that the client doesn't take it for whole.
package protocol HTTPBodySink: Sendable {
  /// Writes, and waits until more may be written. Throws `clientGone` when the client doesn't take more.
  func write(_ bytes: [UInt8]) throws(HTTPBodyError)

  /// Writes, and returns. `completion` is called when more may be written, or with the reason why not: at once or later, on
  /// any thread. At most one call may wait.
  func offer(_ bytes: [UInt8], _ completion: @escaping @Sendable (HTTPBodyError?) -> Void)

  /// The body is whole.
  func finish()

  /// The body can't be written. The client sees that it isn't whole.
  func fail()
}

/// Waits for a value from another thread.
package final class BlockingWaiter<Value: Sendable>: Sendable {
  private let value = Lock<Value?>(nil)
  private let semaphore = CountingSemaphore()

  /// Makes one.
  package init() {}

  /// Hands over the value.
  package func finish(_ value: Value) {
    self.value.withLock { $0 = value }
    semaphore.signal()
  }

  /// Waits for the value. Later calls return it at once. One thread waits at a time.
  package func wait() -> Value {
    while true {
      if let value = value.withLock({ $0 }) { return value }
      Workers.whileBlocked { semaphore.wait() }
    }
  }
}
