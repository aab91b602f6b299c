/// A key that isn't in the order of keys, but in an index of its own: a place (`GeoPoint`, `GeoRect`, `GeoJSON`) or a text
/// (`TextKey`). The row that a map function emits with it has the key null.
public protocol SpecialKey: Sendable {
  /// What is indexed.
  var specialKeyContent: SpecialKeyContent { get }
}

/// What a special key is, ready to be stored.
public struct SpecialKeyContent: Sendable {
  enum Kind: Sendable {
    case box(GeoRect, geoJSON: [UInt8])
    case text(String)
    /// It can't be indexed; the text says why.
    case invalid(String)
  }

  let kind: Kind

  init(_ kind: Kind) { self.kind = kind }
}

extension SpecialKeyContent {
  /// Appends the bytes that the row keeps of the key, and returns their kind.
  func write(to bytes: inout [UInt8]) throws -> StoredRow.SpecialKind {
    switch kind {
    case .box(let rect, let geoJSON):
      guard rect.isFinite else {
        throw ViewError(.invalidEmission, "the coordinates of a box must be finite numbers, not \(rect)")
      }
      let rect = rect.ordered
      for coordinate in [rect.x0, rect.y0, rect.x1, rect.y1] {
        withUnsafeBytes(of: coordinate.bitPattern.littleEndian) { bytes.append(contentsOf: $0) }
      }
      bytes += geoJSON
      return .box
    case .text(var text):
      text.withUTF8 { bytes.append(contentsOf: $0) }
      return .text
    case .invalid(let message): throw ViewError(.invalidEmission, message)
    }
  }
}
