import Datasets
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

let folderBlob = (0..<70_000).map { UInt8(truncatingIfNeeded: $0 * 13 + $0 >> 8) }

/// Fills an empty database with documents, an index, a blob, and the text `marker`. It closes the database.
func fill(_ database: Database, _ marker: String, documents: Int = 40, hasBlob: Bool = true) throws {
  try database.inBatch {
    for n in 0..<documents {
      try database.save("\(marker)-\(n)", ["n": .int(Int64(n)), "marker": .string(marker)])
    }
    try database.save("marker", ["marker": .string(marker)])
    if hasBlob {
      let bytes = folderBlob + Array(marker.utf8)
      try database.save("blob", ["file": try database.makeBlob(bytes).jsonValue])
    }
  }
  try database.createIndex("byN", on: ["n"])
  try database.close()
}

/// Makes a database at a path.
func makeDatabase(
  _ engine: EngineName, at path: String, _ marker: String, documents: Int = 40, hasBlob: Bool = true
) throws {
  try fill(
    try Database.open(path, options: try options(engine)), marker, documents: documents, hasBlob: hasBlob)
}

/// Checks the whole of a database that `fill` filled, and returns its marker. It closes the database.
func marker(of database: Database, documents: Int = 40, hasBlob: Bool = true) throws -> String? {
  defer { try? database.close() }
  let faults = try database.check(deep: true)
  expect(faults.isEmpty, "\(faults)")
  let marker = try #require(try database.document("marker")?["marker"].string)
  try expect(database.documentCount, equals: documents + (hasBlob ? 2 : 1))
  try expect(database.query("SELECT n FROM _ WHERE n >= 0").run().count, equals: documents)
  if hasBlob {
    let blob = try #require(try database.document("blob")?["file"].blob)
    try expect(database.contents(of: blob), equals: folderBlob + Array(marker.utf8))
  }
  return marker
}

/// Checks that a directory of a database has only the files of that database, and the folder nothing else.
func expectNoLeftovers(
  _ directory: String, _ names: [String] = ["a.touchstone"], _ comment: Comment? = nil,
  sourceLocation: SourceLocation = #_sourceLocation
) throws {
  let manager = FileManager.default
  #expect(
    try manager.contentsOfDirectory(atPath: directory).sorted() == names, comment,
    sourceLocation: sourceLocation)
  for name in names {
    let files = try manager.contentsOfDirectory(atPath: directory + "/" + name).sorted()
    let data = files.filter { name in
      name.hasPrefix("data-") && !["-lock", "-shm", "-wal"].contains { name.hasSuffix($0) }
    }
    let isPlain = try !Database.isEncrypted(directory + "/" + name)
    let others = files.filter { !$0.hasPrefix("data-") && !["lock", "database.json"].contains($0) }
    #expect(data.count == 1, "\(files)", sourceLocation: sourceLocation)
    #expect(
      others.filter { $0.hasPrefix("key") }.count == (isPlain ? 0 : 1), "\(files)",
      sourceLocation: sourceLocation)
    #expect(
      others.allSatisfy { $0.hasPrefix("key") || $0.hasPrefix("Attachments") } && others.count <= 2,
      "\(files)",
      sourceLocation: sourceLocation)
  }
}

/// Makes a Couchbase Lite 1.x database and returns its path.
func makeLegacyDatabase(
  _ version: LegacyDatabase.Version, _ name: String, in directory: String, key: [UInt8]? = nil
) throws -> String {
  var settings = LegacyDatabase()
  settings.version = version
  settings.documents = 60
  settings.history = 2
  settings.attachments = 30
  settings.localDocuments = 3
  settings.key = key
  return try LegacyDatabaseMaker(settings).make(name, in: directory)
}

/// The files below a directory as entries of a zip file, with their paths from its parent directory.
func zipEntries(of directory: String) throws -> [(name: String, contents: [UInt8])] {
  let manager = FileManager.default
  let root = (directory as NSString).lastPathComponent
  return try manager.subpathsOfDirectory(atPath: directory).sorted().compactMap { name in
    var isDirectory: ObjCBool = false
    let path = directory + "/" + name
    guard manager.fileExists(atPath: path, isDirectory: &isDirectory), !isDirectory.boolValue else {
      return nil
    }
    return (root + "/" + name, Array(try Data(contentsOf: URL(fileURLWithPath: path))))
  }
}
