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
  // A regular expression of ICU holds the text that it searches; the lock gives it to one thread at a time.
  private let icu: OpaquePointer
  private let lock = Lock(())

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

  func isFound(in text: String, _ effort: MangoEffort) -> Bool {
    guard effort.beginMatch() else { return false }
    let units = Array(text.utf16)
    return lock.withLock { _ in
      units.withUnsafeBufferPointer { units in
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
  }
}
