import Bytes
import Glibc

/// The headers of a message, in their order. Names are compared without regard to case.
package struct HTTPHeaders: Sendable {
  private struct Entry {
    var name: Range<Int>
    var value: Range<Int>
  }

  /// All names and values, one after another. Names are lower-case.
  private var bytes: [UInt8] = []
  private var entries: [Entry] = []

  /// Has no headers yet.
  package init() {}

  /// Makes room for headers whose names and values have that many bytes.
  package mutating func reserve(bytes count: Int) {
    bytes.reserveCapacity(count)
    entries.reserveCapacity(16)
  }

  /// Adds a header.
  package mutating func add(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    let start = bytes.count
    for byte in name { bytes.append(byte.lowercasedASCII) }
    let middle = bytes.count
    bytes.append(contentsOf: value)
    entries.append(Entry(name: start..<middle, value: middle..<bytes.count))
  }

  /// The number of headers.
  package var count: Int { entries.count }

  /// The bytes of the first header of that name, which must be lower-case; nil if there is none.
  package func bytes(_ name: StaticString) -> ArraySlice<UInt8>? {
    for entry in entries where matches(entry, name) { return bytes[entry.value] }
    return nil
  }

  /// The value of the first header of that name, in any case; nil if there is none. What isn't UTF-8 becomes U+FFFD.
  package func first(_ name: String) -> String? {
    entries.first { matches($0, name) }.map { text($0.value) }
  }

  /// The values of all headers of that name.
  package func all(_ name: String) -> [String] {
    entries.filter { matches($0, name) }.map { text($0.value) }
  }

  /// The value of a cookie of that name; nil if there is none.
  package func cookie(_ name: String) -> String? {
    for header in all("cookie") {
      for pair in header.split(separator: ";") {
        let pair = pair.trimmed
        guard let equals = pair.firstIndex(of: "=") else { continue }
        if pair[..<equals].utf8.elementsEqual(name.utf8) { return String(pair[pair.index(after: equals)...]) }
      }
    }
    return nil
  }

  /// The names, which are lower-case, and the values.
  package var all: [(name: String, value: String)] { entries.map { (text($0.name), text($0.value)) } }

  /// The tokens of headers whose values are lists, such as `Connection`. They are lower-case.
  package func tokens(_ name: String) -> [String] {
    all(name).flatMap { $0.split(separator: ",") }
      .map { $0.trimmed.lowercased() }.filter { !$0.isEmpty }
  }

  /// The number of headers of that name, which must be lower-case.
  package func count(_ name: StaticString) -> Int { entries.reduce(0) { $0 + (matches($1, name) ? 1 : 0) } }

  /// Adds a header.
  package mutating func add(_ name: String, _ value: String) {
    var (name, value) = (name, value)
    name.withUTF8 { name in
      value.withUTF8 { add(name: UnsafeRawBufferPointer(name), value: UnsafeRawBufferPointer($0)) }
    }
  }

  private func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

  private func matches(_ entry: Entry, _ name: StaticString) -> Bool {
    guard entry.name.count == name.utf8CodeUnitCount else { return false }
    return bytes.withUnsafeBufferPointer {
      $0.baseAddress.map { memcmp($0 + entry.name.lowerBound, name.utf8Start, entry.name.count) == 0 }
        ?? false
    }
  }

  private func matches(_ entry: Entry, _ name: String) -> Bool {
    entry.name.count == name.utf8.count
      && bytes[entry.name].elementsEqual(name.utf8.lazy.map(\.lowercasedASCII))
  }
}

extension StringProtocol where UTF8View: BidirectionalCollection {
  /// Without blanks and tabs around.
  package var trimmed: String {
    func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
    guard let start = utf8.firstIndex(where: { !isBlank($0) }),
      let end = utf8.lastIndex(where: { !isBlank($0) })
    else { return "" }
    return String(self[start...end])
  }
}

extension ArraySlice<UInt8> {
  /// Without blanks and tabs around.
  package var trimmed: ArraySlice<UInt8> {
    func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
    guard let start = firstIndex(where: { !isBlank($0) }), let end = lastIndex(where: { !isBlank($0) }) else {
      return []
    }
    return self[start...end]
  }
}
