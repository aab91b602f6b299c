import HTTP

/// The ranges of bytes that a client asks for (RFC 9110, 14.2), applied to a length as CouchDB does: `0-` stands for the whole whatever
/// comes behind it, and one range that isn't there refuses all.
enum ByteRanges: Equatable {
  /// The whole: no header, one that isn't understood, or `0-` among its ranges.
  case whole
  /// Some bytes.
  case some([Range<UInt64>])
  /// A range isn't there.
  case notSatisfiable

  /// The most ranges in one answer; for more the whole is sent.
  private static let maximumCount = 9

  /// Reads the value of a `Range` header.
  init(_ header: String?, length: UInt64) {
    guard let header, header.utf8.starts(with: "bytes=".utf8) else {
      self = .whole
      return
    }
    var asked: [(first: UInt64?, last: UInt64?)] = []
    for part in header.dropFirst(6).split(separator: ",", omittingEmptySubsequences: false) {
      let bounds = part.trimmed.split(separator: "-", omittingEmptySubsequences: false)
      guard bounds.count == 2, bounds.allSatisfy({ $0.utf8.allSatisfy { $0 &- 0x30 < 10 } }),
        !(bounds[0].isEmpty && bounds[1].isEmpty)
      else {
        self = .whole
        return
      }
      // Numbers above 64 bits are behind every end.
      let numbers = bounds.map { $0.isEmpty ? nil : UInt64($0) ?? .max }
      asked.append((numbers[0], numbers[1]))
    }
    var ranges: [Range<UInt64>] = []
    for (first, last) in asked {
      if first == 0, last == nil {
        self = .whole
        return
      }
      let start = first ?? length - min(last ?? 0, length)
      let end = first == nil ? length : min(last ?? .max, length &- 1) &+ 1
      guard start < end, length > 0 else {
        self = .notSatisfiable
        return
      }
      ranges.append(start..<end)
    }
    self = ranges.count > Self.maximumCount ? .whole : .some(ranges)
  }
}
