import Encryption

extension BlobWriter {
  /// Writes the remaining bytes of `reader`, in constant memory. `onProgress` is called with the number of
  /// bytes of each piece. An error of `onProgress` ends the copy. Throws `damaged` when the reader finds that
  /// the blob was changed.
  public func write(contentsOf reader: BlobReader, onProgress: (Int) throws -> Void = { _ in }) throws {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: SealedFormat.chunkBytes * 4, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try reader.read(into: buffer)
      guard count > 0 else { return }
      try write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      try onProgress(count)
    }
  }
}
