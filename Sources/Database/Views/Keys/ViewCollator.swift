import Bytes
import CICU

/// Makes sort keys of strings with ICU: in the order of its root collation, or in that order with the ASCII characters as
/// the Couchbase Lite guide has them. In the guide's order, text that is canonically
/// equivalent has equal keys. The root collation is CouchDB's, which doesn't bring marks into their canonical order. For one thread at a time.
final class ViewCollator {
  /// The version of ICU's data, and of the rule if there is one.
  let version: String
  private let icu: OpaquePointer
  /// UTF-16 of a string.
  private var units: UnsafeMutableBufferPointer<UInt16>

  /// In the root collation "`" and "^" come behind the punctuation. In the guide's order they come before "_".
  private static let guideOrder = "&[before 1]'_'<'`'<'^'"
  /// Another rule needs another number here.
  private static let guideOrderVersion = "guide 1"
  /// Marks are in the order of the text, as CouchDB leaves them.
  private static let rootOrderVersion = "root 2"

  /// The collator of an order, which is only cloned: to open one takes ICU 0.4 ms with rules, and some microseconds without.
  private struct Original: @unchecked Sendable {
    var icu: OpaquePointer?
    var status = icu_status(0)
    var version = ""

    init(hasGuideOrder: Bool) {
      if hasGuideOrder {
        let rules = Array(guideOrder.utf16)
        icu = icu_collator_open_rules(rules, Int32(rules.count), &status)
      } else {
        icu = icu_collator_open("", ICU_CASES, 0, &status)
        if let icu { icu_collator_leave_marks(icu, &status) }
      }
      guard let opened = icu, status <= 0 else {
        icu = nil
        return
      }
      var parts: [UInt8] = [0, 0, 0, 0]
      icu_collator_version(opened, &parts)
      let data = parts.map(String.init).joined(separator: ".")
      version = "\(data) \(hasGuideOrder ? guideOrderVersion : rootOrderVersion)"
    }
  }

  private static let guide = Original(hasGuideOrder: true)
  private static let root = Original(hasGuideOrder: false)

  /// The version of a collator, without making one; empty if ICU has none.
  static func version(hasGuideOrder: Bool) -> String { (hasGuideOrder ? guide : root).version }

  /// Throws `ViewKeyError.collator`.
  init(hasGuideOrder: Bool) throws {
    let original = hasGuideOrder ? Self.guide : Self.root
    var status = original.status
    guard let known = original.icu, let cloned = icu_collator_clone(known, &status) else {
      throw ViewKeyError.collator(reason: String(cString: icu_error_name(status)))
    }
    icu = cloned
    version = original.version
    units = .allocate(capacity: 256)
  }

  deinit {
    icu_collator_close(icu)
    units.deallocate()
  }

  /// Appends the sort key of a string with its closing 00. Bytes that aren't UTF-8 are U+FFFD.
  func append(_ utf8: UnsafeRawBufferPointer, to key: inout ByteBuffer) throws {
    if units.count < utf8.count || units.count > 1 << 16 {
      let larger = UnsafeMutableBufferPointer<UInt16>.allocate(capacity: max(2 * utf8.count, 256))
      units.deallocate()
      units = larger
    }
    let length = try utf16(of: utf8)
    // Three bytes for most letters, and some for the levels.
    var room = 4 * length + 32
    while true {
      key.reserve(room)
      let size = Int(
        icu_collator_sort_key(
          icu, units.baseAddress, Int32(length), key.base + key.count,
          Int32(clamping: key.capacity - key.count)))
      guard size > 0 else { throw ViewKeyError.collator(reason: "ICU gave no sort key") }
      if size <= key.capacity - key.count {
        key.count += size
        return
      }
      room = size
    }
  }

  private func utf16(of utf8: UnsafeRawBufferPointer) throws -> Int {
    guard let start = utf8.baseAddress, utf8.count > 0 else { return 0 }
    if isASCII(utf8) {
      for index in 0..<utf8.count { units[index] = UInt16(utf8[index]) }
      return utf8.count
    }
    let length = icu_to_utf16(
      start.assumingMemoryBound(to: CChar.self), Int32(utf8.count), units.baseAddress, Int32(units.count))
    guard length >= 0 else { throw ViewKeyError.collator(reason: "ICU can't read a string") }
    return Int(length)
  }
}
