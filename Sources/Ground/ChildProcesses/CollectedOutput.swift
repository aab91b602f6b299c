import Foundation
import System

/// What comes from a socket. A thread reads it until its end, so that the writer never waits.
final class CollectedOutput: Sendable {
  private let state = Lock<(bytes: [UInt8], hasEnded: Bool)>(([], false))
  private let end = CountingSemaphore()

  init(_ socket: OwnedDescriptor) {
    let (state, end) = (state, end)
    Thread.detachNewThread {
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while true {
        let count = read(socket.number, &buffer, buffer.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { break }
        state.withLock { $0.bytes += buffer[..<count] }
      }
      state.withLock { $0.hasEnded = true }
      end.signal()
    }
  }

  var bytes: [UInt8] { state.withLock { $0.bytes } }
  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  func with<Result>(_ body: ([UInt8]) -> Result) -> Result { state.withLock { body($0.bytes) } }

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
