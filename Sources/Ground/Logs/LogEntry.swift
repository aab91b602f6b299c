import Bytes
import FoundationEssentials

#if canImport(Glibc)
  import Glibc
#endif

// An entry as text (docs/logs.md):
//
//   entry    := time " " level " " domain " [" process "] " database ": " text LF detail*
//   detail   := TAB text LF
//   time     := YYYY "-" MM "-" DD "T" hh ":" mm ":" ss "." mmm "Z"        UTC
//   process  := digits
//   database := "-" | text with "\x20" for a space and "\x3a" for a colon
//   text     := characters; a control character, a character that changes the direction of text or ends a line,
//               and "\" are escaped: "\\" "\n" "\r" "\t" or "\u{" hex digits "}"
//
// So an entry begins where a line begins with a digit, and no document ID or path can look like another entry.

/// One message of the log.
public struct LogEntry: Sendable {
  /// When it was written.
  public let date: Date
  /// How important it is.
  public let level: LogLevel
  /// What it is about.
  public let domain: LogDomain
  /// The path of the database that it is about, or nil.
  public let database: String?
  /// What happened, as it is: it may contain newlines and other control characters of names.
  public let message: String
  /// More lines, such as the plan of a query.
  public let details: [String]

  /// The maximum size of a message and of a detail in bytes. The rest is cut off.
  static let maximumTextBytes = 16_384
  /// The maximum number of details.
  static let maximumDetails = 256

  package init(
    date: Date = Date(), level: LogLevel, domain: LogDomain, database: String?, message: String,
    details: [String] = []
  ) {
    self.date = date
    self.level = level
    self.domain = domain
    self.database = database
    self.message = Self.bounded(message)
    self.details = details.prefix(Self.maximumDetails).map(Self.bounded)
  }

  private static func bounded(_ text: String) -> String {
    guard text.utf8.count > maximumTextBytes else { return text }
    // Cut before a character: an incomplete one would become another.
    var end = text.utf8.index(text.startIndex, offsetBy: maximumTextBytes)
    while end > text.startIndex, text.utf8[end] & 0xC0 == 0x80 { end = text.utf8.index(before: end) }
    return text[..<end] + "…"
  }

  /// An estimate of its size in memory.
  var bytes: Int { details.reduce(message.utf8.count + 256) { $0 + $1.utf8.count + 32 } }

  /// The entry as in a log file, without the newline at its end.
  public var text: String {
    var line = lines
    line.removeLast()
    return String(decoding: line, as: UTF8.self)
  }

  /// The entry as in a log file.
  var lines: [UInt8] {
    var line: [UInt8] = []
    line.reserveCapacity(bytes)
    line += Self.time(date)
    line += " \(level) \(domain) [\(getpid())] ".utf8
    if let database { Self.append(database, isName: true, to: &line) } else { line += "-".utf8 }
    line += ": ".utf8
    Self.append(message, to: &line)
    line.append(0x0A)
    for detail in details {
      line.append(0x09)
      Self.append(detail, to: &line)
      line.append(0x0A)
    }
    return line
  }

  /// A date as `YYYY-MM-DDThh:mm:ss.mmmZ`.
  static func time(_ date: Date) -> [UInt8] {
    var line: [UInt8] = []
    // Milliseconds, rounded down. A date outside of the years that the system knows is written as 1970.
    let milliseconds = Int64(exactly: (date.timeIntervalSince1970 * 1000).rounded(.down)) ?? 0
    let part = ((milliseconds % 1000) + 1000) % 1000
    var seconds = time_t((milliseconds - part) / 1000)
    var fields = tm()
    if gmtime_r(&seconds, &fields) == nil || fields.tm_year + 1900 > 9999 || fields.tm_year < -1900 {
      fields = tm()
      (fields.tm_year, fields.tm_mday) = (70, 1)
    }
    func append(_ number: Int, _ digits: Int, _ end: String) {
      var divisor = 1
      for _ in 1..<digits { divisor *= 10 }
      while divisor > 0 {
        line.append(UInt8(ascii: "0") + UInt8(number / divisor % 10))
        divisor /= 10
      }
      line += end.utf8
    }
    append(Int(fields.tm_year) + 1900, 4, "-")
    append(Int(fields.tm_mon) + 1, 2, "-")
    append(Int(fields.tm_mday), 2, "T")
    append(Int(fields.tm_hour), 2, ":")
    append(Int(fields.tm_min), 2, ":")
    append(Int(fields.tm_sec), 2, ".")
    append(Int(part), 3, "Z")
    return line
  }

  /// Appends text with its escapes. A name is also free of spaces and colons.
  private static func append(_ text: String, isName: Bool = false, to line: inout [UInt8]) {
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x5C: line += "\\\\".utf8
      case 0x0A: line += "\\n".utf8
      case 0x0D: line += "\\r".utf8
      case 0x09: line += "\\t".utf8
      case 0x20 where isName, 0x3A where isName:
        line += "\\x".utf8
        line += Hex.text([UInt8(truncatingIfNeeded: scalar.value)]).utf8
      case ..<0x20, 0x7F...0x9F, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF:
        line += "\\u{\(String(scalar.value, radix: 16))}".utf8
      default: line += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
      }
    }
  }
}
