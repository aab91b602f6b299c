import Bytes
import Documents
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Entries of a value index before they are stored: those of one document, or of many during a build. Use it
/// from one thread at a time.
final class ValueIndexEntries {
  struct Entry: BitwiseCopyable {
    /// The first bytes of the key, for sorting.
    var prefix: UInt64
    /// The offset of the stored key. When the key was cut, the whole key follows it.
    var offset: Int
    var keyLength: Int32
    /// 0 when the stored key is whole.
    var wholeLength: Int32
    var valuesLength: Int32
    var details: ValueIndexEntryDetails
  }

  private struct State {
    var bytes: UnsafeMutableRawPointer
    var count = 0
    var capacity: Int
    var entries: UnsafeMutablePointer<Entry>
    var entryCount = 0
    var entryCapacity: Int
  }

  // A pointer avoids exclusivity checks at run time.
  private let state: UnsafeMutablePointer<State>
  private let scratch: UnsafeMutableRawPointer
  private static let digestBytes = OrderedKeyLimits.cutDigestBytes

  init(capacity: Int = 1024) {
    state = .allocate(capacity: 1)
    state.initialize(
      to: State(
        bytes: .allocate(byteCount: capacity, alignment: 8), capacity: capacity,
        entries: .allocate(capacity: 16), entryCapacity: 16))
    scratch = .allocate(byteCount: 32, alignment: 8)
  }

  deinit {
    state.pointee.bytes.deallocate()
    state.pointee.entries.deallocate()
    state.deallocate()
    scratch.deallocate()
  }

  /// The number of entries.
  var count: Int { state.pointee.entryCount }
  /// The memory of the entries, in bytes.
  var usedBytes: Int { state.pointee.count + state.pointee.entryCount * MemoryLayout<Entry>.stride }

  func removeAll() {
    state.pointee.count = 0
    state.pointee.entryCount = 0
  }

  @inline(__always)
  subscript(index: Int) -> Entry { state.pointee.entries[index] }

