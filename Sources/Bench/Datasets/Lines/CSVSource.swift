import Bytes
import Fleece

/// The documents of a CSV file, gzip or plain: a header with the names of properties, then a record for each document.
///
///     file   = header *( newline record ) [ newline ]          ; RFC 4180
///     record = field *( "," field )
///     field  = quoted / plain
///     quoted = DQUOTE *( any byte, DQUOTE doubled ) DQUOTE
///     plain  = *( any byte but "," CR LF DQUOTE )
///     newline = CRLF / LF
///
/// `CSVValue` says which JSON value a field is. A line without anything is skipped.
package final class CSVSource: RecordSource {
  private let reader: CSVReader
  private let path: String
  private let idProperty: String
  private var names: [String] = []
  /// The names as JSON writes them, with a colon.
  private var quotedNames: [[UInt8]] = []
  private var idColumn: Int?
  private var id: [UInt8] = []
  private var json: [UInt8] = []

  /// The line in which the last record began, from 1.
  package var lineNumber: Int { reader.recordLine }

  /// Opens the file at `path`, or standard input if it is `-`, and reads its header. `idProperty` is the column with the ID. A
  /// record without it, or with nothing in it, has no ID. Throws `DatasetError`.
  package init(path: String, idProperty: String = "_id") throws {
    self.path = path == "-" ? "standard input" : path
    self.idProperty = idProperty
    reader = CSVReader(input: try ByteInput(path: path), path: self.path)
    guard let header = try reader.next() else {
      throw DatasetError(
        .empty, "there is no header; the first line of CSV has the names of the properties", path: self.path)
    }
    names = header.map(\.text)
    // Names are equal if their bytes are.
    var known: Set<[UInt8]> = []
    for (number, field) in header.enumerated() {
      // In quotes it is the empty name.
      guard !field.text.isEmpty || field.isQuoted else { throw fault("column \(number + 1) has no name") }
      guard known.insert(Array(field.text.utf8)).inserted else {
        throw fault("two columns have the name '\(field.text)'")
      }
    }
    quotedNames = names.map { Array("\($0.quotedAsJSON):".utf8) }
    idColumn = names.firstIndex { $0.utf8.elementsEqual(idProperty.utf8) }
  }

  /// Whether there is a column with IDs.
  package var hasIDs: Bool { idColumn != nil }

  private func fault(_ message: String) -> DatasetError {
    DatasetError(.badLine, message, path: path, line: reader.recordLine)
  }

  /// Returns the next document, or nil after the last one. Throws `DatasetError` with the line.
  package func next() throws -> Record? {
    guard let fields = try reader.next() else { return nil }
    guard fields.count == names.count else {
      let found = fields.count == 1 ? "1 field" : "\(fields.count) fields"
      throw fault("the record has \(found), and the header has \(names.count)")
    }
    json.removeAll(keepingCapacity: true)
    json.append(UInt8(ascii: "{"))
    for (index, field) in fields.enumerated() where index != idColumn {
      guard let value = CSVValue.json(field) else { continue }
      if json.count > 1 { json.append(UInt8(ascii: ",")) }
      json += quotedNames[index]
      json += value.utf8
    }
    json.append(UInt8(ascii: "}"))
    guard let idColumn, !fields[idColumn].text.isEmpty else {
      return json.withUnsafeBytes { Record(id: nil, json: hold($0, in: \.heldJSON)) }
    }
    id = Array(fields[idColumn].text.utf8)
    return Record(
      id: id.withUnsafeBytes { hold($0, in: \.heldID) },
      json: json.withUnsafeBytes { hold($0, in: \.heldJSON) })
  }

  // A record's bytes are valid until the next one is read.
  private var heldID = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private var heldJSON = UnsafeMutableRawBufferPointer(start: nil, count: 0)

  deinit {
    heldID.deallocate()
    heldJSON.deallocate()
  }

  private func hold(
    _ bytes: UnsafeRawBufferPointer,
    in buffer: ReferenceWritableKeyPath<CSVSource, UnsafeMutableRawBufferPointer>
  ) -> UnsafeRawBufferPointer {
    if self[keyPath: buffer].count < bytes.count {
      self[keyPath: buffer].deallocate()
      self[keyPath: buffer] = .allocate(byteCount: bytes.count * 2, alignment: 16)
    }
    let held = UnsafeMutableRawBufferPointer(rebasing: self[keyPath: buffer][..<bytes.count])
    held.copyMemory(from: bytes)
    return UnsafeRawBufferPointer(held)
  }
}

/// A field of CSV, and whether it was in quotes.
package struct CSVField: Equatable, Sendable {
  package let text: String
  package let isQuoted: Bool

  /// Makes a field.
  package init(_ text: String, isQuoted: Bool = false) {
    self.text = text
    self.isQuoted = isQuoted
  }
}

