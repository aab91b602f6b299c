import Bytes
import FoundationEssentials

#if canImport(Glibc)
  import Glibc
#endif

/// The machine of a measurement.
public struct Machine: Codable, Equatable, Sendable {
  /// The processor's model name.
  public var cpu: String
  /// The number of processors available to this process.
  public var cores: Int
  /// The size of its memory, in bytes.
  public var memoryBytes: Int
  /// The operating system and its kernel: `Debian GNU/Linux 12 (bookworm), Linux 6.1.0`.
  public var os: String
  /// The file system of the databases: `ext4`.
  public var filesystem: String

  private enum CodingKeys: String, CodingKey {
    case cpu
    case cores
    case memoryBytes = "memory_bytes"
    case os
    case filesystem
  }

  /// Makes a description.
  public init(cpu: String, cores: Int, memoryBytes: Int, os: String, filesystem: String) {
    self.cpu = cpu
    self.cores = cores
    self.memoryBytes = memoryBytes
    self.os = os
    self.filesystem = filesystem
  }

  /// Describes this machine, with the file system of `directory`.
  public static func current(directory: String) -> Machine {
    Machine(
      cpu: value(of: "model name", in: "/proc/cpuinfo", separator: ":") ?? architecture(),
      cores: ProcessInfo.processInfo.activeProcessorCount,
      memoryBytes: Int(clamping: ProcessInfo.processInfo.physicalMemory),
      os: system(), filesystem: filesystem(of: directory))
  }

  private static func value(of name: String, in path: String, separator: Character) -> String? {
    guard let text = TextFile.read(path) else { return nil }
    for line in text.split(separator: "\n") where line.hasPrefix(name) {
      guard let position = line.firstIndex(of: separator) else { continue }
      let value = line[line.index(after: position)...].trimming()
      return String(value.trimming { $0 == "\"" })
    }
    return nil
  }

  private static func names() -> (kernel: String, machine: String) {
    var names = utsname()
    guard uname(&names) == 0 else { return ("unknown", "unknown") }
    return (
      text(&names.sysname) + " " + text(&names.release), text(&names.machine)
    )
  }

  /// The text of a C array, which Swift imports as a tuple.
  private static func text<Tuple>(_ tuple: inout Tuple) -> String {
    withUnsafeBytes(of: &tuple) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }

  private static func architecture() -> String { names().machine }

  private static func system() -> String {
    let name = value(of: "PRETTY_NAME", in: "/etc/os-release", separator: "=")
    return [name, names().kernel].compactMap { $0 }.joined(separator: ", ")
  }

  /// The type of the mount with the longest path that contains `directory`. In a line of
  /// `/proc/self/mountinfo` the fifth field is the path. The type comes after a single dash.
  private static func filesystem(of directory: String) -> String {
    let path = URL(fileURLWithPath: directory).resolvingSymlinksInPath().path
    guard let mounts = TextFile.read("/proc/self/mountinfo") else { return "unknown" }
    var best = (length: -1, type: "unknown")
    for line in mounts.split(separator: "\n") {
      let fields = line.split(separator: " ")
      guard fields.count > 4, let dash = fields.firstIndex(of: "-"), dash + 1 < fields.count else { continue }
      let mount = fields[4] == "/" ? "" : String(fields[4])
      guard path == mount || path.hasPrefix(mount + "/"), mount.count >= best.length else { continue }
      best = (mount.count, String(fields[dash + 1]))
    }
    return best.type
  }
}
