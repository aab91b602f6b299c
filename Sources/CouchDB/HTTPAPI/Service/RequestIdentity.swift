import Bytes
import HTTP
import Storage
import Synchronization

// Headers of every answer, as CouchDB has them:
//
//   X-Couch-Request-ID: 8f8e7a4dfd        10 hexadecimal digits that look random; they are no secret
//   X-CouchDB-Body-Time: 41               milliseconds that the server waited for the body of the request

extension HTTPHeader {
  /// Steps through all 64-bit numbers from a random one. Random numbers of the system cost a call of it for each answer.
  private static let step = Atomic<UInt64>(UInt64.random(in: 0...UInt64.max))

  /// A number of this answer: SplitMix64 of the next step.
  private static func number() -> UInt64 {
    var z = step.wrappingAdd(0x9E37_79B9_7F4A_7C15, ordering: .relaxed).newValue
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  /// The headers that tell an answer from others.
  package static func identity(bodySeconds: Double = 0) -> [HTTPHeader] {
    [
      .init("X-Couch-Request-ID", Hex.text(number() >> 24, digits: 10)),
      .init("X-CouchDB-Body-Time", String(Int((bodySeconds * 1_000).rounded()))),
    ]
  }
}

/// The body of a request, with the time that was spent waiting for it and the memory that it takes.
final class MeteredBody: HTTPBodySource {
  let memory: RequestMemory
  private let body: any HTTPBodySource
  private let timer: any CallTimer
  private let nanoseconds = Atomic<UInt64>(0)

  init(_ body: any HTTPBodySource, _ memory: RequestMemory, _ timer: any CallTimer) {
    self.body = body
    self.memory = memory
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
