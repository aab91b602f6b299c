#if canImport(Glibc)
  import Glibc
#endif

/// Counts how often a directory itself is opened, which nobody needs who knows the names in it: it is what a sync of the
/// directory begins with.
public final class DirectoryWatch {
  private let descriptor: Int32

  /// Begins to watch. Nil where the system can't.
  public init?(_ directory: String) {
    descriptor = inotify_init1(Int32(O_NONBLOCK | O_CLOEXEC))
    guard descriptor >= 0, inotify_add_watch(descriptor, directory, UInt32(IN_OPEN)) >= 0 else { return nil }
  }

  deinit { close(descriptor) }

  /// How often it was opened since the last call. Of the files in it nothing counts.
  public func opens() -> Int {
    var count = 0
    withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 8) { buffer in
      while true {
        let size = read(descriptor, buffer.baseAddress, buffer.count)
        guard size > 0 else { return }
        var offset = 0
        while offset + 16 <= size {
          let mask = buffer.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
          let nameBytes = Int(buffer.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
          if nameBytes == 0, mask & UInt32(IN_OPEN) != 0 { count += 1 }
          offset += 16 + nameBytes
        }
      }
    }
    return count
  }
}
