import HTTP

/// The ranges of bytes that a client asks for (RFC 9110, 14.2), applied to a length.
enum ByteRanges: Equatable {
  /// The whole: no header, or one that isn't understood.
  case whole
  /// Some bytes.
  case some([Range<UInt64>])
  /// Nothing of what is asked for is there.
  case notSatisfiable

  /// The most ranges in one answer; for more the whole is sent.
  private static let maximumCount = 9

  /// Reads the value of a `Range` header.
  init(_ header: String?, length: UInt64) {
    guard let header, header.utf8.starts(with: "bytes=".utf8) else {
      self = .whole
      return
    }
    var ranges: [Range<UInt64>] = []
    let parts = header.dropFirst(6).split(separator: ",", omittingEmptySubsequences: false)
    for part in parts {
      let bounds = part.trimmed.split(separator: "-", omittingEmptySubsequences: false)
      guard bounds.count == 2, bounds.allSatisfy({ $0.utf8.allSatisfy { $0 &- 0x30 < 10 } }),
        !(bounds[0].isEmpty && bounds[1].isEmpty)
      else {
        self = .whole
        return
      }
      // Numbers above 64 bits are behind every end.
      let first = UInt64(bounds[0]) ?? UInt64.max
      let last = UInt64(bounds[1]) ?? UInt64.max
      if bounds[0].isEmpty {
        guard last > 0, length > 0 else { continue }
        ranges.append(length - min(last, length)..<length)
      } else if bounds[1].isEmpty {
        if first < length { ranges.append(first..<length) }
      } else if first <= last, first < length {
        ranges.append(first..<(last >= length ? length : last + 1))
      }
    }
    if ranges.isEmpty {
      self = .notSatisfiable
    } else {
      self = parts.count > Self.maximumCount ? .whole : .some(ranges)
    }
  }
}
