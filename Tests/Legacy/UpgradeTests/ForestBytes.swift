import CZlib
import TestSupport

/// The bytes of a ForestDB file that is to be damaged. Checksums can be made right again.
struct ForestBytes {
  let path: String
  var bytes: [UInt8]

  init(_ path: String) throws {
    self.path = path
    bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
  }

  func write() throws {
    // What is copied may be for reading only.
    try? FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
    try Data(bytes).write(to: URL(filePath: path))
  }

  /// The last block with a marker.
  func lastBlock(_ marker: UInt8) -> Int? {
    (0..<(bytes.count / 4_096)).last { bytes[$0 * 4_096 + 4_095] == marker }
  }

  /// The place of the last record of a document that lies in one block.
  func lastRecord(of id: String) -> Int? {
    let key = [UInt8](repeating: 0, count: 8) + Array(id.utf8)
    var found: Int?
    var place = 16
    while place + key.count < bytes.count {
      if bytes[place + 8] == key[8], bytes[place..<(place + key.count)].elementsEqual(key),
        bytes[place - 16] == 0, Int(bytes[place - 15]) == key.count
      {
        found = place - 16
      }
      place += 1
    }
    return found
  }

  func integer(_ place: Int) -> UInt64 { bytes[place..<(place + 8)].reduce(0) { $0 << 8 | UInt64($1) } }

  mutating func set<Value: FixedWidthInteger>(_ value: Value, at place: Int) {
    withUnsafeBytes(of: value.bigEndian) { bytes.replaceSubrange(place..<(place + $0.count), with: $0) }
  }

  /// Fills a whole block with one byte.
  mutating func fill(_ block: Int, _ byte: UInt8) {
    bytes.replaceSubrange(
      (block * 4_096)..<(block * 4_096 + 4_096), with: [UInt8](repeating: byte, count: 4_096))
  }

  private func sum(_ range: Range<Int>) -> UInt32 {
    let part = Array(bytes[range])
    return UInt32(truncatingIfNeeded: crc32(0, part, UInt32(part.count)))
  }

  /// Makes the checksum of a header right.
  mutating func sealHeader(_ block: Int, _ version: Int) {
    let start = block * 4_096
    let length = Int(bytes[start + 4_085]) << 8 | Int(bytes[start + 4_086])
    guard length >= 80, length < 4_000 else { return }
    set(sum(start..<(start + length - 4)), at: start + length - 4)
  }

  /// Makes the checksum of a block of nodes right.
  mutating func sealNodes(_ block: Int) {
    let start = block * 4_096
    guard bytes[start + 4_095] == 0xFF else { return }
    bytes.replaceSubrange((start + 8)..<(start + 16), with: [UInt8](repeating: 0xFF, count: 8))
    set(sum(start..<(start + 4_096)), at: start + 8)
  }

  /// Makes the checksum of the meta file right.
  mutating func sealMeta() { set(sum(0..<1_028), at: 1_028) }

  /// Makes the checksum of a record's head right.
  mutating func sealHead(_ place: Int) {
    bytes[place + 13] = UInt8(truncatingIfNeeded: sum(place..<(place + 12)))
  }

  /// Changes some bytes, and sometimes makes the checksum of their block right.
  mutating func mutate(_ random: inout SeededGenerator, isEncrypted: Bool) {
    guard !bytes.isEmpty else { return }
    let place = Int.random(in: 0..<bytes.count, using: &random)
    switch Int.random(in: 0..<5, using: &random) {
    case 0: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    case 1: bytes[place] = UInt8.random(in: 0...255, using: &random)
    case 2: for offset in place..<min(place + 4, bytes.count) { bytes[offset] = 0xFF }
    case 3:
      let count = min(64, bytes.count - place)
      let from = Int.random(in: 0...(bytes.count - count), using: &random)
      bytes.replaceSubrange(place..<(place + count), with: bytes[from..<(from + count)])
    default:
      // A block in the place of another, or none of the blocks behind one.
      guard bytes.count > 8_192, Bool.random(using: &random) else {
        bytes.removeLast(min(bytes.count - 1, Int.random(in: 0...8_192, using: &random)))
        return
      }
      let blocks = bytes.count / 4_096
      let from = Int.random(in: 0..<blocks, using: &random) * 4_096
      let to = Int.random(in: 0..<blocks, using: &random) * 4_096
      bytes.replaceSubrange(to..<(to + 4_096), with: bytes[from..<(from + 4_096)])
    }
    let block = place / 4_096
    guard !isEncrypted, (block + 1) * 4_096 <= bytes.count, Bool.random(using: &random) else { return }
    switch bytes[block * 4_096 + 4_095] {
    case 0xEE: sealHeader(block, 1)
    case 0xFF: sealNodes(block)
    default: break
    }
  }
}
