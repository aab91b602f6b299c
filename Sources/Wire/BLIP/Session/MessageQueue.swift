/// Messages whose next frame may be sent, in the order of sending.
///
/// The queue is a round robin: a message is taken from the front, gives a frame, and goes to the end if it has more. An
/// urgent message goes behind the last urgent one instead, with one other message in between, so that neither kind starves
/// the other. It never goes before a message that hasn't begun if it hasn't begun itself: messages begin in the order in
/// which they were sent. Urgent ones also end in that order, unless one has to wait for an ACK: one that has begun goes before those
/// that haven't. Lists of changes are urgent, and so is the message that there are no more.
struct MessageQueue {
  private var messages: [OutgoingMessage] = []
  private var head = 0

  var isEmpty: Bool { head == messages.count }
  var first: OutgoingMessage? { isEmpty ? nil : messages[head] }
  /// All that are in the queue.
  var all: ArraySlice<OutgoingMessage> { messages[head...] }

  mutating func enqueue(_ message: OutgoingMessage) {
    message.place = .queued
    if message.isUrgent {
      messages.insert(message, at: place(of: message))
    } else {
      messages.append(message)
    }
  }

  private func place(of message: OutgoingMessage) -> Int {
    var index = messages.count
    var end = index
    while index > head {
      index -= 1
      let other = messages[index]
      if other.isUrgent {
        if message.hasBegun, !other.hasBegun { end = index } else { return min(index + 2, end) }
      } else if !message.hasBegun, !other.hasBegun {
        return index + 1
      }
    }
    return min(index + 1, end)
  }

  mutating func popFirst() -> OutgoingMessage? {
    guard !isEmpty else { return nil }
    let message = messages[head]
    message.place = .nowhere
    head += 1
    if head == messages.count {
      messages.removeAll(keepingCapacity: head <= 1024)
      head = 0
    } else if head >= 256, head * 2 >= messages.count {
      messages.removeFirst(head)
      head = 0
    }
    return message
  }
}
