import Bytes

/// The names of views. The part before the first `/` is the view's group: the views of a group are updated together, in one
/// scan of the documents. A view without `/` is a group of its own.
package enum ViewName {
  static let maximumBytes = 200

  /// Throws `invalidArgument` unless the name has 1 to 200 bytes and no control characters.
  static func check(_ name: String) throws {
    let utf8 = name.utf8
    guard (1...maximumBytes).contains(utf8.count), !utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
      throw ViewError(
        .invalidArgument, "the name of a view must have 1 to \(maximumBytes) bytes and no control characters",
        view: String(name.prefix(100)))
    }
  }

  /// The group of a view.
  static func group(of name: String) -> ByteString {
    guard let slash = name.utf8.firstIndex(of: UInt8(ascii: "/")) else { return ByteString("/" + name) }
    return ByteString(String(name[..<slash]))
  }

  /// The design document and the name in it of a view that may be of one: `design/name`, with the design document's name as
  /// `escaped` makes it.
  package static func parts(of name: String) -> (design: String, view: String)? {
    guard let slash = name.utf8.firstIndex(of: UInt8(ascii: "/")),
      let design = unescaped(name[..<slash]), let view = unescaped(name[name.utf8.index(after: slash)...])
    else { return nil }
    return design.isEmpty || view.isEmpty || !joined(design, view).hasSameBytes(as: name)
      ? nil : (design, view)
  }

  /// The name of a view of a design document. Names of design documents may have slashes, and both may have control characters,
  /// which are written as `%` and two digits here.
  package static func joined(_ design: String, _ view: String) -> String {
    escaped(design, slashes: true) + "/" + escaped(view, slashes: false)
  }

  /// The group of a design document's views, with the slash.
  static func prefix(ofDesign design: String) -> String { escaped(design, slashes: true) + "/" }

  /// Nil if a `%` isn't followed by two digits.
  private static func unescaped(_ text: Substring) -> String? {
    guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2, let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      else {
        return nil
      }
      bytes.append(code)
      rest = rest.dropFirst(2)
    }
    return String(validating: bytes, as: UTF8.self)
  }

  private static func isEscaped(_ byte: UInt8, slashes: Bool) -> Bool {
    byte < 0x20 || byte == 0x7F || byte == UInt8(ascii: "%") || slashes && byte == UInt8(ascii: "/")
  }

  private static func escaped(_ text: String, slashes: Bool) -> String {
    guard text.utf8.contains(where: { isEscaped($0, slashes: slashes) }) else { return text }
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      if isEscaped(byte, slashes: slashes) {
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
