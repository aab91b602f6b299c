import Encryption

extension BlobWriter {
  /// Writes what is left of `reader`, in constant memory. `onProgress` is told the bytes of each piece; what it throws
  /// ends the copy. Throws `damaged` where the blob was changed, as the reader does.
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
