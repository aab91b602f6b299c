import Blobs
import Datasets
import Foundation
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

  /// Returns the line with the bytes of the blobs that the database has. `missing` counts those that it hasn't.
  static func adding(to line: [UInt8], from database: Database, missing: inout Int) throws -> [UInt8] {
    var result: [UInt8] = []
    var copied = 0
    try line.withUnsafeBytes { bytes in
      try ExportedBlobs.forEachReference(in: bytes) { digest, end in
        let content: [UInt8]
        do { content = try database.contents(of: Blob(digest: digest, length: 0)) } catch let error
          as StorageError
          where error.code == .notFound
        {
          missing += 1
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
    guard try take(&value, database) else { return nil }
    return Array(try value.canonicalJSON().utf8)
  }

  private static func take(_ value: inout JSONValue, _ database: Database) throws -> Bool {
    switch value {
    case .array(var items):
      var isChanged = false
      for index in items.indices where try take(&items[index], database) { isChanged = true }
      if isChanged { value = .array(items) }
      return isChanged
    case .object(var members):
      var isChanged = false
      for (name, _) in members {
        if var member = members[name], try take(&member, database) {
          members[name] = member
          isChanged = true
        }
      }
      if let text = members["digest"]?.string, let digest = BlobDigest(text),
        let data = members["data"]?.string
      {
        guard let bytes = Data(base64Encoded: data) else {
          throw UsageError("the data of the blob \(text) isn't base64")
        }
        let writer = try database.makeBlobWriter()
        try bytes.withUnsafeBytes { try writer.write($0) }
        let stored = try writer.finish()
        guard stored.digest == digest else {
          throw UsageError("the data of the blob \(text) has the digest \(stored.digest)")
        }
        members.removeValue(forKey: "data")
        isChanged = true
      }
      if isChanged { value = .object(members) }
      return isChanged
    default: return false
    }
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
