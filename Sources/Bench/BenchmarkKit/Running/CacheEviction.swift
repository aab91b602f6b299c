#if canImport(Glibc)
  import Glibc
#endif

/// Puts the processor's caches into the same state before every run.
///
/// Runs take turns on the same files. Without this, the second of an engine and its limit would find cached
/// what the first one read. Writing more memory than the caches hold evicts everything else.
package enum CacheEviction {
  /// The number of bytes to write, more than the last-level cache of common machines.
  private static let byteCount = 96 << 20

  /// Evicts the caches. Takes about 20 ms and frees its memory again.
  package static func run() {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE
    guard let memory = mmap(nil, byteCount, PROT_READ | PROT_WRITE, flags, -1, 0), memory != MAP_FAILED else {
      return
    }
    // The kernel has zeroed the pages. Writing one byte per line makes sure that they go through the caches.
    for offset in stride(from: 0, to: byteCount, by: 64) {
      memory.storeBytes(of: 1, toByteOffset: offset, as: UInt8.self)
    }
    munmap(memory, byteCount)
  }
}
