import Bytes
import CSQLite
import SQLiteLibrary

/// The contents of a source besides documents: local documents, the `info` table and views.
extension SourceDatabase {
  /// Calls `body` with the stored ID, the revision number and the JSON of each local document. The JSON is
  /// valid until `body` returns.
  func forEachLocalDocument(
    _ body: (_ id: String, _ generation: UInt64, _ json: UnsafeRawBufferPointer) throws -> Void
  ) throws {
    guard hasTable("localdocs") else { return }
    try reading {
      let statement = try connection.prepare(
        "SELECT docid, revid, json FROM localdocs NOT INDEXED ORDER BY rowid")
      defer { statement.finalize() }
      while try statement.step() {
        let revision = statement.string(1) ?? ""
        let generation = UInt64(revision.prefix { $0 != "-" }) ?? 1
        let bytes = statement.type(2) == SQLITE_BLOB ? statement.bytes(2) : statement.utf8(2)
        let id = statement.string(0) ?? ""
        try body(id, generation, bytes.isEmpty ? SourceReader.emptyBody : bytes)
      }
    }
  }

  /// Returns the ID of a local document without its prefix.
  static func localName(_ id: String) -> String {
    id.hasPrefix("_local/") ? String(id.dropFirst("_local/".count)) : id
  }

  /// Returns the value of a key of `info`.
  func info(_ key: String) throws -> String? {
    guard hasTable("info") else { return nil }
    return try reading {
      let statement = try connection.prepare("SELECT value FROM info NOT INDEXED WHERE key = ?")
      defer { statement.finalize() }
      try statement.bind(1, key)
      return try statement.step() ? statement.string(0) : nil
    }
  }

  /// Returns the number of replication checkpoints.
  func checkpointCount() throws -> Int {
    guard hasTable("info") else { return 0 }
    return try reading {
      try connection.integer("SELECT count(*) FROM info NOT INDEXED WHERE key LIKE 'checkpoint/%'")
        ?? 0
    }
  }

  func viewCount() throws -> Int {
    guard hasTable("views") else { return 0 }
    return try reading { try connection.integer("SELECT count(*) FROM views NOT INDEXED") ?? 0 }
  }

  /// Returns the last sequence that the file knows, including sequences of removed revisions.
  func lastSequence() throws -> Int {
    try reading {
      let highest = try connection.integer("SELECT max(sequence) FROM revs") ?? 0
      guard hasTable("sqlite_sequence") else { return highest }
      return max(
        highest,
        try connection.integer(
          "SELECT max(CAST(seq AS INTEGER)) FROM sqlite_sequence WHERE name = 'revs'")
          ?? 0)
    }
  }

  /// Returns the 16 bytes of a UUID. 1.x writes hexadecimal digits with dashes, or `-` and 22 characters of
  /// base64 with `-` and `_`.
  static func uuid(_ text: String) -> [UInt8]? {
    let characters = Array(text.utf8)
    if characters.count == 36 {
      let digits = characters.filter { $0 != UInt8(ascii: "-") }
      return digits.count == 32 ? Hex.bytes(digits) : nil
    }
    var bytes: [UInt8] = []
    guard characters.count == 23, characters[0] == UInt8(ascii: "-") else { return nil }
    var bits: UInt32 = 0
    var count = 0
    for character in characters.dropFirst() {
      let value: UInt8
      switch character {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = character - UInt8(ascii: "A")
      case UInt8(ascii: "a")...UInt8(ascii: "z"): value = character - UInt8(ascii: "a") + 26
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = character - UInt8(ascii: "0") + 52
      case UInt8(ascii: "-"), UInt8(ascii: "+"): value = 62
      case UInt8(ascii: "_"), UInt8(ascii: "/"): value = 63
      default: return nil
      }
      bits = (bits << 6 | UInt32(value)) & 0xFF_FFFF
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return bytes.count == 16 ? bytes : nil
  }
}
