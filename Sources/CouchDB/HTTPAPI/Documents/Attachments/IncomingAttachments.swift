import Blobs
import Bytes
import Documents
import Fleece
import Views

/// What a document that a client sends says of its attachments, in the order of the text.
struct IncomingAttachments {
  /// Where the bytes of an attachment are.
  enum Content {
    /// In the text, as base64.
    case inline(Range<Int>)
    /// In the revision before. `revpos` is what the client has seen there.
    case stub(revpos: SeenGeneration)
    /// In a later part of the body, with that many bytes.
    case follows(length: UInt64?, isCompressed: Bool, digest: String?)
  }

  /// The `revpos` of a stub.
  enum SeenGeneration {
    case unknown
    case generation(UInt64)
    /// Something that is no generation.
    case other

    init(_ value: JSONValue?) {
      switch value {
      case nil: self = .unknown
      case .double(let number)?: self = UInt64(exactly: number).map { .generation($0) } ?? .other
      case let number?: self = number.uint.map { .generation($0) } ?? .other
      }
    }

    /// Whether that is the one of an attachment. What stands for a blob has none.
    func matches(_ revpos: UInt64?) -> Bool {
      guard let revpos else { return true }
      switch self {
      case .unknown: return true
      case .generation(let generation): return generation == revpos
      case .other: return false
      }
    }
  }

  struct Entry {
    var name: String
    var contentType: String
    var revpos: UInt64?
    var content: Content
  }

  private(set) var entries: [Entry] = []

  /// Those whose bytes follow.
  var following: [Entry] { entries.filter { if case .follows = $0.content { true } else { false } } }

  /// The memory that an entry takes besides its name, in bytes, with the attachment that becomes of it.
  private static let entryBytes = 512

  /// Reads the object at `range`. Throws 400 if an entry is wrong.
  init(_ text: UnsafeRawBufferPointer, _ range: Range<Int>, _ memory: RequestMemory?) throws {
    var scanner = JSONScanner(text, range)
    var places: [ByteString: Int] = [:]
    try scanner.object { scanner, member in
      let name = try JSONScanner.name(member, in: text)
      try Self.check(name)
      try memory?.hold(Self.entryBytes + 2 * member.name.count)
      guard scanner.kind == UInt8(ascii: "{") else {
        _ = try scanner.value()
        throw Self.invalidData(name)
      }
      var members = JSONObject()
      var data: Range<Int>?
      try scanner.object { scanner, member in
        let value = try scanner.value()
        if try JSONScanner.isNamed("data", member, in: text) {
          data = value
        } else {
          members[try JSONScanner.name(member, in: text)] = try JSONScanner.parse(value, in: text, memory)
        }
      }
      let entry = try Self.entry(name, members, data, text)
      // Of several with one name the last one counts.
      if let place = places[ByteString(name)] {
        entries[place] = entry
      } else {
        places[ByteString(name)] = entries.count
        entries.append(entry)
      }
    }
  }

  private static func entry(
    _ name: String, _ members: JSONObject, _ data: Range<Int>?, _ text: UnsafeRawBufferPointer
  ) throws -> Entry {
    let content: Content
    let revpos = members["revpos"]?.uint
    if members["stub"]?.bool == true {
      content = .stub(revpos: SeenGeneration(members["revpos"]))
    } else if members["follows"]?.bool == true {
      let isCompressed = members["encoding"]?.string == "gzip"
      let length = (isCompressed ? members["encoded_length"] : nil) ?? members["length"]
      guard length == nil || length?.uint != nil else { throw invalidData(name) }
      content = .follows(
        length: length?.uint,
        isCompressed: isCompressed,
        digest: members["digest"]?.string)
    } else {
      guard let data, text[data.lowerBound] == UInt8(ascii: "\"") else { throw invalidData(name) }
      content = .inline(data.lowerBound + 1..<data.upperBound - 1)
    }
    return Entry(
      name: name, contentType: members["content_type"]?.string ?? StoredAttachment.defaultType,
      revpos: revpos,
      content: content)
  }

  /// Throws 400 if an attachment can't have that name.
  static func check(_ name: String) throws {
    if name.utf8.isEmpty { throw CouchDBError(400, "bad_request", "Attachment name must not be empty") }
    guard name.utf8.first != UInt8(ascii: "_") else {
      throw CouchDBError(
        400, "bad_request", "Attachment name '\(name)' starts with prohibited character '_'")
    }
  }

  static func invalidData(_ name: String) -> CouchDBError {
    CouchDBError(400, "bad_request", "Invalid attachment data for \(name)")
  }
}

/// Gathers the attachments of one document that is about to be saved, and discards the new blobs if it isn't.
struct NewAttachments {
  private let blobs: BlobStore
  private var claims: Set<BlobDigest> = []

  init(_ call: DatabaseCall) throws { blobs = try call.database.replicating { try $0.requiredBlobs } }

  /// Notes a new attachment that was stored for this document.
  mutating func claim(_ attachment: StoredAttachment) {
    // Saving the document ends one claim on each blob.
    if !claims.insert(attachment.digest).inserted { blobs.discard(attachment.digest) }
  }

  /// An attachment that was claimed isn't saved with the document. One that isn't new stays as it is.
  mutating func release(_ attachment: StoredAttachment) {
    if claims.remove(attachment.digest) != nil { blobs.discard(attachment.digest) }
  }

  /// The document isn't saved.
  mutating func discard() {
    for digest in claims { blobs.discard(digest) }
    claims = []
  }
}
