import Fleece

extension Property {
  /// The blob that this object refers to (`"@type": "blob"`, or an attachment of 1.x), nil for any other
  /// value.
  public var blob: Blob? {
    guard type == .dict else { return nil }
    return (try? jsonValue()).flatMap { Blob($0) }
  }
}

extension JSONValue {
  /// The blob that this object refers to (`"@type": "blob"`, or an attachment of 1.x), nil for any other
  /// value.
  public var blob: Blob? { Blob(self) }
}
