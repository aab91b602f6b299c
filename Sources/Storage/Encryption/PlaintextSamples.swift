// Pieces of plaintext that must not appear in a file, and a table to find out in a step or two whether eight
// bytes begin a piece.
//
//   sample := 8 to 16 bytes in a row, of at least four different values, with at most three zeros
//
// The first eight bytes are looked up at every offset of a file. The others are compared after a match. By
// chance a file of n random bytes contains one of m samples of k bytes with a probability of n · m / 256^k.
// That is 6 in 100,000 for a file of 1 GiB and 2^20 samples of 8 bytes, and negligible for samples of 16
// bytes. Shorter samples would be found in every file.

import Bytes

/// Samples of plaintext, up to a maximum number, each with a description of its source.
package final class PlaintextSamples {
  /// The minimum length of a sample in bytes. Shorter samples would match by chance.
  package static let leastBytes = 8
  /// The maximum length of a sample in bytes.
  package static let mostBytes = 16

  /// The maximum number of samples for one pass over the files. Each takes about 40 bytes of memory.
  package let capacity: Int
  /// The number of samples.
  package private(set) var count = 0

  private var firsts: [UInt64] = []
  private var rests: [UInt64] = []
  private var lengths: [UInt8] = []
  private var owners: [UInt32] = []
  /// By hash: the sample's number plus one, or 0 for an empty slot.
  private var slots = [UInt32](repeating: 0, count: 1 << 10)
  private var slotShift: UInt64 = 54
  /// One bit per hash, with at least 32 times as many bits as samples. It fits in the processor's cache.
  private var bits: [UInt64] = []
  private var bitShift: UInt64 = 63
  /// The kind and name of each owner: length (4 bytes), number of the kind (1), name.
  private var ownerBytes: [UInt8] = []
  private var kinds: [String] = []
  private var pending: (kind: Int, name: [UInt8])?
  private var owner: UInt32 = 0
  private var random: UInt64 = 0x9E37_79B9_7F4A_7C15

  /// Creates an empty set with room for `capacity` samples.
  package init(capacity: Int = 1 << 20) { self.capacity = max(capacity, 64) }

  /// Whether the files should be searched before more samples are added.
  package var isFull: Bool { count >= capacity - 1_024 }

  /// Removes all samples.
  package func removeAll() {
    count = 0
    firsts.removeAll(keepingCapacity: true)
    rests.removeAll(keepingCapacity: true)
    lengths.removeAll(keepingCapacity: true)
    owners.removeAll(keepingCapacity: true)
    ownerBytes.removeAll(keepingCapacity: true)
    for index in slots.indices { slots[index] = 0 }
    bits = []
  }

  // MARK: Adding

  /// Sets the source of the next samples: a kind, such as `document`, and a name.
  package func begin(_ kind: String, _ name: UnsafeRawBufferPointer) {
    let number: Int
    if let known = kinds.firstIndex(of: kind) {
      number = known
    } else {
      number = min(kinds.count, 255)
      kinds.append(kind)
    }
    pending = (number, [UInt8](name.prefix(1 << 10)))
  }

  /// Sets the source of the next samples, with a string as its name.
  package func begin(_ kind: String, _ name: String) {
    var name = name
    name.withUTF8 { begin(kind, UnsafeRawBufferPointer($0)) }
  }

  /// Adds a sample from a random offset in these bytes. Returns false if they are too short, too uniform, or
  /// known.
  @discardableResult
  package func add(somewhereIn bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count >= Self.leastBytes, count < capacity else { return false }
    let places = UInt64(bytes.count - Self.leastBytes + 1)
    for _ in 0..<4 {
      if add(bytes, from: Int(next() % places)) { return true }
    }
    return false
  }

  /// Adds a sample from the end of these bytes, as close to the end as gives a new sample. For names with a
  /// common beginning.
  @discardableResult
  package func add(endOf bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count >= Self.leastBytes, count < capacity else { return false }
    var start = bytes.count - Self.leastBytes
    while start >= 0, start + 2 * Self.mostBytes > bytes.count {
      if add(bytes, from: start) { return true }
      start -= 1
    }
    return false
  }

  private func add(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Bool {
    add(UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + Self.mostBytes, bytes.count)]))
  }

  /// Adds consecutive samples of all these bytes, at most `limit`.
  package func add(allOf bytes: UnsafeRawBufferPointer, limit: Int) {
    var start = 0
    var left = limit
    while start + Self.leastBytes <= bytes.count, left > 0, count < capacity {
      add(UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + Self.mostBytes, bytes.count)]))
      start += Self.mostBytes
      left -= 1
    }
  }

  /// Returns a number from a fixed pseudorandom sequence, so that each run takes the same samples.
  package func next() -> UInt64 {
    random ^= random << 13
    random ^= random >> 7
    random ^= random << 17
    return random
  }

  @discardableResult
  private func add(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard Self.isTelling(bytes) else { return false }
    let first = bytes.loadUnaligned(as: UInt64.self)
    var rest: UInt64 = 0
    for index in 8..<max(8, bytes.count) { rest |= UInt64(bytes[index]) << UInt64(8 * (index - 8)) }
    if count * 2 >= slots.count { grow() }
    var slot = Int(Self.hash(first) >> slotShift)
    while slots[slot] != 0 {
      // One sample for each eight bytes is enough. A search finds only one sample with this beginning.
      if firsts[Int(slots[slot]) - 1] == first { return false }
      slot = (slot + 1) & (slots.count - 1)
    }
    if let (kind, name) = pending {
      owner = UInt32(truncatingIfNeeded: ownerBytes.count)
      withUnsafeBytes(of: UInt32(name.count)) { ownerBytes.append(contentsOf: $0) }
      ownerBytes.append(UInt8(kind))
      ownerBytes.append(contentsOf: name)
      pending = nil
    }
    firsts.append(first)
    rests.append(rest)
    lengths.append(UInt8(bytes.count))
    owners.append(owner)
    count += 1
    slots[slot] = UInt32(count)
    return true
  }

  /// Rejects bytes that are common in any file: zeros and repetitions.
  private static func isTelling(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count >= leastBytes else { return false }
    var zeros = 0
    var different = 0
    for index in 0..<leastBytes {
      let byte = bytes[index]
      if byte == 0 { zeros += 1 }
      if !bytes[..<index].contains(byte) { different += 1 }
    }
    return zeros <= 3 && different >= 4
  }

  private func grow() {
    slots = [UInt32](repeating: 0, count: slots.count * 2)
    slotShift -= 1
    for number in 0..<count {
      var slot = Int(Self.hash(firsts[number]) >> slotShift)
      while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
      slots[slot] = UInt32(number + 1)
    }
  }

  @inline(__always)
  private static func hash(_ bytes: UInt64) -> UInt64 { bytes &* 0x9E37_79B9_7F4A_7C15 }

  // MARK: Searching

  /// A sample that was found.
  package struct Match {
    /// The offset in the searched bytes.
    package let offset: Int
    /// The source of the sample: `document 'hotel_1'`.
    package let owner: String
    /// The first three bytes of the sample, as text if possible.
    package let beginning: String
    /// The number of bytes that were found.
    package let length: Int
    /// Whether the sample was found as UTF-16.
    package let isUTF16: Bool
  }

  /// The number of bytes that must be readable after the last searched offset, enough for the longest sample
  /// in UTF-16.
  package static let lookahead = 2 * mostBytes

  /// Searches for all samples at the first `count` offsets of `bytes`. `lookahead` more bytes must be
  /// readable. Calls `body` with the offset and the number of each sample that is found (see
  /// `match(_:at:isUTF16:)`).
  ///
  /// Text is also found as UTF-16 of either byte order if its sample is ASCII or Latin-1.
  package func search(
    _ bytes: UnsafeRawPointer, count: Int, _ body: (_ place: Int, _ sample: Int, _ isUTF16: Bool) -> Void
  ) {
    if bits.isEmpty { makeBits() }
    let shift = bitShift
    bits.withUnsafeBufferPointer { bits in
      guard let bits = bits.baseAddress else { return }
      for place in 0..<count {
        let first = bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self)
        let bit = Self.hash(first) >> shift
        if bits[Int(truncatingIfNeeded: bit >> 6)] >> (bit & 63) & 1 != 0, let sample = find(first),
          isThere(sample, bytes.loadUnaligned(fromByteOffset: place + 8, as: UInt64.self))
        {
          body(place, sample, false)
        } else if first & 0xFF00_FF00_FF00_FF00 == 0 || first & 0x00FF_00FF_00FF_00FF == 0, first != 0 {
          if let sample = findUTF16(bytes + place) { body(place, sample, true) }
        }
      }
    }
  }

  private func makeBits() {
    var size = 10
    while 1 << size < count * 32 { size += 1 }
    bits = [UInt64](repeating: 0, count: 1 << (size - 6))
    bitShift = UInt64(64 - size)
    for first in firsts {
      let bit = Self.hash(first) >> bitShift
      bits[Int(bit >> 6)] |= 1 << (bit & 63)
    }
  }

  @inline(__always)
  private func find(_ first: UInt64) -> Int? {
    var slot = Int(truncatingIfNeeded: Self.hash(first) >> slotShift)
    while slots[slot] != 0 {
      let sample = Int(slots[slot]) - 1
      if firsts[sample] == first { return sample }
      slot = (slot + 1) & (slots.count - 1)
    }
    return nil
  }

  private func isThere(_ sample: Int, _ rest: UInt64) -> Bool {
    let more = UInt64(lengths[sample]) - 8
    return more == 8 ? rest == rests[sample] : (rest ^ rests[sample]) & (1 << (8 * more) - 1) == 0
  }

  /// Looks up the nonzero half of the bytes, if every second byte is zero.
  private func findUTF16(_ bytes: UnsafeRawPointer) -> Int? {
    let isBigEndian = bytes.load(as: UInt8.self) == 0
    var first: UInt64 = 0
    var rest: UInt64 = 0
    for index in 0..<16 {
      let low = bytes.load(fromByteOffset: 2 * index + (isBigEndian ? 1 : 0), as: UInt8.self)
      let high = bytes.load(fromByteOffset: 2 * index + (isBigEndian ? 0 : 1), as: UInt8.self)
      guard high == 0 else {
        if index < 8 { return nil }
        break
      }
      if index < 8 {
        first |= UInt64(low) << UInt64(8 * index)
      } else {
        rest |= UInt64(low) << UInt64(8 * index - 64)
      }
    }
    guard let sample = find(first), isThere(sample, rest) else { return nil }
    return sample
  }

  /// Returns the number of bytes that a sample takes in a file.
  package func length(_ sample: Int, isUTF16: Bool) -> Int { Int(lengths[sample]) * (isUTF16 ? 2 : 1) }

  /// Returns the description of a sample that was found.
  package func match(_ sample: Int, at offset: Int, isUTF16: Bool) -> Match {
    let start = Int(owners[sample])
    let length = ownerBytes.withUnsafeBytes { Int($0.loadUnaligned(fromByteOffset: start, as: UInt32.self)) }
    let kind = kinds[Int(ownerBytes[start + 4])]
    let name = String(decoding: ownerBytes[(start + 5)..<(start + 5 + length)], as: UTF8.self)
    let first = withUnsafeBytes(of: firsts[sample]) { Array($0.prefix(3)) }
    let isText = first.allSatisfy { (0x20...0x7E).contains($0) }
    return Match(
      offset: offset, owner: name.isEmpty ? kind : "\(kind) '\(name)'",
      beginning: isText
        ? "\"\(String(decoding: first, as: UTF8.self))…\""
        : first.map { Hex.text([$0]) }.joined(separator: " ") + " …",
      length: self.length(sample, isUTF16: isUTF16), isUTF16: isUTF16)
  }
}
