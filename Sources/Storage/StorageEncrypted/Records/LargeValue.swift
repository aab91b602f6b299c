import Glibc

/// A value assembled from its chunks. Its memory is wiped when the last owner releases it.
final class LargeValue {
  let bytes: UnsafeMutableRawPointer
  let count: Int
  private let capacity: Int

  init(count: Int, capacity: Int) {
    self.count = count
    self.capacity = capacity
    bytes = .allocate(byteCount: max(1, capacity), alignment: 16)
  }

  deinit {
    explicit_bzero(bytes, capacity)
    bytes.deallocate()
  }

  var contents: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: bytes, count: count) }
}
