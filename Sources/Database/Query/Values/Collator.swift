import CICU

#if canImport(Glibc)
  import Glibc
#endif

/// Orders text by a collation. Use it from one thread at a time.
final class Collator {
  /// The collation that it implements.
  let collation: Collation
  private let icu: OpaquePointer?
  private var units: [UInt16] = []
  private var key: [UInt8] = []

  /// Creates a collator. Unicode collations use ICU, and the others compare bytes.
  ///
  /// - Throws: `collation` for a locale that ICU doesn't support.
  init(_ collation: Collation) throws(QueryError) {
    self.collation = collation
    guard collation.isUnicode else {
      icu = nil
      return
    }
    let strength =
      collation.ignoresDiacritics ? ICU_LETTERS : collation.ignoresCase ? ICU_ACCENTS : ICU_CASES
    let hasCaseLevel: Int32 = collation.ignoresDiacritics && !collation.ignoresCase ? 1 : 0
    var status = icu_status(0)
    guard let opened = icu_collator_open(collation.locale ?? "", strength, hasCaseLevel, &status) else {
      throw QueryError(.collation, "ICU has no collation for the locale \"\(collation.locale ?? "")\"")
    }
    icu = opened
  }

  deinit { if let icu { icu_collator_close(icu) } }

  /// The order of two texts: below, at or above 0.
  func compare(_ left: TextSlice, _ right: TextSlice) -> Int {
    if let icu {
      return left.start.withMemoryRebound(to: CChar.self, capacity: left.count) { leftStart in
        right.start.withMemoryRebound(to: CChar.self, capacity: right.count) { rightStart in
          Int(icu_collator_compare(icu, leftStart, Int32(left.count), rightStart, Int32(right.count)))
        }
      }
    }
    if collation.ignoresCase {
      for index in 0..<min(left.count, right.count) {
        let a = asciiFolded(left.start[index])
        let b = asciiFolded(right.start[index])
        if a != b { return a < b ? -1 : 1 }
      }
      return left.count - right.count
    }
    return left.compare(right)
  }

  /// Calls `body` with a sort key. Comparing the unsigned bytes of two keys gives the order of the collation,
  /// and equal texts have equal keys. The bytes are valid until `body` returns.
  func withSortKey<Result>(of text: TextSlice, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    guard let icu else {
      guard collation.ignoresCase else { return body(text.bytes) }
      key.removeAll(keepingCapacity: true)
      for byte in text.utf8 { key.append(asciiFolded(byte)) }
      return key.withUnsafeBytes(body)
    }
    if units.count < text.count { units = [UInt16](repeating: 0, count: max(text.count * 2, 64)) }
    let length = text.start.withMemoryRebound(to: CChar.self, capacity: text.count) {
      icu_to_utf16($0, Int32(text.count), &units, Int32(units.count))
    }
    if key.count < 64 { key = [UInt8](repeating: 0, count: 256) }
    var size = icu_collator_sort_key(icu, units, max(length, 0), &key, Int32(key.count))
    if Int(size) > key.count {
      key = [UInt8](repeating: 0, count: Int(size) * 2)
      size = icu_collator_sort_key(icu, units, max(length, 0), &key, Int32(key.count))
    }
    // The key ends with a 0, which is left out.
    return key.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[..<max(0, Int(size) - 1)])) }
  }
}

@inline(__always)
func asciiFolded(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

extension Collation {
  /// Whether text is compared by its bytes.
  var comparesBytes: Bool { !isUnicode && !ignoresCase }
}
