import Datasets
import TestSupport

/// A database in ForestDB whose files a test writes record by record, damages, and upgrades.
struct SketchedDatabase {
  let directory = TemporaryDirectory()
  let source: String

  init() throws {
    source = directory.path + "/old.cblite2"
    try FileManager.default.createDirectory(atPath: source, withIntermediateDirectories: true)
  }

  func path(_ number: Int = 0) -> String { "\(source)/db.forest.\(number)" }

  /// A file to be written. It is the only one, unless others have other numbers.
  func sketch(_ version: Int = 1, number: Int = 0, key: [UInt8]? = nil) throws -> ForestDBSketch {
    try ForestDBSketch(path(number), version: version, key: key)
  }

  /// Changes the bytes of a file.
  func damage(_ number: Int = 0, _ change: (inout ForestBytes) throws -> Void) throws {
    var file = try ForestBytes(path(number))
    try change(&file)
    try file.write()
  }

  @discardableResult
  func upgrade(
    _ carry: UpgradeOptions.Carry = .full, key: UserKey? = nil, isStrict: Bool = false
  ) throws -> UpgradeReport {
    try? FileManager.default.removeItem(atPath: directory.new + ".touchstone")
    return try Database.upgrade(
      source, to: directory.new,
      options: UpgradeOptions(carry: carry, isStrict: isStrict, verifies: true, sourceKey: key))
  }

  /// The current revisions of the documents in the result, by ID.
  func current() throws -> [String: String] {
    let database = try directory.openNew()
    defer { try? database.close() }
    var found: [String: String] = [:]
    for document in try database.documents() {
      found[document.id] = try database.revisions(of: document.id)?.first?.id.description
    }
    return found
  }
}
