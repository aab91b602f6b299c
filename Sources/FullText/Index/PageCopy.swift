import Storage

/// A page of the index, copied from where the engine lent it.
///
/// Streams of postings are merged, so a page of each has to outlive the closure that it was lent to. They are copied by
/// this and by nothing else: a page at once, never its values one by one. A page has 2 kB, or one item that is larger, so
/// each stream takes that much memory whatever the length of its list.
struct PageCopy: ~Copyable {
  private var copy = GrowingBytes(capacity: 64)
  /// A copy with more memory is given back when the next page needs little.
  private static let keptBytes = 1 << 16

  /// The page. Valid until the next `take`, and for as long as this lives.
  var bytes: UnsafeRawBufferPointer { copy.bytes }

  /// Forgets the page before, and copies this one.
  mutating func take(_ page: RawSpan) { page.withUnsafeBytes { take($0) } }

  /// `take` of bytes inside a lent page.
  mutating func take(_ page: UnsafeRawBufferPointer) {
    if _slowPath(copy.capacity > PageCopy.keptBytes), page.count <= PageCopy.keptBytes {
      copy = GrowingBytes(capacity: page.count)
    }
    copy.removeAll()
    copy.append(page)
  }

  /// Forgets the page.
  mutating func removeAll() { copy.removeAll() }
}
