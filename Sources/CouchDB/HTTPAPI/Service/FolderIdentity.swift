import Bytes
import Fleece
import Storage
import Views

/// The file `server.json` in a folder of databases that is served. Clients such as PouchDB keep what they have replicated under the
/// `uuid` of the server, so it must last.
///
///     {"version":1,"uuid":"5c80ad41…"}      32 hexadecimal digits
enum FolderIdentity {
  static let fileName = "server.json"
  private static let limit = 4 << 10

  /// Reads the file. Nil if there is none. Throws a `CouchDBError` if it isn't one that this release knows.
  static func read(in folder: String) throws -> String? {
    let bytes: [UInt8]
    do { bytes = try AtomicFile.read(path(in: folder), limit: limit) } catch let error as StorageError
      where error.code == .notFound
    { return nil }
    let value = try bytes.withUnsafeBytes { try JSONValue(json: $0) }
    guard value["version"] == 1, let uuid = value["uuid"].string, uuid.utf8.count == 32,
      uuid.utf8.allSatisfy({ $0 &- 0x30 < 10 || $0 &- 0x61 < 6 })
    else {
      throw CouchDBError(500, "internal_server_error", "\(fileName) isn't of version 1")
    }
    return uuid
  }

  /// Makes the file. Another process may do so at the same time; returns what is in it then.
  static func make(_ uuid: String, in folder: String) throws -> String {
    do {
      try AtomicFile.write(
        Array("{\"version\":1,\"uuid\":\"\(uuid)\"}\n".utf8), to: path(in: folder), replacement: .refused,
        permissions: 0o644)
      return uuid
    } catch let error as StorageError where error.code == .alreadyExists {
      return try read(in: folder) ?? uuid
    }
  }

  private static func path(in folder: String) -> String { "\(folder)/\(fileName)" }
}
