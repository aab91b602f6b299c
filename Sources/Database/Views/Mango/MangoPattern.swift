import CICU
import Fleece
import System

/// The regular expression of `$regex`: that of ICU, which finds it anywhere in the text unless it is anchored. CouchDB's is PCRE's, which
/// differs in few details, and matches bytes rather than characters.
///
/// A match that takes too many steps or too much memory is none, as in CouchDB. So are those of one document after it has taken so many
/// (`MangoEffort`). Several threads may match.
package final class MangoPattern: @unchecked Sendable {
  package let source: String
  // A regular expression of ICU holds the text that it searches; the lock gives it to one thread at a time, with the memory for that text.
  private let icu: OpaquePointer
  private let units = Lock<[UInt16]>([])

  /// The memory for going back, in bytes.
  private static let stackBytes: Int32 = 8_000_000

  /// Compiles an expression. Nil if it can't be.
  init?(_ source: String) {
    self.source = source
    // ICU's C interface refuses an empty pattern, which matches everywhere.
    let units = source.isEmpty ? Array("(?:)".utf16) : Array(source.utf16)
    var status = icu_status(0)
    guard let icu = icu_regex_open(units, Int32(units.count), &status) else { return nil }
    self.icu = icu
    icu_regex_limit(icu, MangoEffort.ofDocument, Self.stackBytes, &status)
    guard icu_failed(status) == 0 else { return nil }
  }

  deinit { icu_regex_close(icu) }

  /// Whether the expression matches somewhere in a text, which is UTF-8.
  func isFound(in utf8: UnsafeRawBufferPointer, _ effort: MangoEffort) -> Bool {
    guard effort.beginMatch() else { return false }
    return units.withLock { units in
      units.removeAll(keepingCapacity: utf8.count <= 1 << 16)
      if isASCII(utf8) {
        units.append(contentsOf: utf8.lazy.map { UInt16($0) })
      } else {
        units.append(contentsOf: String(decoding: utf8, as: UTF8.self).utf16)
      }
      return units.withUnsafeBufferPointer { find($0, effort) }
    }
  }

  private func find(_ units: UnsafeBufferPointer<UInt16>, _ effort: MangoEffort) -> Bool {
    var status = icu_status(0)
    icu_regex_ask(
      icu, { effort, steps in MangoEffort.goesOn(effort, steps) },
      { effort, _ in MangoEffort.goesOn(effort, nil) }, Unmanaged.passUnretained(effort).toOpaque(),
      &status)
    defer { effort.endMatch() }
    icu_regex_set_text(icu, units.baseAddress, Int32(clamping: units.count), &status)
    let isFound = icu_regex_find(icu, 0, &status) != 0
    return isFound && icu_failed(status) == 0
  }
}
