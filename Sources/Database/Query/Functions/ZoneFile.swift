import Bytes
import Storage
import System

/// The rules of a time zone from the system's database, in the format of RFC 8536 (TZif). The system's administrator keeps them up to
/// date; ICU's are as old as its release.
struct ZoneFile {
  /// The moments at which the offset changes, in seconds since 1970, in order.
  private var changes: [Int64] = []
  /// The offset from each change on, in seconds east of UTC.
  private var offsets: [Int] = []
  /// The offset before the first change.
  private var first = 0
  /// The rule after the last change.
  private var rule: ZoneRule?

  private static let maximumBytes = 1 << 16

  /// Reads the rules of an IANA name, such as `Europe/Paris`. Nil if the system has no such zone.
  init?(named name: String) {
    let directory = EnvironmentVariable.value("TZDIR") ?? "/usr/share/zoneinfo"
    guard Self.isName(name),
      let bytes = try? AtomicFile.read(directory + "/" + name, limit: Self.maximumBytes)
    else { return nil }
    self.init(bytes)
  }

  /// Whether a text can be the name of a zone, and not that of another file.
  private static func isName(_ name: String) -> Bool {
    let parts = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    // These two have all zones once more; those of `right` count leap seconds.
    guard name.utf8.count <= 255, let first = parts.first.map(Substring.init), first != "right",
      first != "posix"
    else { return false }
    return parts.allSatisfy { part in
      !part.isEmpty
        && part.allSatisfy { isLetterOrDigit($0) || $0 == 0x5F || $0 == 0x2D || $0 == 0x2B }
    }
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26
  }

  /// Reads a file. Nil if it isn't one of version 2 or later, or is damaged.
  init?(_ bytes: [UInt8]) {
    var reader = ByteReader(bytes.span.bytes)
    // The first part has times of four bytes; the second one says the same with times of eight.
    guard let old = Counts(&reader), reader.bytes(old.byteCount(ofTime: 4)) != nil,
      let counts = Counts(&reader)
    else { return nil }
    for _ in 0..<counts.times {
      guard let time = reader.bigEndian() else { return nil }
      changes.append(Int64(bitPattern: time))
    }
    guard zip(changes, changes.dropFirst()).allSatisfy(<) else { return nil }
    guard let types = reader.bytes(counts.times), let rows = reader.bytes(counts.types * 6),
      reader.bytes(counts.characters + counts.leaps * 12 + counts.standard + counts.universal) != nil
    else { return nil }
    let known = (0..<counts.types).map { index in
      Int(Int32(bigEndian: rows.unsafeLoadUnaligned(fromByteOffset: index * 6, as: Int32.self)))
    }
    guard known.allSatisfy({ abs($0) < 26 * 3_600 }) else { return nil }
    for index in 0..<counts.times {
      let type = Int(types.unsafeLoad(fromByteOffset: index, as: UInt8.self))
      guard type < known.count else { return nil }
      offsets.append(known[type])
    }
    first = known.first ?? 0
    // The rule is a line of its own.
    let line = reader.rest.withUnsafeBytes { Array($0) }
    guard line.first == 0x0A, let end = line.dropFirst().firstIndex(of: 0x0A) else { return nil }
    if end > 1 {
      guard let rule = ZoneRule(line[1..<end]) else { return nil }
      self.rule = rule
    }
  }

  /// The seconds east of UTC at a time in seconds since 1970.
  func offset(at seconds: Int64) -> Int {
    guard let last = changes.last else { return rule?.offset(at: seconds) ?? first }
    if seconds >= last { return rule?.offset(at: seconds) ?? offsets[offsets.count - 1] }
    var (low, high) = (0, changes.count)
    while low < high {
      let middle = (low + high) / 2
      if changes[middle] <= seconds { low = middle + 1 } else { high = middle }
    }
    return low == 0 ? first : offsets[low - 1]
  }

  /// The numbers in a header.
  private struct Counts {
    let universal, standard, leaps, times, types, characters: Int

    init?(_ reader: inout ByteReader) {
      guard let header = reader.bytes(44),
        header.withUnsafeBytes({ $0.prefix(4).elementsEqual("TZif".utf8) }),
        header.unsafeLoad(fromByteOffset: 4, as: UInt8.self) >= UInt8(ascii: "2")
      else { return nil }
      func number(_ index: Int) -> Int {
        Int(UInt32(bigEndian: header.unsafeLoadUnaligned(fromByteOffset: 20 + index * 4, as: UInt32.self)))
      }
      universal = number(0)
      standard = number(1)
      leaps = number(2)
      times = number(3)
      types = number(4)
      characters = number(5)
      guard times <= ZoneFile.maximumBytes, types >= 1, types <= 256 else { return nil }
    }

    func byteCount(ofTime bytes: Int) -> Int {
      times * (bytes + 1) + types * 6 + characters + leaps * (bytes + 4) + standard + universal
    }
  }
}

/// A rule for all years, as POSIX writes it in `TZ`: `CET-1CEST,M3.5.0,M10.5.0/3`.
struct ZoneRule {
  /// Seconds east of UTC.
  private let standard: Int
  private let summer: (offset: Int, start: Day, end: Day)?

