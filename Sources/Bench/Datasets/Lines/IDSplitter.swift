import FoundationEssentials

#if canImport(Glibc)
  import Glibc
#endif

/// Removes the ID member from a JSON object, in place and without parsing the rest.
///
///     object  = "{" [ member *( "," member ) ] "}"
///     member  = string ":" value
///
/// The ID member is a member of the top-level object. Its name is the ID property, written without escapes.
/// If there are several, it is the first one. If it is the first member, as exports write it, the bytes after
/// it don't move: the comma after it becomes the opening brace. Only brackets and strings are read. JSON with
/// other faults passes here, and the parser finds these. No input makes this read outside the line.
struct IDSplitter {
  /// The ID property's name in quotes.
  private let quotedName: [UInt8]
  /// An ID without its escapes, if it had some.
  private let scratch = ScratchBytes()

  private final class ScratchBytes {
    var bytes = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    deinit { bytes.deallocate() }
    func hold(_ content: [UInt8]) -> UnsafeRawBufferPointer {
      if content.count > bytes.count {
        bytes.deallocate()
        bytes = .allocate(byteCount: content.count * 2, alignment: 16)
      }
      bytes.copyBytes(from: content)
      return UnsafeRawBufferPointer(rebasing: bytes[..<content.count])
    }
  }

  struct Fault: Error { let reason: String }

  init(idProperty: String) { quotedName = Array("\"\(idProperty)\"".utf8) }

  /// Splits `line`, whose bytes it may move. Throws `Fault` if the line isn't an object, or only the beginning of one that is
  /// spread over lines, or its ID isn't a string.
  mutating func split(_ line: UnsafeMutableRawBufferPointer) throws(Fault) -> Record {
    var scanner = BracketScanner(line)
    scanner.skipSpace()
    guard scanner.take(0x7B) else {
      let isArray = scanner.take(0x5B)
      throw Fault(
        reason: isArray
          ? "it is not a JSON object but an array; write each of its objects on a line, as 'jq -c .[]' does"
          : "it is not a JSON object; write each document as a JSON object on a line")
    }
    let open = scanner.position - 1
    scanner.skipSpace()
    guard scanner.position < line.count else {
      throw Fault(
        reason: "its JSON object goes on in the next line; write each object on one line, as 'jq -c .' does")
    }
    guard contains(line) else { return Record(id: nil, json: UnsafeRawBufferPointer(line)) }

    // The start of the member, including the comma before it unless it is the first.
    var memberStart = scanner.position
    scanner.skipSpace()
    if scanner.take(0x7D) { return Record(id: nil, json: UnsafeRawBufferPointer(line)) }
    while true {
      guard let name = scanner.takeString() else { throw Fault(reason: "a property's name is missing") }
      scanner.skipSpace()
      guard scanner.take(0x3A) else { throw Fault(reason: "a colon is missing after a property's name") }
      scanner.skipSpace()
      if isName(line, name) {
        guard let id = scanner.takeString() else {
          throw Fault(
            reason:
              "its ID is not a string; write the value of \(String(decoding: quotedName, as: UTF8.self)) in quotes"
          )
        }
        scanner.skipSpace()
        return try remove(id, from: line, open: open, member: memberStart..<scanner.position)
      }
      guard scanner.skipValue() else { throw Fault(reason: "it breaks off") }
      scanner.skipSpace()
      memberStart = scanner.position
      if scanner.take(0x7D) { return Record(id: nil, json: UnsafeRawBufferPointer(line)) }
      guard scanner.take(0x2C) else { throw Fault(reason: "a comma or closing brace is missing") }
      scanner.skipSpace()
    }
  }

  private mutating func remove(
    _ id: Range<Int>, from line: UnsafeMutableRawBufferPointer, open: Int, member: Range<Int>
  ) throws(Fault) -> Record {
    let after = member.upperBound
    guard after < line.count, line[after] == 0x2C || line[after] == 0x7D else {
      throw Fault(reason: "a comma or closing brace is missing after its ID")
    }
    let idBytes = try unescape(line, id)
    let isFirst = line[member.lowerBound] != 0x2C
    if isFirst {
      // {"_id":"x","a":1} → {"a":1}, {"_id":"x"} → {}
      let start = line[after] == 0x2C ? after : after - 1
      line[start] = 0x7B
      return Record(id: idBytes, json: UnsafeRawBufferPointer(rebasing: line[start...]))
    }
    // {"a":1,"_id":"x","b":2}: the part before the member moves over the member and would overwrite the ID.
    // The ID is therefore copied first.
    let held = idBytes.map { scratch.hold([UInt8]($0)) }
    let headCount = member.lowerBound - open
    let start = after - headCount
    if let base = line.baseAddress { memmove(base + start, base + open, headCount) }
    return Record(id: held, json: UnsafeRawBufferPointer(rebasing: line[start...]))
  }

  /// Whether the line contains the ID property's name in quotes. A line without it needs no further search.
  private func contains(_ line: UnsafeMutableRawBufferPointer) -> Bool {
    guard let base = line.baseAddress, quotedName.count > 2 else { return false }
    let length = quotedName.count
    var position = 1
    while position + length - 1 <= line.count {
      let rest = line.count - position - (length - 2)
      guard let found = memchr(base + position, Int32(quotedName[1]), rest) else { return false }
      position = UnsafeMutableRawPointer(found) - base
      if memcmp(base + position - 1, quotedName, length) == 0 { return true }
      position += 1
    }
    return false
  }

  /// Whether the string at `range`, without its quotes, is the ID property's name.
  private func isName(_ line: UnsafeMutableRawBufferPointer, _ range: Range<Int>) -> Bool {
    guard range.count + 2 == quotedName.count, let base = line.baseAddress else { return false }
    return memcmp(base + range.lowerBound - 1, quotedName, quotedName.count) == 0
  }

  private func unescape(
    _ line: UnsafeMutableRawBufferPointer, _ range: Range<Int>
  ) throws(Fault) -> UnsafeRawBufferPointer? {
    let raw = UnsafeRawBufferPointer(rebasing: line[range])
    guard raw.contains(0x5C) else { return raw }
    let quoted = UnsafeRawBufferPointer(rebasing: line[(range.lowerBound - 1)...range.upperBound])
    guard let text = try? JSONDecoder().decode(String.self, from: Data(quoted)) else {
      throw Fault(reason: "its ID has an escape that JSON doesn't know")
    }
    return scratch.hold(Array(text.utf8))
  }
}
