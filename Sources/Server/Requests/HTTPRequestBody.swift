import Storage

/// The body of a request. It is pulled: what the handler doesn't ask for stays with the client.
///
/// The client is asked for it (100-continue) when the handler first asks. A handler that answers before spares the client
/// the sending.
package struct HTTPRequestBody: Sendable {
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
