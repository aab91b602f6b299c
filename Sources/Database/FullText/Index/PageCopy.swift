import Bytes
import Storage

/// A copy of a page that the engine lent.
///
/// Streams of postings are merged, so a page of each stream must outlive the closure that it was lent to.
/// Only this type copies pages. It copies a page at once, never single values. A page has 2 kB, or one larger
/// item, so the memory per stream doesn't depend on the length of the list.
struct PageCopy: ~Copyable {
  private var copy = ByteBuffer(capacity: 64)
  /// A copy with a larger capacity in bytes is released when the next page is smaller than this.
  private static let keptBytes = 1 << 16

  /// The page. Valid until the next `take` or `removeAll`, at most for the lifetime of this copy.
  var bytes: UnsafeRawBufferPointer { copy.bytes }

  /// Replaces the page by a copy of `page`.
  mutating func take(_ page: RawSpan) { page.withUnsafeBytes { take($0) } }

  /// Replaces the page by a copy of bytes inside a lent page.
  mutating func take(_ page: UnsafeRawBufferPointer) {
    if _slowPath(copy.capacity > PageCopy.keptBytes), page.count <= PageCopy.keptBytes {
      copy = ByteBuffer(capacity: page.count)
    }
    copy.removeAll()
    copy.append(page)
  }

  /// Removes the page. The memory stays.
  mutating func removeAll() { copy.removeAll() }
}
