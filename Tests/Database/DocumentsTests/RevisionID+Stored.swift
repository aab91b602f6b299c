import Bytes
import Touchstone

@testable import Documents

extension RevisionID {
  /// Calls `body` with the ID as it is stored.
  func withStored<Result>(_ body: (StoredRevisionID) throws -> Result) rethrows -> Result {
    var packed = ByteBuffer(capacity: 256)
    let text = Array(suffix.utf8)
    return try text.withUnsafeBytes { text in
      let isText = !packed.append(hex: text)
      return try body(
        StoredRevisionID(
          generation: generation, suffix: StoredSuffix(bytes: isText ? text : packed.bytes, isText: isText)))
    }
  }
}
