import CFileSystem

/// The way of a large new file to the disk, which begins while the file is still written: the sync at the end finds less
/// to do.
public enum WriteBehind {
  /// So much goes at a time, on whole multiples of it.
  private static let stepBytes = 8 << 20
  /// `SYNC_FILE_RANGE_WRITE`: begins, and waits for nothing.
  private static let begins: UInt32 = 2

  /// To be called when a part of the file was written, from its beginning on or nearly so. Nothing depends on it but
  /// time: a file is on the disk when it was synced. Any thread.
  public static func note(_ descriptor: Int32, offset: Int, count: Int) {
    let step = (offset + count) / stepBytes
    guard step > offset / stepBytes else { return }
    _ = sync_file_range(descriptor, (step - 1) * stepBytes, stepBytes, begins)
  }
}
