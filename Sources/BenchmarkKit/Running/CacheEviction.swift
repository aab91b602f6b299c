#if canImport(Glibc)
  import Glibc
#endif

/// Puts the processor's caches into the same state before every run.
///
/// Runs take turns on the same files: of an engine and its limit, the one that comes second would find in the
/// caches what the first one read. Writing more memory than any cache holds leaves both with nothing.
public enum CacheEviction {
  /// More than the last-level cache of common machines, in bytes.
  private static let byteCount = 96 << 20

  /// Takes about 20 ms. The memory is given back.
  public static func run() {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE
    guard let memory = mmap(nil, byteCount, PROT_READ | PROT_WRITE, flags, -1, 0), memory != MAP_FAILED else {
      return
    }
    // The pages were zeroed by the kernel; writing a byte a line makes sure that they went through the caches.
    for offset in stride(from: 0, to: byteCount, by: 64) {
      memory.storeBytes(of: 1, toByteOffset: offset, as: UInt8.self)
    }
    munmap(memory, byteCount)
  }
}
