import Synchronization

/// The latencies of several threads' operations, by the interval in which each operation ended.
///
/// Each thread has a recorder, which counts for itself and hands its counts over once per interval. Histograms are kept
/// only for intervals that some thread is still in, so the memory doesn't grow with the length of a run.
package final class IntervalLatencies: Sendable {
  /// What ended in an interval. Times are in nanoseconds.
  package struct Interval: Equatable, Sendable {
    package var operations = 0
    package var median: UInt64 = 0
    package var p99: UInt64 = 0
    package var maximum: UInt64 = 0

    /// An interval without operations.
    package init() {}

    fileprivate init(_ histogram: LatencyHistogram, operations: Int) {
      self.operations = operations
      median = histogram.value(at: 0.5)
      p99 = histogram.value(at: 0.99)
      maximum = histogram.maximum
    }
  }

  /// The length of the slots in which stalls are looked for, in seconds.
  package static let slotSeconds = 0.1

  private struct State {
    var open: [Int: (histogram: LatencyHistogram, operations: Int)] = [:]
    var closed: [Int: Interval] = [:]
    /// The interval in which each thread is.
    var positions: [Int]
    var total = LatencyHistogram()
    var operations = 0
    var slots: [Int] = []
  }

  fileprivate let begin: UInt64
  fileprivate let interval: UInt64
  private let state: Mutex<State>

  /// `begin` is in nanoseconds of `Clock`, and `interval` in seconds.
  package init(begin: UInt64, interval: Double, threads: Int) {
    self.begin = begin
    self.interval = max(1, UInt64(interval * 1e9))
    state = Mutex(State(positions: [Int](repeating: 0, count: threads)))
  }

  /// Counts the operations of one thread. Not thread-safe.
  package struct Recorder: ~Copyable {
    private let owner: IntervalLatencies
    private let thread: Int
    private var current = 0
    private var histogram = LatencyHistogram()
    private var operations = 0
    private var slots: [Int] = []

    fileprivate init(_ owner: IntervalLatencies, _ thread: Int) {
      self.owner = owner
      self.thread = thread
    }

    /// Counts an operation that ended at `end`, in nanoseconds of `Clock`, and took `latency`.
    package mutating func record(end: UInt64, latency: UInt64) {
      let time = end > owner.begin ? end - owner.begin : 0
      let index = Int(time / owner.interval)
      if index != current { handOver(next: index) }
      histogram.record(latency)
      operations += 1
      let slot = Int(Double(time) / (IntervalLatencies.slotSeconds * 1e9))
      while slots.count <= slot { slots.append(0) }
      slots[slot] += 1
    }

    /// Counts an operation that was due and hadn't begun at the end of the run. `latency` is what it had waited.
    package mutating func record(waiting latency: UInt64) { histogram.record(latency) }

    /// Hands everything over. Call it at the end.
    package mutating func finish() {
      handOver(next: .max)
      owner.add(slots)
      slots = []
    }

    private mutating func handOver(next: Int) {
      owner.add(histogram, operations, from: thread, in: current, next: next)
      histogram = LatencyHistogram()
      operations = 0
      current = next
    }
  }

  /// The recorder of a thread, by its number from 0.
  package func recorder(_ thread: Int) -> Recorder { Recorder(self, thread) }

  private func add(_ slots: [Int]) {
    state.withLock { state in
      while state.slots.count < slots.count { state.slots.append(0) }
      for (index, count) in slots.enumerated() { state.slots[index] += count }
    }
  }

  private func add(
    _ histogram: LatencyHistogram, _ operations: Int, from thread: Int, in index: Int, next: Int
  ) {
    state.withLock { state in
      if histogram.count > 0 {
        var found = state.open[index] ?? (LatencyHistogram(), 0)
        found.histogram.add(histogram)
        found.operations += operations
        state.open[index] = found
        state.total.add(histogram)
        state.operations += operations
      }
      state.positions[thread] = next
      // No thread can add to these any more.
      let least = state.positions.min() ?? 0
      for (index, found) in state.open where index < least {
        state.closed[index] = Interval(found.histogram, operations: found.operations)
        state.open[index] = nil
      }
    }
  }

  /// What all threads did. Call it after all recorders have finished.
  package func outcome() -> (
    intervals: [Interval], total: LatencyHistogram, operations: Int, slots: [Int]
  ) {
    state.withLock { state in
      let count = (state.closed.keys.max() ?? -1) + 1
      let intervals = (0..<count).map { state.closed[$0] ?? Interval() }
      return (intervals, state.total, state.operations, state.slots)
    }
  }
}
