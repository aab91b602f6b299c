import FoundationEssentials

#if canImport(Glibc)
  import Glibc
#endif

/// The processes of PostgreSQL on this machine.
enum ServerProcesses {
  /// The processor time that they have used, those that have ended included, in nanoseconds. 0 if there are none, as when the
  /// server is on another machine.
  static func cpuNanoseconds() -> UInt64 {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    let sum = names.filter { Int($0) != nil }.reduce(0 as UInt64) { $0 + ticks(of: $1) }
    return sum * 1_000_000_000 / UInt64(max(1, sysconf(Int32(_SC_CLK_TCK))))
  }

  /// A line of `/proc/N/stat`: number, name in parentheses, and from the state on, the third field, numbers. Fields 14 to 17 are the
  /// time of the process and that of its children that have ended, each in user and system mode.
  private static func ticks(of process: String) -> UInt64 {
    guard let line = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
      let end = line.lastIndex(of: ")"), line[..<end].hasSuffix("(postgres")
    else { return 0 }
    let fields = line[line.index(after: end)...].split(separator: " ")
    guard fields.count > 14 else { return 0 }
    return fields[11...14].reduce(0) { $0 + (UInt64($1) ?? 0) }
  }
}
