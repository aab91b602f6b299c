extension Gate {
  /// The allowed slowdowns, as shares: 0.1 is 10%.
  package struct Thresholds: Sendable {
    /// For instructions, and for processor time divided by the limit's.
    package var processor: Double
    /// For wall-clock time divided by the limit's, for workloads that wait for the disk. Their times vary
    /// more.
    package var waiting: Double
    /// Thresholds of some workloads. The last one that fits a workload holds for it.
    package var exceptions: [Exception] = []

    /// Makes thresholds. The default of `waiting` is three times `processor`.
    package init(processor: Double = 0.1, waiting: Double? = nil) {
      self.processor = processor
      self.waiting = waiting ?? processor * 3
    }

    /// The thresholds of a workload on an engine, by the identity of its result.
    func of(_ identity: String) -> (processor: Double, waiting: Double) {
      let exception = exceptions.last { $0.fits(identity) }
      return exception.map { ($0.processor, $0.waiting) } ?? (processor, waiting)
    }
  }

  /// The thresholds of the workloads whose identities fit a pattern.
  package struct Exception: Equatable, Sendable {
    /// The identity of a result, `suite workload (parameters) on engine`, in which `*` stands for any text.
    package let pattern: String
    /// As in `Thresholds`.
    package let processor: Double
    /// As in `Thresholds`.
    package let waiting: Double

    func fits(_ identity: String) -> Bool { Self.fits(Array(identity.utf8)[...], Array(pattern.utf8)[...]) }

    /// Each `*` takes as little as it can, and more when the rest doesn't fit.
    private static func fits(_ text: ArraySlice<UInt8>, _ pattern: ArraySlice<UInt8>) -> Bool {
      var text = text
      var pattern = pattern
      var again: (text: ArraySlice<UInt8>, pattern: ArraySlice<UInt8>)?
      while true {
        if pattern.first == UInt8(ascii: "*") {
          pattern = pattern.dropFirst()
          again = (text, pattern)
        } else if let byte = text.first, byte == pattern.first {
          text = text.dropFirst()
          pattern = pattern.dropFirst()
        } else if text.isEmpty, pattern.isEmpty {
          return true
        } else if let last = again, !last.text.isEmpty {
          text = last.text.dropFirst()
          pattern = last.pattern
          again = (text, pattern)
        } else {
          return false
        }
      }
    }
  }

  /// A line of a file of thresholds that can't be read.
  package struct ThresholdsError: Error, Equatable, CustomStringConvertible {
    /// From 1.
    package let line: Int
    package let reason: String
    package var description: String { "line \(line): \(reason)" }
  }
}

extension Gate.Thresholds {
  /// Reads lines `PERCENT PATTERN` or `PERCENT/PERCENT PATTERN`. The second percentage is for workloads that wait for the disk;
  /// three times the first if it is left out. Empty lines and lines that begin with `#` are skipped.
  /// Throws a `Gate.ThresholdsError`.
  package mutating func addExceptions(_ text: String) throws {
    for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let words = line.split(whereSeparator: \.isWhitespace)
      guard let first = words.first, !first.hasPrefix("#") else { continue }
      func failure(_ reason: String) -> Gate.ThresholdsError { .init(line: number + 1, reason: reason) }
      let shares = try first.split(separator: "/", omittingEmptySubsequences: false).map { text in
        guard let percent = Double(text), 0.1...1_000 ~= percent else {
          throw failure("'\(text)' isn't a percentage from 0.1 to 1000")
        }
        return percent / 100
      }
      guard shares.count <= 2 else { throw failure("'\(first)' has more than two percentages") }
      guard words.count > 1 else {
        throw failure("the name of a workload is missing, as in '5 travel insert *'")
      }
      exceptions.append(
        Gate.Exception(
          pattern: words.dropFirst().joined(separator: " "), processor: shares[0],
          waiting: shares.count == 2 ? shares[1] : shares[0] * 3))
    }
  }
}
