import Storage

extension KeyRange {
  /// The keys below the range.
  var below: KeyRange {
    switch lower {
    case .unbounded: KeyRange(upper: .exclusive([]))
    case .inclusive(let key): KeyRange(upper: .exclusive(key))
    case .exclusive(let key): KeyRange(upper: .inclusive(key))
    }
  }

  /// The keys above the range.
  var above: KeyRange {
    switch upper {
    case .unbounded: KeyRange(upper: .exclusive([]))
    case .inclusive(let key): KeyRange(lower: .exclusive(key))
    case .exclusive(let key): KeyRange(lower: .inclusive(key))
    }
  }
}
