// properties := (name 00 value 00)*          UTF-8, in the sender's order

import Bytes

/// The properties of a message: an ordered list of names and values.
///
/// They are kept in the form that is sent, so taking a message apart copies nothing. Names may repeat; the first one
/// counts. Names are compared as bytes.
package struct BLIPProperties: Sendable, Hashable, ExpressibleByDictionaryLiteral {
  /// The bytes as they are sent.
  package private(set) var bytes: ArraySlice<UInt8> = []
  /// Whether a name or a value that was appended has NUL in it. Such properties can't be sent.
  private(set) var hasNUL = false

  /// Makes no properties.
  package init() {}

  /// Makes properties in the given order.
  package init(dictionaryLiteral entries: (String, String)...) {
    for (name, value) in entries { append(name, value) }
  }

  /// Takes received bytes. Throws `badProperties` if they aren't pairs of well-formed UTF-8.
  init(received bytes: ArraySlice<UInt8>) throws(BLIPError) {
    guard let last = bytes.last else { return }
    guard last == 0 else { throw BLIPError(.badProperties, "the properties of a message don't end with NUL") }
    let (terminators, isASCII) = bytes.withUnsafeBytes { bytes in
      var terminators = 0
      var all: UInt8 = 0
      for byte in bytes {
        terminators &+= byte == 0 ? 1 : 0
        all |= byte
      }
      return (terminators, all < 0x80)
    }
    guard terminators % 2 == 0 else {
      throw BLIPError(.badProperties, "the last property of a message has no value")
    }
    // A text may not continue behind its NUL, so checking all texts at once is the same as checking each.
    guard isASCII || String(validating: bytes, as: UTF8.self) != nil else {
      throw BLIPError(.badProperties, "the properties of a message aren't UTF-8")
    }
    self.bytes = bytes
  }

  /// Appends a property, also when the name is there already.
  package mutating func append(_ name: String, _ value: String) {
    append(name)
    append(value)
  }

  private mutating func append(_ text: String) {
    var text = text
    text.withUTF8 {
      if $0.contains(0) { hasNUL = true }
      bytes.append(contentsOf: $0)
    }
    bytes.append(0)
  }

  /// Appends all properties of another list.
  package mutating func append(_ others: BLIPProperties) {
    bytes.append(contentsOf: others.bytes)
    hasNUL = hasNUL || others.hasNUL
  }

  /// The value of the first property with this name. Setting it appends the property when there is none, changes it in
  /// its place, or removes it (nil).
  package subscript(name: String) -> String? {
    get { range(of: name).map { String(decoding: bytes[$0.value], as: UTF8.self) } }
    set {
      if let newValue, newValue.utf8.contains(0) { hasNUL = true }
      switch (range(of: name), newValue) {
      case (nil, nil): break
      case (nil, let value?): append(name, value)
      case (let found?, nil): bytes.removeSubrange(found.start..<found.value.upperBound + 1)
      case (let found?, let value?): bytes.replaceSubrange(found.value, with: value.utf8)
      }
    }
  }

  /// Whether the value of the first property with this name is `1` or `true`, the two forms that peers use.
  package func isTrue(_ name: String) -> Bool {
    let value = self[name]
    return value == "1" || value == "true"
  }

  /// All names and values, in their order.
  package var entries: [(name: String, value: String)] {
    let texts = bytes.split(separator: 0, omittingEmptySubsequences: false)
    return stride(from: 0, to: texts.count - 1, by: 2).map {
      (String(decoding: texts[$0], as: UTF8.self), String(decoding: texts[$0 + 1], as: UTF8.self))
    }
  }

  /// Whether there are none.
  package var isEmpty: Bool { bytes.isEmpty }

  private func range(of name: String) -> (start: Int, value: Range<Int>)? {
    var name = name
    return name.withUTF8 { name in
      bytes.withUnsafeBytes { bytes in
        var start = 0
        while start < bytes.count {
          let nameEnd = Self.end(bytes, from: start)
          let valueEnd = Self.end(bytes, from: nameEnd + 1)
          guard valueEnd <= bytes.count else { return nil }
          let found = UnsafeRawBufferPointer(rebasing: bytes[start..<nameEnd])
          if equalBytes(found, UnsafeRawBufferPointer(name)) {
            let base = self.bytes.startIndex
            return (base + start, base + nameEnd + 1..<base + valueEnd)
          }
          start = valueEnd + 1
        }
        return nil
      }
    }
  }

  /// The place of the next NUL, or `count + 1` if there is none.
  private static func end(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
    var index = start
    while index < bytes.count {
      if bytes[index] == 0 { return index }
      index &+= 1
    }
    return bytes.count + 1
  }

  package static func == (left: BLIPProperties, right: BLIPProperties) -> Bool { left.bytes == right.bytes }

  package func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}
