import Storage

/// A simple sorted map with which engines are compared: a sorted array.
package struct SortedMap: Equatable {
  package struct Entry: Equatable, CustomStringConvertible {
    package var key: [UInt8]
    package var value: [UInt8]
    package var description: String {
      "\(hexadecimal(key))=\(value.count) bytes \(hexadecimal(value.prefix(8)))"
    }
  }

  private(set) var entries: [Entry] = []

  func place(of key: [UInt8]) -> (index: Int, isThere: Bool) {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if isBefore(entries[middle].key, key) { low = middle + 1 } else { high = middle }
    }
    return (low, low < entries.count && entries[low].key == key)
  }

  subscript(key: [UInt8]) -> [UInt8]? {
    let (index, isThere) = place(of: key)
    return isThere ? entries[index].value : nil
  }

  mutating func put(_ key: [UInt8], _ value: [UInt8]) {
    let (index, isThere) = place(of: key)
    if isThere {
      entries[index].value = value
    } else {
      entries.insert(Entry(key: key, value: value), at: index)
    }
  }

  mutating func delete(_ key: [UInt8]) -> Bool {
    let (index, isThere) = place(of: key)
    if isThere { entries.remove(at: index) }
    return isThere
  }

  func entries(in range: KeyRange) -> [Entry] { entries.filter { Self.holds(range, $0.key) } }

  mutating func deleteRange(_ range: KeyRange) -> Int {
    let before = entries.count
    entries.removeAll { Self.holds(range, $0.key) }
    return before - entries.count
  }

  static func holds(_ range: KeyRange, _ key: [UInt8]) -> Bool {
    switch range.lower {
    case .unbounded: break
    case .inclusive(let bound): if isBefore(key, bound) { return false }
    case .exclusive(let bound): if !isBefore(bound, key) { return false }
    }
    switch range.upper {
    case .unbounded: return true
    case .inclusive(let bound): return !isBefore(bound, key)
    case .exclusive(let bound): return isBefore(key, bound)
    }
  }
}

/// The order of keys: by unsigned bytes. A prefix is before longer keys.
func isBefore(_ left: [UInt8], _ right: [UInt8]) -> Bool { left.lexicographicallyPrecedes(right) }

package func hexadecimal<Bytes: Sequence<UInt8>>(_ bytes: Bytes) -> String {
  bytes.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
}
