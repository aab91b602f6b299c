/// Tells when a process has become quiet: for a second it used little processor time and wrote little.
package struct QuietDetector {
  /// The state of a process at a time. All numbers grow.
  package struct Look {
    /// Seconds from any start.
    package let time: Double
    /// The processor time of all threads, in seconds.
    package let cpu: Double
    /// The bytes that it has written.
    package let written: Int

    /// Makes a look. See the properties.
    package init(time: Double, cpu: Double, written: Int) {
      self.time = time
      self.cpu = cpu
      self.written = written
    }
  }

  /// The length of the quiet time in seconds.
  package let window: Double
  /// The processor time per second that a quiet process may use. Looking itself takes some.
  package static let busyShare = 0.03
  /// The bytes per second that a quiet process may write.
  package static let bytesPerSecond = 65_536.0

  private var looks: [Look] = []

  /// A detector that waits for a quiet time of `window` seconds.
  package init(window: Double = 1) { self.window = window }

  /// Adds a look at a later time. Returns when the quiet time began, if there is one.
  package mutating func add(_ look: Look) -> Double? {
    looks.append(look)
    // The latest look that is a whole window before.
    while looks.count > 1, look.time - looks[1].time >= window { looks.removeFirst() }
    let first = looks[0]
    let seconds = look.time - first.time
    guard seconds >= window else { return nil }
    let isQuiet =
      look.cpu - first.cpu <= Self.busyShare * seconds
      && Double(look.written - first.written) <= Self.bytesPerSecond * seconds
    return isQuiet ? first.time : nil
  }
}
