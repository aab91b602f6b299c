import ChildProcesses
import Foundation

extension ChildProcess {
  /// The memory of the process that isn't backed by files, in bytes.
  package var anonymousBytes: Int { status("RssAnon:") }

  /// The most resident memory that the process has had so far, in bytes.
  package var peakBytes: Int { status("VmHWM:") }

  /// A line of its status that counts KiB, in bytes.
  private func status(_ name: String) -> Int {
    let status = (try? String(contentsOfFile: "/proc/\(identifier)/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix(name) }
    return (line.flatMap { Int($0.filter(\.isNumber)) } ?? 0) << 10
  }
}
