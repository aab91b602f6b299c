/// The names that two servers give on their own: revisions, sequences, digests, IDs of new documents. What stands at a place of a recorded
/// answer and what stands at the same place of ours are learned, and put into later requests.
///
///     token    := hash | sequence | digest
///     hash     := 32 hexadecimal digits        of a revision, behind "N-" or in _revisions; or the ID of a new document
///     sequence := digits "-g" base64url        CouchDB's
///     digest   := "md5-" base64
///
/// Hashes that a client sends before any answer has one are the client's own: of revisions that were made elsewhere. Those stay what
/// they are.
struct LearnedTokens: Sendable {
  enum Kind: Sendable { case hash, sequence, digest }

  private enum Part {
    case literal(ArraySlice<UInt8>)
    case token(Kind, ArraySlice<UInt8>)
  }

  private var ours: [String: String] = [:]
  /// Entity tags that aren't made of tokens, by the target and the tag.
  private var tags: [String: String] = [:]

  /// A part of a request with our tokens. `isEscaped` says that percent signs begin escapes.
  mutating func translate(request bytes: [UInt8], isEscaped: Bool = false) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    for part in Self.parts(bytes[...], isEscaped: isEscaped) {
      switch part {
      case .literal(let bytes): result += bytes
      case .token(let kind, let bytes):
        let text = String(decoding: bytes, as: UTF8.self)
        if let known = ours[text] {
          result += known.utf8
        } else {
          if kind == .hash { ours[text] = text }
          result += bytes
        }
      }
    }
    return result
  }

  mutating func translate(request text: String, isEscaped: Bool = false) -> String {
    String(decoding: translate(request: Array(text.utf8), isEscaped: isEscaped), as: UTF8.self)
  }

  /// A recorded text with our tokens, as far as they are known.
  func translated(_ text: String) -> String {
    var result: [UInt8] = []
    for part in Self.parts(Array(text.utf8)[...], isEscaped: false) {
      switch part {
      case .literal(let bytes): result += bytes
      case .token(_, let bytes):
        result += ours[String(decoding: bytes, as: UTF8.self)].map { Array($0.utf8) } ?? Array(bytes)
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// Whether a text of our answer is the recorded one with our tokens. Learns tokens that aren't known yet.
  mutating func match(_ recorded: String, _ text: String) -> Bool {
    var rest = Array(text.utf8)[...]
    var found: [(String, String)] = []
    for part in Self.parts(Array(recorded.utf8)[...], isEscaped: false) {
      switch part {
      case .literal(let bytes):
        guard rest.starts(with: bytes) else { return false }
        rest = rest.dropFirst(bytes.count)
      case .token(let kind, let bytes):
        let name = String(decoding: bytes, as: UTF8.self)
        if let known = ours[name] ?? found.first(where: { $0.0 == name })?.1 {
          guard rest.starts(with: known.utf8) else { return false }
          rest = rest.dropFirst(known.utf8.count)
        } else {
          let length = Self.length(of: kind, in: rest)
          guard length > 0 else { return false }
          found.append((name, String(decoding: rest.prefix(length), as: UTF8.self)))
          rest = rest.dropFirst(length)
        }
      }
    }
    guard rest.isEmpty else { return false }
    for (name, mine) in found { ours[name] = mine }
    return true
  }

  /// Our hash for the one of a recorded revision or document ID; nil if it hasn't been learned.
  func known(_ token: String) -> String? { ours[token] }

  // MARK: Entity tags

  mutating func learn(tag: String, _ mine: String, of target: String) {
    tags["\(target) \(tag)"] = mine
    tags[tag] = mine
  }

  /// The tags of a conditional request.
  mutating func translate(tags text: String, of target: String) -> String {
    text.split(separator: ",").map { part in
      let tag = part.trimmingPrefix(" ")
      return tags["\(target) \(tag)"] ?? tags[String(tag)] ?? translate(request: String(tag))
    }.joined(separator: ", ")
  }

  // MARK: Tokens in a text

  /// How many bytes at the start of one of our texts are a token of that kind.
  private static func length(of kind: Kind, in bytes: ArraySlice<UInt8>) -> Int {
    switch kind {
    case .hash:
      let count = bytes.prefix(while: isHex).count
      return count == 32 || count == 40 ? count : 0
    case .sequence:
      let count = bytes.prefix(while: isDigit).count
      let suffix = bytes.dropFirst(count).prefix(while: isWord)
      return suffix.starts(with: "-g".utf8) ? count + suffix.count : count
    case .digest:
      let name = bytes.prefix { isWord($0) && $0 != UInt8(ascii: "-") }.count
      guard bytes.dropFirst(name).first == UInt8(ascii: "-") else { return 0 }
      return name + 1 + bytes.dropFirst(name + 1).prefix(while: isBase64).count
    }
  }

  private static func parts(_ bytes: ArraySlice<UInt8>, isEscaped: Bool) -> [Part] {
    var parts: [Part] = []
    var literal = bytes.startIndex
    var index = bytes.startIndex
    func add(_ kind: Kind, _ range: Range<Int>) {
      if literal < range.lowerBound { parts.append(.literal(bytes[literal..<range.lowerBound])) }
      parts.append(.token(kind, bytes[range]))
      literal = range.upperBound
    }
    while index < bytes.endIndex {
      if isEscaped, bytes[index] == UInt8(ascii: "%") {
        index = min(index + 3, bytes.endIndex)
        continue
      }
      guard isWord(bytes[index]) else {
        index += 1
        continue
      }
      let word = bytes[index...].prefix(while: isWord)
      var end = word.endIndex
      if word.starts(with: "md5-".utf8) {
        end = bytes[index...].dropFirst(4).prefix(while: isBase64).endIndex
        if end - index >= 28 { add(.digest, index..<end) }
      } else {
        let dash = word.firstIndex(of: UInt8(ascii: "-")) ?? word.endIndex
        let isNumbered = dash > index && dash < word.endIndex && word[index..<dash].allSatisfy(isDigit)
        let hash = isNumbered ? dash + 1 : index
        if isNumbered, word[dash...].dropFirst().first == UInt8(ascii: "g"), word.count - (dash - index) > 20
        {
          add(.sequence, index..<end)
        } else if end - hash == 32, word[hash...].allSatisfy(isHex) {
          add(.hash, hash..<end)
        }
      }
      index = end
    }
    if literal < bytes.endIndex { parts.append(.literal(bytes[literal...])) }
    return parts
  }

  private static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }
  private static func isHex(_ byte: UInt8) -> Bool { isDigit(byte) || byte &- 0x61 < 6 }
  private static func isLetter(_ byte: UInt8) -> Bool { byte & 0xDF &- 0x41 < 26 }
  private static func isWord(_ byte: UInt8) -> Bool {
    isDigit(byte) || isLetter(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
  }
  private static func isBase64(_ byte: UInt8) -> Bool {
    isDigit(byte) || isLetter(byte) || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "/")
      || byte == UInt8(ascii: "=")
  }
}
