import Bytes
import CCrypto

/// The settings of a Couchbase Lite 1.x database that `LegacyDatabaseMaker` makes. Equal settings give equal
/// databases, of any size.
package struct LegacyDatabase: Sendable {
  /// The platform that wrote the database. Schemas, page sizes and details of the format differ.
  package enum Platform: String, Sendable, CaseIterable {
    /// Couchbase Lite for iOS and macOS.
    case ios
    /// Couchbase Lite for Android and Java.
    case android
    /// Couchbase Lite for .NET.
    case net
  }

  /// The release that wrote the database.
  package enum Version: Int, Sendable, CaseIterable {
    /// 1.0: a `.cblite` file, with attachments in a table.
    case v10 = 16
    /// 1.2: a `.cblite2` directory.
    case v12 = 101
    /// 1.3 and 1.4: documents can expire.
    case v13 = 102
  }

  /// The platform.
  package var platform = Platform.ios
  /// The release.
  package var version = Version.v13
  /// The number of documents.
  package var documents = 100
  /// The number of revisions on the main branch of a document.
  package var history = 1
  /// The percentage of documents with a second branch. One in three of these branches ends deleted.
  package var conflicts = 0
  /// The percentage of documents that end as tombstones.
  package var tombstones = 0
  /// The percentage of documents with attachments.
  package var attachments = 0
  /// The percentage of attachments that are stored compressed.
  package var compressed = 0
  /// The approximate size of an attachment before compression, in bytes.
  package var attachmentBytes = 2_000
  /// The percentage of documents whose replaced revisions have no bodies, as after a compaction.
  package var compacted = 0
  /// The percentage of documents that expire; 1.3 only.
  package var expiring = 0
  /// The percentage of documents with revision IDs that later releases don't accept.
  package var oddRevisionIDs = 0
  /// The number of local documents.
  package var localDocuments = 0
  /// Whether a part of the database is still in the write-ahead log.
  package var hasLog = false
  /// The raw key of an encrypted database; nil for a plain one.
  package var key: [UInt8]?
  /// The seed of all random data.
  package var seed: UInt64 = 1
  /// Returns the body of a revision, a JSON object. Revisions count from 0.
  package var body: @Sendable (_ document: Int, _ revision: Int) -> [UInt8] = { document, revision in
    Array(
      "{\"n\":\(document),\"revision\":\(revision),\"text\":\"d\u{e9}j\u{e0} \(document * 7_919 % 1_000)\",\"type\":\"t\(document % 3)\"}"
        .utf8)
  }
  /// Returns the ID of a document.
  package var documentID: @Sendable (_ document: Int) -> String = { "doc-\($0)" }

  /// Settings for a hundred documents with one revision each.
  package init() {}

  /// Derives the key from a password, as the platform does.
  package static func key(password: String, platform: Platform) -> [UInt8] {
    let salt = Array("Salty McNaCl".utf8)
    var key = [UInt8](repeating: 0, count: 32)
    // Android counts UTF-16 units instead of UTF-8 bytes.
    let count = platform == .android ? min(password.utf16.count, password.utf8.count) : password.utf8.count
    let bytes = password.utf8.map { CChar(bitPattern: $0) }
    PKCS5_PBKDF2_HMAC(
      bytes, Int32(count), salt, Int32(salt.count), 64_000, platform == .net ? EVP_sha1() : EVP_sha256(), 32,
      &key)
    return key
  }
}

/// A document of such a database: what the maker writes, and what a reader should find.
package struct LegacyDocument: Sendable {
  /// A revision.
  package struct Revision: Sendable {
    /// The revision ID.
    package var id: String
    /// The index of the parent among the document's revisions; nil for a root.
    package var parent: Int?
    /// Whether it is a tombstone.
    package var isDeleted: Bool
    /// Whether it has no children.
    package var isLeaf: Bool
    /// The JSON without attachments; nil if the database doesn't have the body any more.
    package var body: [UInt8]?
    /// The attachments, if the revision has a body.
    package var attachments: [Attachment]
  }

  /// An attachment of a revision.
  package struct Attachment: Sendable {
    /// Its name.
    package var name: String
    /// The number of the attachment in the database (`LegacyDatabase.attachmentBytes(_:)`).
    package var number: Int
    /// Whether it is stored compressed.
    package var isCompressed: Bool
    /// The generation that added it.
    package var revpos: Int
  }

  /// The document ID.
  package var id: String
  /// The revisions, parents before children.
  package var revisions: [Revision]
  /// The expiration in seconds since 1970; nil for never.
  package var expiration: Int?
}

extension LegacyDatabase {
  /// Makes a document by its number. It depends only on the settings, not on the documents before it.
  package func document(_ number: Int) -> LegacyDocument {
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
          // An attachment that other documents have too.
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
      // A branch from the first revision, sometimes longer than the main branch.
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
      while text.count < count { text += Hex.text(random.next(), digits: 16) }
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

  /// Makes the bytes of an attachment, before compression.
  package func attachmentBytes(_ number: Int) -> [UInt8] {
    var random = SeededRandom(seed: seed, stream: 2, index: UInt64(bitPattern: Int64(number)))
    let count = attachmentBytes / 2 + random.below(max(1, attachmentBytes))
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
      let word = random.next()
      // Half of the bytes are equal, so that compression is useful.
      for shift in 0..<8 {
        bytes.append(shift < 4 ? UInt8(truncatingIfNeeded: word >> UInt64(shift * 8)) : 0x41)
      }
    }
    return Array(bytes.prefix(count))
  }

  /// Makes a local document: its ID without `_local/`, its generation, and its JSON.
  package func localDocument(_ number: Int) -> (id: String, generation: Int, json: String) {
    ("local-\(number)", 1 + number % 3, "{\"checkpoint\":\"\(number)\",\"n\":\(number)}")
  }
}
