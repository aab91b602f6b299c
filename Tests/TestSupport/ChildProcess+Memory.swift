import ChildProcesses
import Foundation

extension ChildProcess {
  /// The memory of the process that isn't backed by files, in bytes.
  package var anonymousBytes: Int {
    let status = (try? String(contentsOfFile: "/proc/\(identifier)/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
    return (line.flatMap { Int($0.filter(\.isNumber)) } ?? 0) << 10
  }
}
