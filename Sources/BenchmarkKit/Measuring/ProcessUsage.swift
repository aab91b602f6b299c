#if canImport(Glibc)
  import Glibc
#endif

/// What the kernel says this process has used, besides time.
public enum ProcessUsage {
  /// What went through system calls so far, as `/proc/self/io` counts it.
  ///
  /// `wchar` counts every `write` and `pwrite`, also those that overwrite a page that is still in memory, so it is
  /// exact and the same in every run. The file's other counter, `write_bytes`, counts pages as they become
  /// dirty, and depends on when the kernel writes them back. Stores into a shared mapping are not in `wchar`; none
  /// of the engines writes its data that way. Reads of a mapping are not in `rchar`, and LMDB reads nothing else.
  struct Transfers {
    /// `rchar`: bytes asked of the kernel by `read` and its kin.
    var bytesRead: Int
    /// `wchar`: bytes handed to the kernel by `write` and its kin.
    var bytesWritten: Int
    /// `syscr` and `syscw`: calls of both.
    var calls: Int
    /// `read_bytes`: bytes that were fetched from the disk, also for pages of mapped files; nil where it isn't counted.
    var diskBytesRead: Int?

    /// So far; nil when the kernel doesn't tell. The call itself reads: 1 or 2 calls of about a hundred bytes.
    static func current() -> Transfers? {
      guard let text = TextFile.read("/proc/self/io"),
        let read = field("rchar:", in: text), let written = field("wchar:", in: text),
        let reads = field("syscr:", in: text), let writes = field("syscw:", in: text)
      else { return nil }
      return Transfers(
        bytesRead: read, bytesWritten: written, calls: reads + writes,
        diskBytesRead: field("read_bytes:", in: text))
    }
  }

  /// Bytes that this process has handed to the kernel to write so far; nil when the kernel doesn't tell.
  public static func bytesWritten() -> Int? { Transfers.current()?.bytesWritten }

  /// Resident memory now, in bytes: `VmRSS` of `/proc/self/status`.
  public static func residentMemory() -> Int? { field("VmRSS:", of: "/proc/self/status").map { $0 * 1_024 } }

  /// The greatest resident memory in bytes since the last `resetPeakMemory`, or since the process began:
  /// `VmHWM` of `/proc/self/status`. Pages of files that are mapped count as far as they are resident.
  public static func peakMemory() -> Int? { field("VmHWM:", of: "/proc/self/status").map { $0 * 1_024 } }

  /// Resident memory in bytes that is the process's own, without pages of mapped files: `RssAnon` of
  /// `/proc/self/status`.
  public static func anonymousMemory() -> Int? {
    field("RssAnon:", of: "/proc/self/status").map { $0 * 1_024 }
  }

  /// Sets the peak back to what is resident now, by writing 5 to `/proc/self/clear_refs`. False when the kernel
  /// doesn't allow it; the peak is then that of the process so far.
  @discardableResult
  public static func resetPeakMemory() -> Bool {
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

/// Small text files, of `/proc` above all, which say nothing of their size.
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
