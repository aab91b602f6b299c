// Whether what several threads and processes did with one document can be put in one order (linearizability).

import Foundation

/// What was done with a register: a document with one number. Every write is one of a number that nobody else
/// writes, on top of a number that its writer knows.
///
/// So the writes that succeeded form one chain, and an order exists if every one of them can be given a moment
/// between its call and its return, in the order of the chain, such that each read and each refusal has a
/// moment, too, at which it was right.
package struct RegisterHistory: Sendable {
  package enum Outcome: Equatable, Sendable {
    /// The register was read.
    case read(Int)
    /// `value` was written on top of `base`.
    case wrote(Int, on: Int)
    /// A write on top of this number was refused, because another one was there.
    case refused(on: Int)
  }

  package struct Operation: Equatable, Sendable {
    /// Nanoseconds of the machine's monotonic clock, which all processes share.
    package var called: UInt64
    package var returned: UInt64
    package var outcome: Outcome

    package init(_ called: UInt64, _ returned: UInt64, _ outcome: Outcome) {
      (self.called, self.returned, self.outcome) = (called, returned, outcome)
    }
  }

  package var operations: [Operation] = []

  package init(_ operations: [Operation] = []) { self.operations = operations }

  package static var now: UInt64 { clock_gettime_nsec(CLOCK_MONOTONIC) }

  /// Calls `body` and notes what it returns, unless that is nil.
  package mutating func note(_ body: () throws -> Outcome?) rethrows {
    let called = Self.now
    if let outcome = try body() { operations.append(Operation(called, Self.now, outcome)) }
  }

  /// Says why there is no order, or returns nil if there is one. `first` is the number before all writes.
  package func fault(from first: Int = 0) -> String? {
    var writes: [Int: (value: Int, operation: Operation)] = [:]
    for operation in operations {
      guard case .wrote(let value, let base) = operation.outcome else { continue }
      if let other = writes[base] {
        return "\(value) and \(other.value) were both written on top of \(base): one of them is lost"
      }
      writes[base] = (value, operation)
    }
    // The chain, and for each number when it came and when it went at the earliest and at the latest.
    var chain = [first]
    var earliest: [UInt64] = [0]
    var latest: [UInt64] = [0]
    while let next = writes.removeValue(forKey: chain[chain.count - 1]) {
      chain.append(next.value)
      earliest.append(next.operation.called)
      latest.append(next.operation.returned)
    }
    if let lost = writes.first {
      return "\(lost.value.value) was written on top of \(lost.key), which nobody else has seen"
    }
    let places = Dictionary(uniqueKeysWithValues: chain.enumerated().map { ($1, $0) })
    for operation in operations {
      guard case .read(let value) = operation.outcome else { continue }
      guard let place = places[value] else { return "\(value) was read, which nobody has written" }
      latest[place] = min(latest[place], place == 0 ? 0 : operation.returned)
      if place + 1 < chain.count { earliest[place + 1] = max(earliest[place + 1], operation.called) }
    }
    // A refused write was called when its base was read, so another number must have come before it returned.
    for operation in operations {
      guard case .refused(let base) = operation.outcome, let place = places[base],
        operation.called > latest[place]
      else { continue }
      guard place + 1 < chain.count else {
        return "a write on top of \(base) was refused, but nothing was written after \(base)"
      }
      latest[place + 1] = min(latest[place + 1], operation.returned)
    }
    var moment: UInt64 = 0
    for place in 1..<max(1, chain.count) {
      moment = max(moment, earliest[place])
      if moment > latest[place] {
        return """
          \(chain[place]), written on top of \(chain[place - 1]), was seen \(moment - latest[place]) ns before \
          what came before it was gone
          """
      }
    }
    return nil
  }
}

private func clock_gettime_nsec(_ clock: clockid_t) -> UInt64 {
  var time = timespec()
  clock_gettime(clock, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

extension RegisterHistory.Operation: LosslessStringConvertible {
  /// The operation as a line, for another process.
  package var description: String {
    let words: String
    switch outcome {
    case .read(let value): words = "read \(value) 0"
    case .wrote(let value, let base): words = "wrote \(value) \(base)"
    case .refused(let base): words = "refused 0 \(base)"
    }
    return "\(called) \(returned) \(words)"
  }

  package init?(_ line: String) {
    let parts = line.split(separator: " ")
    guard parts.count == 5, let called = UInt64(parts[0]), let returned = UInt64(parts[1]),
      let value = Int(parts[3]), let base = Int(parts[4])
    else { return nil }
    switch parts[2] {
    case "read": self.init(called, returned, .read(value))
    case "wrote": self.init(called, returned, .wrote(value, on: base))
    case "refused": self.init(called, returned, .refused(on: base))
    default: return nil
    }
  }
}
