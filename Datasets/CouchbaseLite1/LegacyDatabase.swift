import CCrypto

/// What a database of Couchbase Lite 1.x is to have that `LegacyDatabaseMaker` makes: any size, the same for the same
/// settings.
public struct LegacyDatabase: Sendable {
  /// Who wrote it: schemas, page sizes and the spelling of things differ.
  public enum Platform: String, Sendable, CaseIterable {
    /// Couchbase Lite for iOS and macOS.
    case ios
    /// Couchbase Lite for Android and Java.
    case android
    /// Couchbase Lite for .NET.
    case net
  }

  /// Which releases wrote it.
  public enum Version: Int, Sendable, CaseIterable {
    /// 1.0: a `.cblite` file, attachments in a table.
    case v10 = 16
    /// 1.2: a `.cblite2` directory.
    case v12 = 101
    /// 1.3 and 1.4: documents may expire.
    case v13 = 102
  }

  /// Who wrote it.
  public var platform = Platform.ios
  /// Which release.
  public var version = Version.v13
  /// How many documents.
  public var documents = 100
  /// How many revisions the main branch of a document has.
  public var history = 1
  /// Of a hundred documents, how many have a second branch: of those every third ends deleted.
  public var conflicts = 0
  /// Of a hundred documents, how many end as tombstones.
  public var tombstones = 0
  /// Of a hundred documents, how many have attachments.
  public var attachments = 0
  /// Of a hundred attachments, how many are stored compressed.
  public var compressed = 0
  /// Bytes of an attachment before it is compressed, about.
  public var attachmentBytes = 2_000
  /// Of a hundred documents, how many have replaced revisions without bodies, as after a compaction.
  public var compacted = 0
  /// Of a hundred documents, how many expire; 1.3 only.
  public var expiring = 0
  /// Of a hundred documents, how many have revision IDs that no later release takes.
  public var oddRevisionIDs = 0
  /// How many local documents.
  public var localDocuments = 0
  /// Whether a part of it stays in the write-ahead log.
  public var hasLog = false
  /// The raw key of an encrypted one.
  public var key: [UInt8]?
  /// What everything is drawn from.
  public var seed: UInt64 = 1
  /// The body of a revision, a JSON object; by the document's number and the revision's, which begins at 0.
  public var body: @Sendable (_ document: Int, _ revision: Int) -> [UInt8] = { document, revision in
    Array(
      "{\"n\":\(document),\"revision\":\(revision),\"text\":\"d\u{e9}j\u{e0} \(document * 7_919 % 1_000)\",\"type\":\"t\(document % 3)\"}"
        .utf8)
  }
  /// The ID of a document.
  public var documentID: @Sendable (_ document: Int) -> String = { "doc-\($0)" }

  /// A hundred documents of one revision.
  public init() {}

  /// The key that a password stands for on a platform.
  public static func key(password: String, platform: Platform) -> [UInt8] {
    let salt = Array("Salty McNaCl".utf8)
    var key = [UInt8](repeating: 0, count: 32)
    // Android counts UTF-16 units where bytes of UTF-8 are meant.
    let count = platform == .android ? min(password.utf16.count, password.utf8.count) : password.utf8.count
    let bytes = password.utf8.map { CChar(bitPattern: $0) }
    PKCS5_PBKDF2_HMAC(
      bytes, Int32(count), salt, Int32(salt.count), 64_000, platform == .net ? EVP_sha1() : EVP_sha256(), 32,
      &key)
    return key
  }
}

/// A document of such a database: what the maker writes, and what a reader has to find.
public struct LegacyDocument: Sendable {
  /// A revision.
  public struct Revision: Sendable {
    /// Its ID.
    public var id: String
    /// The parent's place among the document's revisions; nil for a root.
    public var parent: Int?
    /// Whether it is a tombstone.
    public var isDeleted: Bool
    /// Whether nothing descends from it.
    public var isLeaf: Bool
    /// Its JSON without attachments; nil when it isn't in the database any more.
    public var body: [UInt8]?
    /// Its attachments, when it has a body.
    public var attachments: [Attachment]
  }

  /// An attachment of a revision.
  public struct Attachment: Sendable {
    /// Its name.
    public var name: String
    /// Which of the database's attachments it is (`LegacyDatabase.attachmentBytes(_:)`).
    public var number: Int
    /// Whether it is stored compressed.
    public var isCompressed: Bool
    /// The generation that it came with.
    public var revpos: Int
  }

