#if canImport(Glibc)
  import Glibc
#endif
import System

/// What comes from a socket. A thread reads it until its end, so that the writer never waits.
final class CollectedOutput: Sendable {
  private struct State {
    var bytes: [UInt8] = []
    /// The places behind the ends of lines.
    var lineEnds: [Int] = []
    var hasEnded = false

    mutating func append(_ new: ArraySlice<UInt8>) {
      for place in new.indices where new[place] == UInt8(ascii: "\n") {
        lineEnds.append(bytes.count + place - new.startIndex + 1)
      }
      bytes += new
    }
  }

  private let state = Lock(State())
  private let end = CountingSemaphore()

  init(_ socket: OwnedDescriptor) {
    let (state, end) = (state, end)
    Workers(maximum: 1).enqueue {
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while true {
        let count = read(socket.number, &buffer, buffer.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { break }
        state.withLock { $0.append(buffer[..<count]) }
      }
      state.withLock { $0.hasEnded = true }
      end.signal()
    }
  }

  var bytes: [UInt8] { state.withLock { $0.bytes } }
  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  var byteCount: Int { state.withLock { $0.bytes.count } }
  /// The number of lines that have an end.
  var lineCount: Int { state.withLock { $0.lineEnds.count } }

  /// A line without its end, nil if it hasn't come yet. The first one has the number 0.
  func line(_ number: Int) -> String? {
    state.withLock { state in
      guard state.lineEnds.indices.contains(number) else { return nil }
      let start = number == 0 ? 0 : state.lineEnds[number - 1]
      return String(decoding: state.bytes[start..<state.lineEnds[number] - 1], as: UTF8.self)
    }
  }

  /// Waits for the end, at most `seconds` if they are given. Returns whether it came.
  func waitForEnd(seconds: Double? = nil) -> Bool {
    if let seconds {
      guard end.wait(seconds: seconds) else { return false }
    } else {
      end.wait()
    }
    // For the next who waits.
    end.signal()
    return true
  }
}
