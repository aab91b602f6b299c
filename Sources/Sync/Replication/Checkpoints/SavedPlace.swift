import Fleece

/// How far a session had come in one direction when it saved its checkpoint.
struct SavedPlace: Sendable, Equatable {
  /// The most places that are kept, as in CouchDB, and the most in a checkpoint of a peer of another kind.
  static let maximumCount = 50
  static let maximumCountElsewhere = 8

  /// Names the session, in hexadecimal digits.
  let session: String
  /// The sequence, as JSON.
  let sequence: String

  /// A random name.
  static func newSession() -> String {
    var digits = ""
    for _ in 0..<2 {
      let half = String(UInt64.random(in: .min ... .max), radix: 16)
      digits += String(repeating: "0", count: 16 - half.count) + half
    }
    return digits
  }

  /// The most places of one session.
  static let maximumOfSession = 4

  /// The places, with that of the session in front. Some earlier ones of the session stay, in case that only one side has saved
  /// the last one.
  static func adding(_ session: String, _ sequence: String, to places: [SavedPlace], maximum: Int)
    -> [SavedPlace]
  {
    let own = places.filter { $0.session == session && $0.sequence != sequence }.prefix(maximumOfSession - 1)
    let others = places.filter { $0.session != session }
    return [SavedPlace(session: session, sequence: sequence)] + own
      + others.prefix(maximum - own.count - 1)
  }

  /// The places that both sides have, the latest first.
  static func common(_ here: [SavedPlace], _ there: [SavedPlace]) -> [SavedPlace] {
    here.filter { there.contains($0) }
  }

  // MARK: JSON: [[session, sequence], …]

  static func json(_ places: [SavedPlace]) -> String {
    "[" + places.map { "[\"\($0.session)\",\($0.sequence)]" }.joined(separator: ",") + "]"
  }

  /// Reads places. What can't be read is left out.
  static func all(_ value: JSONValue?) -> [SavedPlace] {
    (value?.array ?? []).prefix(maximumCount).compactMap { item in
      guard let session = item[0].string, session.utf8.allSatisfy({ $0.isHexDigit }), !item[1].isNull,
        let sequence = try? item[1].canonicalJSON()
      else { return nil }
      return SavedPlace(session: session, sequence: sequence)
    }
  }
}

extension UInt8 {
  fileprivate var isHexDigit: Bool { (0x30...0x39).contains(self) || (0x61...0x66).contains(self) }
}
