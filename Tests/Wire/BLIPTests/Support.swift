import Bytes
import Foundation
import Storage
import StorageConformance
import Testing

@testable import BLIP

/// Whether long campaigns run.
let isLong = EnvironmentVariable.value("TOUCHSTONE_LONG") != nil

/// The bytes of hex digits; spaces don't matter.
func bytes(_ hex: String) -> [UInt8] {
  let digits = hex.filter { !$0.isWhitespace }
  var result: [UInt8] = []
  var index = digits.startIndex
  while index < digits.endIndex {
    let next = digits.index(index, offsetBy: 2)
    result.append(UInt8(digits[index..<next], radix: 16) ?? 0)
    index = next
  }
  return result
}

func utf8(_ text: String) -> [UInt8] { Array(text.utf8) }

func randomBytes(_ count: Int, _ random: inout SeededGenerator) -> [UInt8] {
  random.bytes(count)
}

/// The error of a call that ends a session; nil if it throws none.
func blipError(_ body: () throws -> Void) -> BLIPError? {
  do { try body() } catch { return error as? BLIPError }
  return nil
}

extension BLIPSession {
  /// Sends a request.
  @discardableResult
  func send(_ request: BLIPRequest) throws -> OutgoingMessage {
    let message = try OutgoingMessage(request)
    send(message)
    return message
  }

  /// All frames that can be sent now.
  func frames() throws -> [[UInt8]] {
    var frames: [[UInt8]] = []
    while let frame = try nextFrame() { frames.append(frame) }
    return frames
  }

  /// Takes frames, and returns the whole messages that they brought.
  @discardableResult
  func messages(_ frames: [[UInt8]]) throws -> [BLIPMessage] {
    try frames.compactMap {
      guard case .message(let message, _, _) = try receive($0) else { return nil }
      return message
    }
  }
}

/// A request of a profile with a body.
func request(
  _ profile: String, _ body: [UInt8] = [], urgent: Bool = false, compressed: Bool = false,
  noReply: Bool = false
) -> BLIPRequest {
  var request = BLIPRequest(profile, body: .bytes(body))
  request.isUrgent = urgent
  request.isCompressed = compressed
  request.isNoReply = noReply
  return request
}

/// Gives bytes, or what a closure says for the range that is asked for.
final class TestSource: BLIPSource, @unchecked Sendable {
  struct Failure: Error {}
  private let count: Int
  private let piece: Int
  private let byte: @Sendable (Int) -> UInt8
  private let failsAt: Int?
  private let givesEnd: Bool
  private(set) var offset = 0
  private(set) var largestRead = 0

  init(
    count: Int, piece: Int = .max, failsAt: Int? = nil, givesEnd: Bool = true,
    _ byte: @escaping @Sendable (Int) -> UInt8 = { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
  ) {
    self.count = count
    self.piece = piece
    self.failsAt = failsAt
    self.givesEnd = givesEnd
    self.byte = byte
  }

  func read(_ wanted: Int, into bytes: inout [UInt8]) throws -> BLIPSourceState {
    if let failsAt, offset >= failsAt { throw Failure() }
    largestRead = max(largestRead, wanted)
    let end = min(count, offset + min(wanted, piece))
    for index in offset..<end { bytes.append(byte(index)) }
    offset = end
    return offset == count && givesEnd ? .end : .more
  }

  var all: [UInt8] { (0..<count).map(byte) }
}

/// Collects a body, and consumes at once or when told.
final class TestSink: BLIPSink, @unchecked Sendable {
  private let state = Lock(State())
  private let isSlow: Bool

  struct State {
    var head: BLIPMessage?
    var bytes: [UInt8] = []
    var count = 0
    var waiting: [@Sendable () -> Void] = []
    var abandoned: BLIPError?
  }

  init(isSlow: Bool = false) { self.isSlow = isSlow }

  var now: State { state.withLock { $0 } }

  func begin(_ head: BLIPMessage) { state.withLock { $0.head = head } }

  func write(_ bytes: ArraySlice<UInt8>, _ consumed: @escaping @Sendable () -> Void) {
    state.withLock {
      $0.bytes += bytes
      $0.count += bytes.count
      if isSlow { $0.waiting.append(consumed) }
    }
    if !isSlow { consumed() }
  }

  func abandon(_ error: BLIPError) { state.withLock { $0.abandoned = error } }

  /// Consumes what waits.
  func consume() {
    let waiting = state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting
    }
    for consumed in waiting { consumed() }
  }
}
