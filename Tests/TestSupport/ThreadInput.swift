import Foundation

/// The number of read calls of the current thread so far, from the system; nil if the system doesn't count
/// them.
package func readCallsOfThread() -> Int? {
  // Foundation's own reads of this file count too.
  guard let text = try? String(contentsOfFile: "/proc/thread-self/io", encoding: .utf8) else { return nil }
  for line in text.split(separator: "\n") where line.hasPrefix("syscr: ") {
    return Int(line.dropFirst("syscr: ".count))
  }
  return nil
}
