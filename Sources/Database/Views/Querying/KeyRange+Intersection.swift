import Storage

extension KeyRange {
  /// The keys that begin with a prefix, of this range.
  package func intersection(prefix: [UInt8]) -> KeyRange {
    let own = KeyRange.prefix(prefix)
    var range = self
    if let least = own.lower.key, lower.key.map({ $0.lexicographicallyPrecedes(least) }) ?? true {
      range.lower = own.lower
    }
    if let most = own.upper.key, upper.key.map({ !$0.lexicographicallyPrecedes(most) }) ?? true {
      range.upper = own.upper
    }
    return range
  }
}

extension KeyRange.Bound {
  /// The key of the bound; nil if there is none.
  fileprivate var key: [UInt8]? {
    switch self {
    case .unbounded: nil
    case .inclusive(let key), .exclusive(let key): key
    }
  }
}
