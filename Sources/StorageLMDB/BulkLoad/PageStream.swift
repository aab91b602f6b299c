import Glibc
import Storage

/// Numbers pages, in order behind those that a file has, and writes them many at a time. One thread.
final class PageStream {
  /// Few enough for a processor's cache.
  private static let bufferPages = 64

  private let descriptor: Int32
  private let path: String
  private let memory = UnsafeMutableRawPointer.allocate(
    byteCount: PageStream.bufferPages * RecordFormat.pageBytes, alignment: RecordFormat.pageBytes)
  @exclusivity(unchecked) private var pages = 0
  /// The number of the next page.
  @exclusivity(unchecked) private(set) var following: UInt64

  init(_ descriptor: Int32, path: String, following: UInt64) {
    self.descriptor = descriptor
    self.path = path
    self.following = following
  }

  deinit { memory.deallocate() }

  /// A place for the next page, to be filled before the next call of anything here.
  @inline(__always)
  func next() throws -> UnsafeMutableRawPointer {
    if pages == Self.bufferPages { try flush() }
    let page = memory + pages * RecordFormat.pageBytes
    pages += 1
    following += 1
    return page
  }

  /// Writes what there is.
  func flush() throws {
    let count = pages * RecordFormat.pageBytes
    let offset = Int(following) * RecordFormat.pageBytes - count
    pages = 0
    try write(UnsafeRawBufferPointer(start: memory, count: count), at: offset)
    WriteBehind.note(descriptor, offset: offset, count: count)
  }

  /// Writes over what the file has there.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws {
    guard FileWriting.writeAll(bytes, at: offset, to: descriptor) else {
      throw StorageError.lmdb(errno, "pages could not be written", path: path)
    }
  }
}
