#if canImport(Glibc)
  import Glibc
#endif

/// Writing to a place of a file.
public enum FileWriting {
  /// Writes all of the bytes, going on where the system stops early. False when it can't; `errno` says why, `EIO` where the
  /// system doesn't. Any thread.
  public static func writeAll(_ bytes: UnsafeRawBufferPointer, at offset: Int, to descriptor: Int32) -> Bool {
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
