/// Sequences in their order, each with a task that ends at some time. It knows the last sequence up to which all tasks
/// have ended: what a checkpoint may say.
struct SequenceQueue<Sequence: Sendable> {
  /// Identifies a task.
  typealias Ticket = Int

  private var entries: [(sequence: Sequence, isDone: Bool)] = []
  /// The entries before this one have left the queue.
  private var head = 0
  /// The ticket of the first entry in `entries`.
  private var base: Ticket = 0
  /// The last sequence up to which all tasks have ended.
  private(set) var reached: Sequence?
  /// The number of tasks that haven't ended.
  private(set) var open = 0

  init(reached: Sequence? = nil) { self.reached = reached }

  /// Adds a task after all others.
  mutating func append(_ sequence: Sequence) -> Ticket {
    entries.append((sequence, false))
    open += 1
    return base + entries.count - 1
  }

  /// Adds a sequence that has nothing to do.
  mutating func pass(_ sequence: Sequence) {
    if head == entries.count {
      reached = sequence
    } else {
      entries.append((sequence, true))
    }
  }

  /// Ends a task. A second call with the same ticket does nothing.
  mutating func complete(_ ticket: Ticket) {
    let index = ticket - base
    guard index >= head, index < entries.count, !entries[index].isDone else { return }
    entries[index].isDone = true
    open -= 1
    while head < entries.count, entries[head].isDone {
      reached = entries[head].sequence
      head += 1
    }
    if head == entries.count {
      base += entries.count
      entries.removeAll(keepingCapacity: true)
      head = 0
    } else if head >= 1024, head * 2 >= entries.count {
      entries.removeFirst(head)
      base += head
      head = 0
    }
  }
}
