#if canImport(Glibc)
  import Glibc
#endif

/// The resources that this process uses besides time, from the kernel.
package enum ProcessUsage {
  /// The data that went through system calls so far, from `/proc/self/io`.
  ///
  /// `wchar` counts every `write` and `pwrite`, including overwrites of a page that is still in memory. It is
  /// therefore exact and the same in every run. The other counter, `write_bytes`, counts pages when they
  /// become dirty, so it depends on when the kernel writes them back. Stores into a shared mapping aren't in
  /// `wchar`, but no engine writes its data that way. Reads of a mapping aren't in `rchar`, and LMDB reads
  /// only that way.
  struct Transfers {
    /// `rchar`: bytes requested from the kernel by `read` and similar calls.
    var bytesRead: Int
    /// `wchar`: bytes passed to the kernel by `write` and similar calls.
    var bytesWritten: Int
    /// `syscr` plus `syscw`: the number of these calls.
    var calls: Int
    /// `read_bytes`: bytes read from the disk, including pages of mapped files; nil if the kernel doesn't
    /// count them.
    var diskBytesRead: Int?
    /// `write_bytes`: bytes given to the disk, including pages of mapped files; nil if the kernel doesn't count them.
    var diskBytesWritten: Int?

    /// The totals so far; nil if the kernel doesn't report them. This call itself makes 1 or 2 reads of about
    /// a hundred bytes.
    static func current() -> Transfers? {
      guard let text = TextFile.read("/proc/self/io"),
        let read = field("rchar:", in: text), let written = field("wchar:", in: text),
        let reads = field("syscr:", in: text), let writes = field("syscw:", in: text)
      else { return nil }
      return Transfers(
        bytesRead: read, bytesWritten: written, calls: reads + writes,
        diskBytesRead: field("\nread_bytes:", in: text), diskBytesWritten: field("\nwrite_bytes:", in: text))
    }
  }

  /// The bytes that this process has passed to the kernel so far; nil if the kernel doesn't report them.
  package static func bytesWritten() -> Int? { Transfers.current()?.bytesWritten }

  /// The bytes that this process has given to the disk so far, `write_bytes` of `/proc/self/io`: pages when they become
  /// dirty. 0 on file systems in memory; nil if the kernel doesn't report them.
  package static func diskBytesWritten() -> Int? { Transfers.current()?.diskBytesWritten }

  /// The resident memory now, in bytes: `VmRSS` of `/proc/self/status`.
  package static func residentMemory() -> Int? { field("VmRSS:", of: "/proc/self/status").map { $0 * 1_024 } }

  /// The greatest resident memory since the last `resetPeakMemory`, or since the process started, in bytes:
  /// `VmHWM` of `/proc/self/status`. It includes resident pages of mapped files.
  package static func peakMemory() -> Int? { field("VmHWM:", of: "/proc/self/status").map { $0 * 1_024 } }

  /// The anonymous resident memory in bytes, without pages of mapped files: `RssAnon` of `/proc/self/status`.
  package static func anonymousMemory() -> Int? {
    field("RssAnon:", of: "/proc/self/status").map { $0 * 1_024 }
  }

  /// The anonymous resident memory of another process, in bytes; nil if it has ended.
  package static func anonymousMemory(of process: pid_t) -> Int? {
    field("RssAnon:", of: "/proc/\(process)/status").map { $0 * 1_024 }
  }

  /// Resets the peak to the memory that is resident now, by writing 5 to `/proc/self/clear_refs`. Returns
  /// false if the kernel doesn't allow it. The peak is then that of the whole process so far.
  @discardableResult
  package static func resetPeakMemory() -> Bool {
    let descriptor = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return write(descriptor, "5", 1) == 1
  }

  /// The number after `name` in a file of lines.
  private static func field(_ name: String, of path: String) -> Int? {
    TextFile.read(path).flatMap { field(name, in: $0) }
  }

  private static func field(_ name: String, in text: String) -> Int? {
    guard let start = text.firstRange(of: name)?.upperBound else { return nil }
    let digits = text[start...].drop { $0 == " " || $0 == "\t" }.prefix { $0.isNumber }
    return Int(digits)
  }
}

/// Reads small text files whose size isn't known, such as those of `/proc`.
enum TextFile {
  static func read(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 16 << 10)
    while true {
      let count = Glibc.read(descriptor, &piece, piece.count)
      if count <= 0 { return count < 0 ? nil : String(decoding: bytes, as: UTF8.self) }
      bytes += piece[..<count]
    }
  }
}
