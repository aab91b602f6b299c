/// Sequences in their order, each with a task that ends at some time. It knows the last sequence up to which all tasks
/// have ended: what a checkpoint may say.
///
/// It keeps what is open, and of the others at most as many and 64, however many sequences have passed. Behind a task that
/// won't end any more it keeps nothing.
struct SequenceQueue<Sequence: Sendable> {
  /// Identifies a task.
  typealias Ticket = Int

  /// A task, with the sequence before its own: what is reached when all before it have ended.
  private struct Entry {
    let ticket: Ticket
    let before: Sequence?
    var isDone = false
  }

  /// In the order of their tickets. The one at `head` is open.
  private var entries: [Entry] = []
  /// The entries before this one have left the queue.
  private var head = 0
  private var nextTicket: Ticket = 0
  /// The last sequence that was added.
  private var last: Sequence?
  /// Whether a task at the place `head` or behind the last entry won't end: nothing behind it matters.
  private(set) var isStuck = false
  /// The last sequence up to which all tasks have ended.
  private(set) var reached: Sequence?
  /// The number of tasks that may still end and move `reached`.
  private(set) var open = 0

  init(reached: Sequence? = nil) {
    self.reached = reached
    last = reached
  }

  /// The number of entries that are kept.
  var count: Int { entries.count }

  /// Adds a task after all others.
  mutating func append(_ sequence: Sequence) -> Ticket {
    defer { nextTicket += 1 }
    guard !isStuck else { return nextTicket }
    entries.append(Entry(ticket: nextTicket, before: last))
    last = sequence
    open += 1
    return nextTicket
  }

  /// Adds a sequence that has nothing to do.
  mutating func pass(_ sequence: Sequence) {
    guard !isStuck else { return }
    last = sequence
    if open == 0 { reached = sequence }
  }

  /// Ends a task. A second call with the same ticket does nothing.
  mutating func complete(_ ticket: Ticket) {
    guard let index = index(ticket) else { return }
    entries[index].isDone = true
    open -= 1
    if index == head { advance() } else { compact() }
  }

  /// Says that a task won't end as long as there is this queue: `reached` stays before its sequence.
  mutating func abandon(_ ticket: Ticket) {
    guard let index = index(ticket) else { return }
    // Its predecessors go on to move what is reached, up to the sequence before its own.
    last = entries[index].before
    isStuck = true
    open -= entries[index...].count { !$0.isDone }
    entries.removeSubrange(index...)
    if index == head { advance() } else { compact() }
  }

  /// The place of a task that hasn't ended.
  private func index(_ ticket: Ticket) -> Int? {
    var (low, high) = (head, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].ticket < ticket { low = middle + 1 } else { high = middle }
    }
    guard low < entries.count, entries[low].ticket == ticket, !entries[low].isDone else { return nil }
    return low
  }

  /// Moves the head to the next open task.
  private mutating func advance() {
    while head < entries.count, entries[head].isDone { head += 1 }
    reached = head < entries.count ? entries[head].before : last
    compact()
  }

  /// Forgets what has ended when it is more than what is open.
  private mutating func compact() {
    guard entries.count > 64, entries.count > 2 * open else { return }
    entries.removeAll { $0.isDone }
    head = 0
  }
}