  /// The ID.
  public var id: String
  /// Its revisions, parents before children.
  public var revisions: [Revision]
  /// When it expires, in seconds since 1970.
  public var expiration: Int?
}

extension LegacyDatabase {
  /// A document by its number: made from the seed alone, without those before it.
  public func document(_ number: Int) -> LegacyDocument {
    var random = SeededRandom(seed: seed, stream: 1, index: UInt64(number))
    let isOdd = random.chance(oddRevisionIDs)
    let isDeleted = random.chance(tombstones)
    let hasAttachment = random.chance(attachments)
    let isCompressed = random.chance(compressed)
    let isCompacted = random.chance(compacted)
    let isConflicted = random.chance(conflicts)
    let expires = random.chance(expiring)
    var found = LegacyDocument(id: documentID(number), revisions: [], expiration: nil)
    if expires, version == .v13 { found.expiration = 1_400_000_000 + random.below(3_000_000_000) }

    func add(_ generation: Int, parent: Int?, isDeleted: Bool) {
      let place = found.revisions.count
      var attachments: [LegacyDocument.Attachment] = []
      if hasAttachment, !isDeleted {
        attachments.append(.init(name: "photo.png", number: number, isCompressed: isCompressed, revpos: 1))
        if generation > 2 {
          // One that others have too.
          attachments.append(
            .init(name: "\u{e9} shared", number: -1 - number % 5, isCompressed: false, revpos: 3))
        }
      }
      found.revisions.append(
        .init(
          id: "\(generation)-" + Self.suffix(isOdd, &random), parent: parent, isDeleted: isDeleted,
          isLeaf: true,
          body: isDeleted ? Array((platform == .android ? "" : "{}").utf8) : body(number, place),
          attachments: attachments))
      if let parent { found.revisions[parent].isLeaf = false }
    }
    for generation in 1...max(1, history) {
      add(
        generation, parent: generation == 1 ? nil : generation - 2,
        isDeleted: isDeleted && generation == history && history > 1)
    }
    if isConflicted {
      // A branch from the first revision, at times longer than the other one.
      var parent = 0
      let length = 1 + random.below(max(1, history))
      let endsDeleted = random.below(3) == 0
      for step in 0..<length {
        add(2 + step, parent: parent, isDeleted: endsDeleted && step == length - 1)
        parent = found.revisions.count - 1
      }
    }
    if isCompacted {
      for index in found.revisions.indices where !found.revisions[index].isLeaf {
        found.revisions[index].body = nil
        found.revisions[index].attachments = []
      }
    }
    return found
  }

  private static func suffix(_ isOdd: Bool, _ random: inout SeededRandom) -> String {
    func hex(_ count: Int) -> String {
      var text = ""
      while text.count < count {
        let digits = String(random.next(), radix: 16)
        text += String(repeating: "0", count: 16 - digits.count) + digits
      }
      return String(text.prefix(count))
    }
    guard isOdd else { return hex(32) }
    switch random.below(4) {
    case 0: return "foo" + hex(8)
    case 1: return hex(8) + "-" + hex(4) + "-" + hex(4) + "-" + hex(4) + "-" + hex(12)
    case 2: return hex(32).uppercased()
    default: return hex(31)
    }
  }

  /// The bytes of an attachment, before they are compressed.
  public func attachmentBytes(_ number: Int) -> [UInt8] {
    var random = SeededRandom(seed: seed, stream: 2, index: UInt64(bitPattern: Int64(number)))
    let count = attachmentBytes / 2 + random.below(max(1, attachmentBytes))
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
      let word = random.next()
      // Half of them the same: so that compressing is worth it.
      for shift in 0..<8 {
        bytes.append(shift < 4 ? UInt8(truncatingIfNeeded: word >> UInt64(shift * 8)) : 0x41)
      }
    }
    return Array(bytes.prefix(count))
  }

  /// A local document: its ID without `_local/`, the number of its revision, and its JSON.
  public func localDocument(_ number: Int) -> (id: String, generation: Int, json: String) {
    ("local-\(number)", 1 + number % 3, "{\"checkpoint\":\"\(number)\",\"n\":\(number)}")
  }
}
