import Datasets
import FoundationEssentials
import Touchstone

/// Loads the documents of a Couchbase Lite 2.x or 3.x database as a data set. None of the known data sets
/// (`KnownDatasets`) is one.
enum CBLite2Dataset {
  /// Whether the name of a data set is the path of such a database, zipped or not.
  static func isNamed(_ path: String) -> Bool {
    [".cblite2", ".cblite2/", ".cblite2.zip"].contains { path.hasSuffix($0) }
  }

  /// Loads its live documents, by ID: those of the default collection, or of all collections if the default
  /// one is empty.
  static func load(_ path: String, documents: Int?) throws -> LoadedDataset {
    let directory = FileManager.default.temporaryDirectory.appending(path: "touchstone-\(UUID())").path
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let database = try Database.open(
      directory + "/documents", options: DatabaseOptions(engine: .lmdb, durability: .none))
    defer { try? database.close() }
    let report = try database.importCBLite2(path)
    if report.read == 0 {
      for collection in report.otherCollections where collection.documents > 0 {
        try database.importCBLite2(path, collection: collection.name)
      }
    }
    let lines = directory + "/documents.jsonl"
    let writer = try ByteWriter(path: lines)
    var line: [UInt8] = []
    try database.read { snapshot in
      try snapshot.forEachDocument(order: .ascending) { document in
        line.removeAll(keepingCapacity: true)
        line += Array("{\"_id\":\(try JSONValue.string(document.id).canonicalJSON())".utf8)
        let brace = line.count
        try document.writeJSON(into: &line)
        if line.count == brace + 2 { line.remove(at: brace) } else { line[brace] = UInt8(ascii: ",") }
        try line.withUnsafeBytes { try writer.writeLine($0) }
        return true
      }
    }
    try writer.finish()
    return try LoadedDataset.load(lines, documents: documents, as: path)
  }
}
