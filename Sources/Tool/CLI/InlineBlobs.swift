import Blobs
import Datasets
import FoundationEssentials
import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// Blobs inside exported lines: the object that names a blob by its digest also has its bytes, as `data` in base64.
///
///     {"@type":"blob","digest":"sha1-…","data":"YWJj","length":3}
///     "_attachments":{"a.txt":{"digest":"sha1-…","data":"YWJj","stub":true}}
enum InlineBlobs {
  /// What is written after a digest.
  private static let member = "\"data\":"

  /// Returns the line with the bytes of the blobs that the database has. `missing` gets those that it hasn't.
  static func adding(to line: [UInt8], from database: Database, missing: inout Set<BlobDigest>) throws
    -> [UInt8]
  {
    var result: [UInt8] = []
    var copied = 0
    try line.withUnsafeBytes { bytes in
      try ExportedBlobs.forEachReference(in: bytes) { digest, end in
        let content: [UInt8]
        do { content = try database.contents(of: Blob(digest: digest, length: 0)) } catch let error
          as StorageError
          where error.code == .notFound
        {
          missing.insert(digest)
          return
        }
        if result.isEmpty, try hasOwnData(bytes) {
          throw UsageError(
            "an object of a document has a digest and a member 'data' of its own, so its blob can't be inside the line; "
              + "use --attachments directory")
        }
        result += bytes[copied..<end]
        copied = end
        result += ",\(member)\"\(Data(content).base64EncodedString())\"".utf8
      }
      result += bytes[copied...]
    }
    return result
  }

  /// Whether an object has both members already.
  private static func hasOwnData(_ line: UnsafeRawBufferPointer) throws -> Bool {
    guard contains(line) else { return false }
    return hasData(try JSONValue(json: line))
  }

  private static func hasData(_ value: JSONValue) -> Bool {
    switch value {
    case .array(let items): items.contains(where: hasData)
    case .object(let members):
      (members["digest"] != nil && members["data"] != nil) || members.values.contains(where: hasData)
    default: false
    }
  }

  // MARK: Import

  /// The line without the bytes of blobs, which are stored in the database. Nil if there are none. The document must be saved
  /// in the same open. Throws a `UsageError` for bytes that don't have their digest.
  static func taking(from line: UnsafeRawBufferPointer, into database: Database) throws -> [UInt8]? {
    guard contains(line), var value = try? JSONValue(json: line) else { return nil }
    guard try take(&value, database, isAttachment: false) else { return nil }
    return Array(try value.canonicalJSON().utf8)
  }

  private static func take(_ value: inout JSONValue, _ database: Database, isAttachment: Bool) throws -> Bool
  {
    switch value {
    case .array(var items):
      var isChanged = false
      for index in items.indices where try take(&items[index], database, isAttachment: false) {
        isChanged = true
      }
      if isChanged { value = .array(items) }
      return isChanged
    case .object(var members):
      var isChanged = false
      for (name, _) in members {
        // The members of `_attachments` are blobs; so are objects that say it.
        if var member = members[name], try take(&member, database, isAttachment: name == "_attachments") {
          members[name] = member
          isChanged = true
        }
      }
      if isAttachment {
        for (name, _) in members {
          guard case .object(var blob)? = members[name], try take(&blob, database, isBlob: true) else {
            continue
          }
          members[name] = .object(blob)
          isChanged = true
        }
      }
      if try take(&members, database, isBlob: members["@type"]?.string == "blob") { isChanged = true }
      if isChanged { value = .object(members) }
      return isChanged
    default: return false
    }
  }

  /// Takes the bytes out of an object with a digest. Another object than a blob may have members of these names with another
  /// meaning: only bytes with the digest are a blob's there.
  private static func take(_ members: inout JSONObject, _ database: Database, isBlob: Bool) throws -> Bool {
    guard let text = members["digest"]?.string, let digest = BlobDigest(text),
      let data = members["data"]?.string
    else { return false }
    guard let bytes = Data(base64Encoded: data) else {
      guard isBlob else { return false }
      throw UsageError("the data of the blob \(text) isn't base64")
    }
    // A blob that no document names is removed later.
    let writer = try database.makeBlobWriter()
    try bytes.withUnsafeBytes { try writer.write($0) }
    let found = try writer.finish().digest
    guard found == digest else {
      guard isBlob else { return false }
      throw UsageError("the data of the blob \(text) has the digest \(found)")
    }
    members.removeValue(forKey: "data")
    return true
  }

  /// Whether the line has the member anywhere.
  private static func contains(_ line: UnsafeRawBufferPointer) -> Bool {
    guard let base = line.baseAddress else { return false }
    let wanted = Array(member.utf8)
    var position = 0
    while position + wanted.count <= line.count,
      let found = memchr(base + position, Int32(wanted[1]), line.count - position)
    {
      let start = UnsafeRawPointer(found) - base - 1
      if start >= 0, start + wanted.count <= line.count, memcmp(base + start, wanted, wanted.count) == 0 {
        return true
      }
      position = start + 2
    }
    return false
  }
}