  /// The stored key of an entry.
  @inline(__always)
  func key(_ entry: Entry) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: state.pointee.bytes + entry.offset, count: Int(entry.keyLength))
  }

  /// The key of an entry before it was cut.
  func wholeKey(_ entry: Entry) -> UnsafeRawBufferPointer {
    entry.wholeLength == 0
      ? key(entry)
      : UnsafeRawBufferPointer(
        start: state.pointee.bytes + entry.offset + Int(entry.keyLength), count: Int(entry.wholeLength))
  }

  /// Calls `body` with the stored value of an entry.
  @inline(__always)
  func withValue<Result>(_ entry: Entry, _ body: (UnsafeRawBufferPointer) throws -> Result) throws -> Result {
    if _fastPath(entry.wholeLength == 0 && entry.details.isPlain) {
      return try body(UnsafeRawBufferPointer(start: scratch, count: 0))
    }
    return try composedValue(entry).withUnsafeBytes(body)
  }

  @inline(never)
  private func composedValue(_ entry: Entry) -> [UInt8] {
    typealias Details = ValueIndexEntryDetails
    var flags: UInt8 = 0
    var rest: [UInt8] = []
    if entry.details.count != 1 {
      flags |= Details.hasCount
      rest.append(varint: UInt64(entry.details.count))
    }
    if entry.details.doubles != 0 {
      flags |= Details.hasDoubles
      rest.append(varint: UInt64(entry.details.doubles))
    }
    if entry.details.opaque != 0 {
      flags |= Details.hasOpaque
      rest.append(varint: UInt64(entry.details.opaque))
    }
    if entry.wholeLength > 0 {
      flags |= Details.hasWhole
      rest.append(varint: UInt64(entry.valuesLength))
      rest += wholeKey(entry)
    }
    return [flags] + rest
  }

  /// Adds an entry. `key` is the whole key: the values, which are `valuesLength` bytes long, and the
  /// document's ID.
  @inline(__always)
  func append(
    _ key: UnsafeRawBufferPointer, valuesLength: Int, _ details: ValueIndexEntryDetails, digest: KeyDigest
  ) throws {
    let isCut = key.count > OrderedKeyLimits.maximumWholeKeyBytes
    let size = isCut ? StorageLimits.maximumKeyBytes + key.count : key.count
    reserve(size + 8)
    let offset = state.pointee.count
    let target = state.pointee.bytes + offset
    if isCut {
      target.copyMemory(
        from: key.baseAddress.unsafelyUnwrapped, byteCount: OrderedKeyLimits.cutPrefixBytes)
      try digest.sha256(
        of: key, into: target + OrderedKeyLimits.cutPrefixBytes)
      (target + StorageLimits.maximumKeyBytes).copyMemory(
        from: key.baseAddress.unsafelyUnwrapped, byteCount: key.count)
    } else {
      target.copyMemory(from: key.baseAddress.unsafelyUnwrapped, byteCount: key.count)
    }
    // `prefix` reads at least eight bytes. The bytes after a short key are zeros.
    if size < 8 { memset(target + size, 0, 8 - size) }
    state.pointee.count += size
    state.pointee.entries[state.pointee.entryCount] = Entry(
      prefix: UInt64(bigEndian: target.loadUnaligned(as: UInt64.self)), offset: offset,
      keyLength: Int32(isCut ? StorageLimits.maximumKeyBytes : key.count),
      wholeLength: isCut ? Int32(key.count) : 0,
      valuesLength: Int32(valuesLength), details: details)
    state.pointee.entryCount += 1
  }

  @inline(__always)
  private func reserve(_ bytes: Int) {
    if state.pointee.capacity - state.pointee.count < bytes { growBytes(bytes) }
    if state.pointee.entryCount == state.pointee.entryCapacity { growEntries() }
  }

  @inline(never)
  private func growBytes(_ bytes: Int) {
    let capacity = max(state.pointee.capacity * 2, state.pointee.count + bytes)
    let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 8)
    larger.copyMemory(from: state.pointee.bytes, byteCount: state.pointee.count)
    state.pointee.bytes.deallocate()
    state.pointee.bytes = larger
    state.pointee.capacity = capacity
  }

  @inline(never)
  private func growEntries() {
    let capacity = state.pointee.entryCapacity * 2
    let larger = UnsafeMutablePointer<Entry>.allocate(capacity: capacity)
    larger.update(from: state.pointee.entries, count: state.pointee.entryCount)
    state.pointee.entries.deallocate()
    state.pointee.entries = larger
    state.pointee.entryCapacity = capacity
  }

  // MARK: Order

  /// The storage order of two entries: below, at or above 0.
  @inline(__always)
  func compare(_ left: Entry, _ right: Entry) -> Int {
    if left.prefix != right.prefix { return left.prefix < right.prefix ? -1 : 1 }
    return compareBytes(key(left), key(right))
  }

  /// Sorts all entries.
  func sort() { sort(from: 0) }

  private func sort(from start: Int) {
    let bytes = UnsafeRawPointer(state.pointee.bytes)
    var part = UnsafeMutableBufferPointer(
      start: state.pointee.entries + start, count: state.pointee.entryCount - start)
    part.sort { left, right in
      if left.prefix != right.prefix { return left.prefix < right.prefix }
      let count = Int(min(left.keyLength, right.keyLength))
      let order = memcmp(bytes + left.offset, bytes + right.offset, count)
      return order != 0 ? order < 0 : left.keyLength < right.keyLength
    }
  }

  /// Sorts the entries of one document, which begin at `start`, and merges entries with equal keys.
  func merge(from start: Int) {
    guard count - start > 1 else { return }
    sort(from: start)
    var kept = start
    for index in (start + 1)..<count {
      let entry = state.pointee.entries[index]
      if compare(state.pointee.entries[kept], entry) == 0 {
        var details = state.pointee.entries[kept].details
        // The items differ only in what the key can't express, such as 1 and 1.0.
        details.opaque |= details.doubles ^ entry.details.doubles | entry.details.opaque
        details.doubles &= entry.details.doubles
        details.count += 1
        state.pointee.entries[kept].details = details
      } else {
        kept += 1
        state.pointee.entries[kept] = entry
      }
    }
    state.pointee.entryCount = kept + 1
  }
}
