import Foundation

/// The number of read calls of the current thread so far, from the system; nil if the system doesn't count
/// them.
package func readCallsOfThread() -> Int? { inputOfThread("syscr") }

/// The number of bytes that the current thread has read from files so far; nil in the same case.
package func bytesReadByThread() -> Int? { inputOfThread("rchar") }

private func inputOfThread(_ counter: String) -> Int? {
  // Foundation's own reads of this file count too.
  guard let text = try? String(contentsOfFile: "/proc/thread-self/io", encoding: .utf8) else { return nil }
  for line in text.split(separator: "\n") where line.hasPrefix("\(counter): ") {
    return Int(line.dropFirst(counter.count + 2))
  }
  return nil
}
