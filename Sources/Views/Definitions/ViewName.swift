import Bytes

/// The names of views. The part before the first `/` is the view's group: the views of a group are updated together, in one
/// scan of the documents. A view without `/` is a group of its own.
enum ViewName {
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

  /// The design document and the name in it of a view that may be of one: `design/name`.
  static func parts(of name: String) -> (design: String, view: String)? {
    guard let slash = name.utf8.firstIndex(of: UInt8(ascii: "/")) else { return nil }
    let parts = (String(name[..<slash]), String(name[name.utf8.index(after: slash)...]))
    return parts.0.isEmpty || parts.1.isEmpty ? nil : parts
  }
}
