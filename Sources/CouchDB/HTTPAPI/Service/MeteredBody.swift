import HTTP
import Storage
import Synchronization

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
