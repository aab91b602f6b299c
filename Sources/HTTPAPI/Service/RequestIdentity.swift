import Bytes
import HTTP
import Storage
import Synchronization

// Headers of every answer, as CouchDB has them:
//
//   X-Couch-Request-ID: 8f8e7a4dfd        10 random hexadecimal digits
//   X-CouchDB-Body-Time: 41               milliseconds that the server waited for the body of the request

extension HTTPHeader {
  /// The headers that tell an answer from others.
  package static func identity(bodySeconds: Double = 0) -> [HTTPHeader] {
    [
      .init("X-Couch-Request-ID", Hex.text(UInt64.random(in: 0..<1 << 40), digits: 10)),
      .init("X-CouchDB-Body-Time", String(Int((bodySeconds * 1_000).rounded()))),
    ]
  }
}

/// The body of a request, with the time that was spent waiting for it.
final class TimedBody: HTTPBodySource {
  private let body: any HTTPBodySource
  private let timer: any CallTimer
  private let nanoseconds = Atomic<UInt64>(0)

  init(_ body: any HTTPBodySource, _ timer: any CallTimer) {
    self.body = body
    self.timer = timer
  }

  /// Seconds so far.
  var seconds: Double { Double(nanoseconds.load(ordering: .relaxed)) / 1e9 }

  var length: Int? { body.length }

  func receive(_ completion: @escaping @Sendable (Result<[UInt8]?, HTTPBodyError>) -> Void) {
    let began = timer.now
    body.receive { [self] result in
      add(since: began)
      completion(result)
    }
  }

  func read() throws(HTTPBodyError) -> [UInt8]? {
    let began = timer.now
    defer { add(since: began) }
    return try body.read()
  }

  private func add(since began: Double) {
    nanoseconds.wrappingAdd(UInt64(max(0, timer.now - began) * 1e9), ordering: .relaxed)
  }
}
