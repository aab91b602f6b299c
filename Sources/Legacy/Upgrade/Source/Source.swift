import Bytes
import Encryption
import Storage

/// A 1.x database, open for reading, with any storage.
protocol Source: AnyObject {
  var location: SourceFiles { get }
  /// The key, if the database is encrypted.
  var key: SecretBytes? { get }
  /// The `user_version` of SQLite storage, otherwise 0.
  var userVersion: Int { get }
  /// The maximum number of bytes of a revision's JSON that are read.
  var maximumBodyBytes: Int { get }
  /// Whether no two revisions have one sequence.
  var hasUniqueSequences: Bool { get }

  /// Reads everything that has to be whole. Throws `damaged` if it isn't.
  func check() throws
  /// What can't be read besides documents, known after the check.
  var issues: [UpgradeIssue] { get }
  func makeReader() throws -> any SourceReader

  /// Calls `body` with the stored ID, the revision number and the JSON of each local document. The JSON is
  /// valid until `body` returns. `skipped` is called for those that can't be read.
  func forEachLocalDocument(
    _ body: (_ id: String, _ generation: UInt64, _ json: UnsafeRawBufferPointer) throws -> Void,
    skipped: (_ id: String?, _ reason: String) throws -> Void
  ) throws
  /// Returns the value of a key of `info`.
  func info(_ key: String) throws -> String?
  /// Returns what a full upgrade leaves out of expirations and values of `info`, because it can't be read.
  func extraIssues() throws -> [UpgradeIssue]
  /// Returns the number of replication checkpoints.
  func checkpointCount() throws -> Int
  func viewCount() throws -> Int
  /// Returns the last sequence that the database knows, including sequences of removed revisions.
  func lastSequence() throws -> Int
}

extension Source {
  var maximumBodyBytes: Int { .max }

  /// Returns what a body is refused for, before it is parsed.
  func refusal(of json: UnsafeRawBufferPointer) -> String? {
    json.count <= maximumBodyBytes
      ? nil : "it has \(json.count) bytes, and at most \(maximumBodyBytes) can be read"
  }

  func extraIssues() throws -> [UpgradeIssue] { [] }
}

/// Reads the documents of a source one by one, in an order that is the same each time, with all their revisions.
protocol SourceReader: AnyObject {
  /// The revisions of the document.
  var revisions: SourceRevisions { get set }
  /// The number of the document in the source.
  var number: Int { get }
  /// The stored ID of the document, not checked. Valid until the next document.
  var documentID: UnsafeRawBufferPointer { get }
  /// The time at which the document expires, in seconds since 1970.
  var expiration: Int? { get }
  var hasInvalidExpiration: Bool { get }
  /// The rows of replaced revisions whose bodies the source has, but damaged, each with what is damaged.
  var damagedBodies: [(row: Int, reason: String)] { get }

  /// Moves to the next document. Returns false if there is none. `skipped` is called for what belongs to no
  /// document.
  func next(_ skipped: (SkippedOfSource) throws -> Void) throws -> Bool
  /// Returns the number of documents.
  func documentCount() throws -> Int
  /// Calls `body` with the JSON of a revision, or with `{}` if it is empty or missing. The bytes are valid until
  /// `body` returns.
  func withBody<Result>(_ row: Int, _ body: (UnsafeRawBufferPointer) throws -> Result) throws -> Result
  /// Must be called before the source is closed.
  func close()
}

/// Something in a source that belongs to no document.
enum SkippedOfSource {
  /// A revision whose document is missing.
  case orphan(sequence: Int, revisionID: String, hasBody: Bool)
  /// A document that can't be read, and its ID if that could be.
  case damaged(id: [UInt8]?, reason: String)
}

extension SourceReader {
  var damagedBodies: [(row: Int, reason: String)] { [] }

  /// The ID of the document for messages, from at most 500 bytes.
  var documentName: String { String(decoding: documentID.prefix(500), as: UTF8.self) }

  /// Gives revisions new sequences, each a row and its sequence, in their order.
  func renumber(_ sequences: [(row: Int, sequence: Int)]) {
    for (row, sequence) in sequences { revisions.rows[row].sequence = sequence }
    revisions.sortAndLink()
  }
}

/// Texts that all kinds of storage have in common.
enum SourceText {
  /// The bytes of `{}`. They are constant.
  static var emptyBody: UnsafeRawBufferPointer {
    let empty: StaticString = "{}"
    return UnsafeRawBufferPointer(start: empty.utf8Start, count: 2)
  }

  /// Returns the ID of a local document without its prefix.
  static func localName(_ id: String) -> String {
    id.hasPrefix("_local/") ? String(id.dropFirst("_local/".count)) : id
  }

  /// Returns the generation of the revision ID of a local document.
  static func localGeneration(_ revision: String) -> UInt64 { UInt64(revision.prefix { $0 != "-" }) ?? 1 }

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
