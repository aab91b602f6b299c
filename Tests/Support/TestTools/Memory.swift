import ChildProcesses
import Foundation

/// A number of `/proc/PROCESS/status` that counts KiB, in bytes; 0 if it isn't there.
package func memoryBytes(_ name: String, of process: String = "self") -> Int {
  let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
  let line = status.split(separator: "\n").first { $0.hasPrefix(name) }
  return (line.flatMap { Int($0.filter(\.isNumber)) } ?? 0) << 10
}

extension ChildProcess {
  /// The memory of the process that isn't backed by files, in bytes.
  package var anonymousBytes: Int { memoryBytes("RssAnon:", of: "\(identifier)") }

  /// The most resident memory that the process has had so far, in bytes.
  package var peakBytes: Int { memoryBytes("VmHWM:", of: "\(identifier)") }
}
