import Foundation

/// Counts the opens of a directory itself. A sync of the directory opens it; access to a file by its name
/// doesn't.
package final class DirectoryWatch {
  private let descriptor: Int32

  /// Starts to watch. Nil if the system doesn't support it.
  package init?(_ directory: String) {
    descriptor = inotify_init1(Int32(O_NONBLOCK | O_CLOEXEC))
    guard descriptor >= 0, inotify_add_watch(descriptor, directory, UInt32(IN_OPEN)) >= 0 else { return nil }
  }

  deinit { close(descriptor) }

  /// Returns the number of opens since the last call. Opens of files in the directory don't count.
  package func opens() -> Int {
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