  /// A day of each year, and a time of it in seconds.
  private struct Day {
    enum Kind {
      /// From 1 to 365. February 29 isn't counted.
      case day(Int)
      /// From 0 to 365. February 29 is counted.
      case dayOfAll(Int)
      /// A weekday, 0 is Sunday, of a week from 1 to 5, of which 5 is the last one.
      case weekday(month: Int, week: Int, day: Int)
    }
    let kind: Kind
    let seconds: Int

    /// The local time in seconds since 1970.
    func moment(in year: Int) -> Int64 {
      func days(_ month: Int, _ day: Int) -> Int64 { DateTime.days(year: year, month: month, day: day) ?? 0 }
      let day: Int64
      switch kind {
      case .day(let number):
        let isBehindLeapDay = number >= 60 && DateTime.daysInMonth(year, 2) == 29
        day = days(1, 1) + Int64(number - (isBehindLeapDay ? 0 : 1))
      case .dayOfAll(let number): day = days(1, 1) + Int64(number)
      case .weekday(let month, let week, let weekday):
        let first = days(month, 1)
        // January 1 of 1970 was a Thursday.
        let ofFirst = Int((first + 4) - (first + 4).flooredDivision(by: 7) * 7)
        var date = 1 + (weekday - ofFirst + 7) % 7 + (week - 1) * 7
        while date > DateTime.daysInMonth(year, month) { date -= 7 }
        day = days(month, date)
      }
      return day * 86_400 + Int64(seconds)
    }
  }

  init?(_ text: ArraySlice<UInt8>) {
    var parser = Parser(rest: text)
    guard parser.skipName(), let offset = parser.time(maximumHours: 24) else { return nil }
    standard = -offset
    guard !parser.rest.isEmpty else {
      summer = nil
      return
    }
    guard parser.skipName() else { return nil }
    var offsetOfSummer = -offset + 3_600
    if parser.rest.first != UInt8(ascii: ",") {
      guard let given = parser.time(maximumHours: 24) else { return nil }
      offsetOfSummer = -given
    }
    guard let start = parser.day(), let end = parser.day(), parser.rest.isEmpty else { return nil }
    summer = (offsetOfSummer, start, end)
  }

  /// The seconds east of UTC at a time in seconds since 1970.
  func offset(at seconds: Int64) -> Int {
    guard let summer else { return standard }
    let year = DateTime.date((seconds + Int64(standard)).flooredDivision(by: 86_400)).year
    // Each change is told in the time before it.
    let start = summer.start.moment(in: year) - Int64(standard)
    let end = summer.end.moment(in: year) - Int64(summer.offset)
    let isSummer = start < end ? seconds >= start && seconds < end : !(seconds >= end && seconds < start)
    return isSummer ? summer.offset : standard
  }

  private struct Parser {
    var rest: ArraySlice<UInt8>

    mutating func skip(_ byte: Unicode.Scalar) -> Bool {
      guard rest.first == UInt8(ascii: byte) else { return false }
      rest.removeFirst()
      return true
    }

    /// Letters, or anything in angle brackets.
    mutating func skipName() -> Bool {
      if skip("<") {
        guard let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return false }
        rest = rest[(end + 1)...]
        return true
      }
      let name = rest.prefix { ($0 | 0x20) &- 0x61 < 26 }
      rest = rest.dropFirst(name.count)
      return name.count >= 3
    }

    mutating func number(_ range: ClosedRange<Int>) -> Int? {
      var value: Int?
      while let byte = rest.first, byte &- 0x30 < 10, value ?? 0 < 1_000 {
        value = (value ?? 0) * 10 + Int(byte - 0x30)
        rest.removeFirst()
      }
      return value.flatMap { range.contains($0) ? $0 : nil }
    }

    /// Seconds, from hours with minutes and seconds.
    mutating func time(maximumHours: Int) -> Int? {
      let isNegative = skip("-")
      if !isNegative { _ = skip("+") }
      guard let hours = number(0...maximumHours) else { return nil }
      var seconds = hours * 3_600
      for unit in [60, 1] {
        guard skip(":") else { break }
        guard let part = number(0...59) else { return nil }
        seconds += part * unit
      }
      return isNegative ? -seconds : seconds
    }

    mutating func day() -> Day? {
      guard skip(","), let kind = kind() else { return nil }
      guard skip("/") else { return Day(kind: kind, seconds: 7_200) }
      // Version 3 of the format allows a week in both directions.
      return time(maximumHours: 167).map { Day(kind: kind, seconds: $0) }
    }

    private mutating func kind() -> Day.Kind? {
      if skip("J") { return number(1...365).map { .day($0) } }
      guard skip("M") else { return number(0...365).map { .dayOfAll($0) } }
      guard let month = number(1...12), skip("."), let week = number(1...5), skip("."),
        let day = number(0...6)
      else { return nil }
      return .weekday(month: month, week: week, day: day)
    }
  }
}