/// How JSON values are fields of CSV, in both directions.
///
/// | field | value |
/// |---|---|
/// | nothing | the property is missing |
/// | `""` | the empty string |
/// | `12`, `-0.5`, `1e3`, `true`, `false`, `null`, without quotes | a number as JSON writes it, a boolean, null |
/// | valid JSON that begins with `{`, `[` or `"` | that object, array or string |
/// | anything else | a string |
package enum CSVValue {
  /// The JSON text of a field; nil if the property is missing.
  package static func json(_ field: CSVField) -> String? {
    if field.text.isEmpty { return field.isQuoted ? "\"\"" : nil }
    if !field.isQuoted, isPlainWord(field.text) { return field.text }
    if isStructured(field.text) { return field.text }
    return field.text.quotedAsJSON
  }

  /// The field of a string, such that it comes back as the same string.
  package static func field(ofString text: String) -> String {
    if text.isEmpty { return "\"\"" }
    if isPlainWord(text) { return "\"\(text)\"" }
    return (isStructured(text) ? text.quotedAsJSON : text).csvField
  }

  /// The field of any other value, by its JSON text.
  package static func field(ofJSON text: String) -> String { text.csvField }

  /// Whether JSON has this text for a number, a boolean or null.
  private static func isPlainWord(_ text: String) -> Bool {
    if text == "true" || text == "false" || text == "null" { return true }
    return isNumber(text) && Double(text).map(\.isFinite) == true
  }

  /// Whether the text is `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`. A regular expression took most of an import's time.
  private static func isNumber(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { bytes in
      var next = 0
      func isNext(_ characters: StaticString) -> Bool {
        characters.withUTF8Buffer { next < bytes.count && $0.contains(bytes[next]) }
      }
      func take(_ characters: StaticString) -> Bool {
        guard isNext(characters) else { return false }
        next += 1
        return true
      }
      func takeDigits() -> Bool {
        guard isNext("0123456789") else { return false }
        while isNext("0123456789") { next += 1 }
        return true
      }
      _ = take("-")
      guard take("0") || takeDigits() else { return false }
      if take("."), !takeDigits() { return false }
      if take("eE") {
        _ = take("+-")
        if !takeDigits() { return false }
      }
      return next == bytes.count
    }
  }

  /// Whether it is valid JSON of an object, an array or a string.
  private static func isStructured(_ text: String) -> Bool {
    guard let first = text.utf8.first, [0x7B, 0x5B, 0x22].contains(first) else { return false }
    return (try? JSONValue(json: text)) != nil
  }
}

/// Reads the records of CSV.
final class CSVReader {
  private let input: ByteInput
  private let path: String
  private var buffer = [UInt8](repeating: 0, count: 64 << 10)
  private var position = 0
  private var end = 0
  private var line = 1
  private var isAtStart = true
  /// The line in which the last record began.
  private(set) var recordLine = 1
  /// A field can't be longer than the engines' largest value.
  private static let maximumFieldBytes = 1_000_000_000

  init(input: ByteInput, path: String) {
    self.input = input
    self.path = path
  }

  private func fault(_ message: String, at line: Int) -> DatasetError {
    DatasetError(.badLine, message, path: path, line: line)
  }

  /// The next byte without taking it; nil at the end.
  private func peek() throws -> UInt8? {
    if position == end {
      position = 0
      do { end = try buffer.withUnsafeMutableBytes { try input.read(into: $0) } } catch let error
        as DatasetError
      {
        throw DatasetError(error.code, error.message, path: error.path ?? path, line: line)
      }
      if isAtStart {
        isAtStart = false
        if end >= 3, buffer[0] == 0xEF, buffer[1] == 0xBB, buffer[2] == 0xBF { position = 3 }
      }
    }
    return position < end ? buffer[position] : nil
  }

  private func take() throws -> UInt8? {
    guard let byte = try peek() else { return nil }
    position += 1
    if byte == 0x0A { line += 1 }
    return byte
  }

  /// Takes a line feed, or a carriage return with one.
  private func takeNewline() throws -> Bool {
    guard let byte = try peek(), byte == 0x0A || byte == 0x0D else { return false }
    _ = try take()
    if byte == 0x0D, try peek() == 0x0A { _ = try take() }
    return true
  }

  /// The fields of the next record; nil after the last one.
  func next() throws -> [CSVField]? {
    while try takeNewline() {}
    guard try peek() != nil else { return nil }
    recordLine = line
    var fields: [CSVField] = []
    while true {
      fields.append(try field())
      if try takeNewline() { return fields }
      guard try take() != nil else { return fields }
    }
  }

  /// A field to its end: before a comma, a newline, or the end of the file.
  private func field() throws -> CSVField {
    var bytes: [UInt8] = []
    let start = line
    let isQuoted = try peek() == 0x22
    if isQuoted {
      _ = try take()
      while true {
        guard let byte = try take() else {
          throw fault("the quotes of a field that begins here have no end", at: start)
        }
        if byte == 0x22 {
          guard try peek() == 0x22 else { break }
          _ = try take()
        }
        bytes.append(byte)
        if bytes.count > Self.maximumFieldBytes { throw fault("a field is too long", at: start) }
      }
      if let byte = try peek(), ![0x2C, 0x0A, 0x0D].contains(byte) {
        throw fault("there is text after the quotes of a field; quotes inside a field are doubled", at: line)
      }
    } else {
      while let byte = try peek(), ![0x2C, 0x0A, 0x0D].contains(byte) {
        if byte == 0x22 {
          throw fault(
            "there are quotes inside a field without quotes around it; put it in quotes, and double those inside",
            at: line)
        }
        bytes.append(byte)
        _ = try take()
        if bytes.count > Self.maximumFieldBytes { throw fault("a field is too long", at: start) }
      }
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw fault("a field isn't UTF-8; convert the file with iconv", at: start)
    }
    return CSVField(text, isQuoted: isQuoted)
  }
}

extension String {
  /// The string as JSON writes it.
  fileprivate var quotedAsJSON: String {
    var buffer = ByteBuffer()
    var text = self
    text.withUTF8 { buffer.append(jsonEscaped: UnsafeRawBufferPointer($0)) }
    return "\"" + String(decoding: buffer.bytes, as: UTF8.self) + "\""
  }
}
