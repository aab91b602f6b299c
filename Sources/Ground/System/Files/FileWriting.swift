#if canImport(Glibc)
  import Glibc
#endif

/// Writes at an offset of a file.
package enum FileWriting {
  /// Writes all bytes at an offset, and repeats writes that the system cut short.
  ///
  /// Returns false on failure. `errno` then has the reason, or `EIO` if the system gave none. May be called
  /// on any thread.
  package static func writeAll(_ bytes: UnsafeRawBufferPointer, at offset: Int, to descriptor: Int32) -> Bool
  {
    guard let start = bytes.baseAddress else { return true }
    var done = 0
    while done < bytes.count {
      let count = pwrite(descriptor, start + done, bytes.count - done, offset + done)
      if count < 0, errno == EINTR { continue }
      if count == 0 { errno = EIO }
      guard count > 0 else { return false }
      done += count
    }
    return true
  }
}
