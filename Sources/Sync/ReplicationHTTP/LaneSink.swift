import Network
import Replication
import Storage
import Transport

/// Hands an answer to another sink on a thread that may wait for the disk. The server waits while too much is on its way
/// there, and while the other sink wants it to.
final class LaneSink: HTTPAnswerSink, HTTPTask {
  /// The most bytes that wait.
  static let waitingBytes = 1 << 20

  private struct State {
    var task: (any HTTPTask)?
    var hasEnded = false
    var waiting = 0
    /// Whether the server waits.
    var isPaused = false
    /// Whether the other sink wants it to wait.
    var isHeld = false
    /// How often the other sink was ready again.
    var resumes = 0
    var failure: TransportClose?
  }

  private let inner: any HTTPAnswerSink
  private let lane: JobLane
  private let state = Lock(State())

  private init(_ inner: any HTTPAnswerSink, _ pool: Workers) {
    self.inner = inner
    lane = JobLane(on: pool)
  }

  /// Sends a request whose answer goes to `sink` on a thread of the pool. Nil if the connection is closed; then the sink
  /// isn't told.
  static func send(
    _ request: HTTPClientRequest, by requester: DatabaseRequester, into sink: any HTTPAnswerSink,
    on pool: Workers
  ) -> (any HTTPTask)? {
    let outer = LaneSink(sink, pool)
    guard let task = requester.send(request, into: outer) else { return nil }
    outer.state.withLock { if !$0.hasEnded { $0.task = task } }
    // It was paused before this side knew how to resume it.
    outer.resumeIfFree()
    return outer
  }

  // MARK: The task

  func resume() {
    state.withLock { state in
      state.isHeld = false
      state.resumes += 1
    }
    resumeIfFree()
  }

  func cancel() { state.withLock { $0.task }?.cancel() }

  private func resumeIfFree() {
    let task = state.withLock { state -> (any HTTPTask)? in
      guard state.isPaused, !state.isHeld, state.waiting <= Self.waitingBytes / 4, let task = state.task
      else { return nil }
      state.isPaused = false
      return task
    }
    task?.resume()
  }

  // MARK: The answer

  func begin(_ head: HTTPAnswerHead) { lane.enqueue { [inner] in inner.begin(head) } }

  func receive(_ bytes: UnsafeRawBufferPointer) throws -> Bool {
    let copy = [UInt8](bytes)
    let (failure, goesOn) = state.withLock { state in
      state.waiting += copy.count
      if state.waiting > Self.waitingBytes || state.isHeld { state.isPaused = true }
      return (state.failure, !state.isPaused)
    }
    if let failure { throw failure }
    lane.enqueue { [self] in hand(copy) }
    return goesOn
  }

  private func hand(_ bytes: [UInt8]) {
    let (hasFailed, resumes) = state.withLock { ($0.failure != nil, $0.resumes) }
    var wantsPause = false
    if !hasFailed {
      do { wantsPause = try !bytes.withUnsafeBytes { try inner.receive($0) } } catch {
        let failure = TransportClose.malformed(error)
        let task = state.withLock { state in
          state.failure = failure
          return state.task
        }
        task?.cancel()
      }
    }
    state.withLock { state in
      state.waiting -= bytes.count
      if wantsPause, state.resumes == resumes { state.isHeld = true }
    }
    resumeIfFree()
  }

  func end(_ error: TransportClose?) {
    lane.enqueue { [self] in
      let failure = state.withLock { state in
        state.task = nil
        state.hasEnded = true
        return state.failure
      }
      inner.end(failure ?? error)
    }
  }
}
