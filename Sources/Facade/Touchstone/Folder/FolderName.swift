// The directory of a database in a folder:
//
//   directory := file ".touchstone"
//   file      := ("%2F" | "%25" | byte)+        1 to 244 bytes
//
// "%2F" is "/" and "%25" is "%" in the name. All other bytes are those of the name in UTF-8.

/// The rules for the names of databases in a folder, and the directories that stand for them.
enum FolderName {
  private static let slash = UInt8(ascii: "/")
  private static let percent = UInt8(ascii: "%")
  /// The size of the longest directory name without the suffix, in bytes.
  static let maximumBytes = 255 - DatabaseDirectory.suffix.utf8.count

  /// The name of the directory of a database, with the suffix. Throws `invalidName`.
  static func directory(of name: String) throws -> String {
    let file = encoded(name)
    if let problem = problem(name, file) {
      throw DatabaseError(.invalidName, "'\(printable(name))' can't be the name of a database: \(problem)")
    }
    return String(decoding: file, as: UTF8.self) + DatabaseDirectory.suffix
  }

  /// The name of the database in a directory; nil if no database of a folder has that directory.
  static func name(of directory: String) -> String? {
    let suffix = DatabaseDirectory.suffix.utf8
    guard directory.utf8.count > suffix.count, directory.utf8.suffix(suffix.count).elementsEqual(suffix)
    else { return nil }
    let file = Array(directory.utf8.dropLast(suffix.count))
    guard let name = decoded(file), problem(name, file) == nil else { return nil }
    return name
  }

  /// What is wrong with a name; nil if it is valid.
  private static func problem(_ name: String, _ file: [UInt8]) -> String? {
    let bytes = name.utf8
    if bytes.isEmpty { return "it is empty" }
    if bytes.contains(0) { return "it contains a zero byte" }
    if bytes.elementsEqual(".".utf8) || bytes.elementsEqual("..".utf8) {
      return "it means a directory"
    }
    if bytes.first == UInt8(ascii: ".") { return "it begins with a dot" }
    for scalar in name.unicodeScalars where scalar.properties.generalCategory == .control {
      return "it contains the control character U+\(hexadecimal(scalar))"
    }
    let suffix = DatabaseDirectory.suffix
    if bytes.suffix(suffix.utf8.count).elementsEqual(suffix.utf8) {
      return "it ends with '\(suffix)'; give it without that suffix"
    }
    if file.count > maximumBytes {
      return "it takes \(file.count) bytes in a file name, in which '/' and '%' take 3 bytes each; "
        + "the maximum is \(maximumBytes) bytes"
    }
    return nil
  }

  private static func encoded(_ name: String) -> [UInt8] {
    name.utf8.flatMap { byte in
      byte == slash ? Array("%2F".utf8) : byte == percent ? Array("%25".utf8) : [byte]
    }
  }

  /// The name that a file name stands for; nil if `encoded(_:)` doesn't give that file name.
  private static func decoded(_ file: [UInt8]) -> String? {
    var bytes: [UInt8] = []
    var rest = file[...]
    while let byte = rest.popFirst() {
      guard byte == percent else {
        bytes.append(byte)
        continue
      }
      let digits = rest.prefix(2)
      rest = rest.dropFirst(2)
      if digits.elementsEqual("2F".utf8) {
        bytes.append(slash)
      } else if digits.elementsEqual("25".utf8) {
        bytes.append(percent)
      } else {
        return nil
      }
    }
    return String(validating: bytes, as: UTF8.self)
  }

  /// The name for a message: control characters as `\u{…}`.
  private static func printable(_ name: String) -> String {
    var text = ""
    for scalar in name.unicodeScalars.prefix(80) {
      if scalar.properties.generalCategory == .control {
        text += "\\u{\(String(scalar.value, radix: 16))}"
      } else {
        text.unicodeScalars.append(scalar)
      }
    }
    return name.unicodeScalars.count > 80 ? text + "…" : text
  }

  private static func hexadecimal(_ scalar: Unicode.Scalar) -> String {
    let digits = String(scalar.value, radix: 16, uppercase: true)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }
}
