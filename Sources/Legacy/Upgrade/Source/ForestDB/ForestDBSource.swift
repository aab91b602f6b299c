import Encryption
import Fleece
import ForestDBFile

/// A 1.x database in ForestDB.
final class ForestDBSource: Source {
  let location: SourceFiles
  let key: SecretBytes?
  let file: ForestDBFile
  let userVersion = 0
  let hasUniqueSequences = false
  /// Couchbase Lite takes documents of 20 MB. A few bytes of a compressed body can stand for many.
  let maximumBodyBytes = 21 << 20
  private(set) var issues: [UpgradeIssue] = []
  /// The number of documents that can be read, known after the check.
  private(set) var documentCount = 0
  /// The highest sequence of a document, known after the check.
  private var highestSequence: UInt64 = 0
  private let expiryStore: ForestDBStore?

  /// The array of time and ID by which 1.x sorts expirations begins with this byte.
  private static let sortedExpiry: UInt8 = 7

  init(_ location: SourceFiles, key: UserKey?, scratch: String) throws {
    self.location = location
    do {
      let directory = try ForestDBDirectory(
        location.path, names: location.forestNames, keys: try key.map(SourceKey.candidates) ?? [],
        scratch: scratch)
      file = directory.file
      self.key = directory.key
      expiryStore = file.store("expiry")
      for damage in directory.damages { issues.append(Self.issue(.damagedCommit, damage, file)) }
      for damage in file.commitDamages { issues.append(Self.issue(.damagedCommit, damage, file)) }
      for damage in file.logDamages { issues.append(Self.issue(.damagedRecord, damage, file)) }
      for damage in directory.others { issues.append(Self.issue(.damagedElsewhere, damage, file)) }
    } catch let error as ForestDBError { throw Self.error(error, location, isPassword: key?.isRaw == false) }
  }

  private static func issue(
    _ kind: UpgradeIssue.Kind, _ damage: ForestDBDamage, _ file: ForestDBFile
  ) -> UpgradeIssue {
    UpgradeIssue(kind, "\(damage.message), at byte \(damage.offset) of \(damage.file ?? file.path)")
  }

  /// Reads every node of the index and every record of a document once.
  func check() throws {
    try reading {
      let records = try file.records(of: file.stores[0])
      while let item = try records.next() {
        guard case .record = item else { continue }
        documentCount += 1
        highestSequence = max(highestSequence, records.sequence)
      }
      if hasImplausibleSequence {
        issues.append(
          UpgradeIssue(
            .damagedElsewhere,
            "the last sequence of the header, \(file.lastSequence), can't be right; that of the documents is taken, "
              + "\(highestSequence)"))
      }
      for damage in records.replacedDamages {
        issues.append(
          UpgradeIssue(
            .damagedElsewhere, "a record that was replaced can't be read: \(Self.text(damage, file))"))
      }
    }
  }

  func makeReader() throws -> any SourceReader {
    try reading {
      let expirations = try expiryStore.map { try file.lookup(in: $0, ignoring: Self.sortedExpiry) }
      return ForestDBReader(self, try file.documents(), expirations)
    }
  }

  // MARK: Other contents

  func forEachLocalDocument(
    _ body: (_ id: String, _ generation: UInt64, _ json: UnsafeRawBufferPointer) throws -> Void,
    skipped: (_ id: String?, _ reason: String) throws -> Void
  ) throws {
    guard let store = file.store("_local") else { return }
    try reading {
      let records = try file.records(of: store)
      while let item = try records.next() {
        switch item {
        case .damaged(let damage, let key):
          try skipped(
            key.map { String(decoding: $0.prefix(500), as: UTF8.self) },
            "it can't be read: \(Self.text(damage, file))")
        case .record:
          guard let id = String(validating: records.key, as: UTF8.self) else {
            try skipped(String(decoding: records.key.prefix(500), as: UTF8.self), "its ID isn't UTF-8")
            continue
          }
          let revision = String(decoding: records.meta.prefix(40), as: UTF8.self)
          guard let json = records.body() else {
            try skipped(id, "its body can't be decompressed, at byte \(records.offset) of \(file.path)")
            continue
          }
          try withoutID(json.isEmpty ? SourceText.emptyBody : json) {
            try body(id, SourceText.localGeneration(revision), $0)
          }
        }
      }
    }
  }

  /// .NET keeps the ID of a local document in its body, which SQLite storage doesn't.
  private func withoutID(
    _ json: UnsafeRawBufferPointer, _ read: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    guard var value = try? JSONValue(json: json), let object = value.object, object["_id"] != nil else {
      return try read(json)
    }
    value.remove("_id")
    guard let text = try? value.canonicalJSON() else { return try read(json) }
    try Array(text.utf8).withUnsafeBytes { try read($0) }
  }

  func info(_ key: String) throws -> String? {
    var found: String?
    try forEachInfo { name, value in
      if name.elementsEqual(key.utf8), value.count <= 1_000 { found = String(decoding: value, as: UTF8.self) }
    }
    return found
  }

  func checkpointCount() throws -> Int {
    var count = 0
    try forEachInfo { name, _ in if name.starts(with: "checkpoint/".utf8) { count += 1 } }
    return count
  }

  private func forEachInfo(
    _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void
  ) throws {
    guard let store = file.store("info") else { return }
    try reading {
      let records = try file.records(of: store)
      while let item = try records.next() {
        guard case .record = item, let value = records.body() else { continue }
        body(records.key, value)
      }
    }
  }

  /// Values of `info` and expirations that can't be read.
  func extraIssues() throws -> [UpgradeIssue] {
    var issues: [UpgradeIssue] = []
    try forEachDamage("expiry") { key, reason in
      guard key?.first != Self.sortedExpiry else { return }
      issues.append(UpgradeIssue(.expiration, documentID: key.map(Self.name), "it can't be read: \(reason)"))
    }
    try forEachDamage("info") { key, reason in
      let name = key.map(Self.name)
      let isCarried = name.map { ["publicUUID", "privateUUID", "max_revs"].contains($0) } ?? true
      let subject = name.map { "the value '\($0)'" } ?? "a value"
      issues.append(
        UpgradeIssue(
          isCarried ? .damagedRecord : .damagedElsewhere,
          "\(subject) of the database can't be read: \(reason)"))
    }
    return issues
  }

  private static func name(_ key: [UInt8]) -> String { String(decoding: key.prefix(500), as: UTF8.self) }

  private func forEachDamage(_ name: String, _ body: (_ key: [UInt8]?, _ reason: String) -> Void) throws {
    guard let store = file.store(name) else { return }
    try reading {
      let records = try file.records(of: store)
      while let item = try records.next() {
        switch item {
        case .damaged(let damage, let key): body(key, Self.text(damage, file))
        case .record where name == "info" && records.body() == nil:
          body(
            [UInt8](records.key), "its body can't be decompressed, at byte \(records.offset) of \(file.path)")
        case .record: break
        }
      }
    }
  }

  /// Views are in files of their own, which aren't read.
  func viewCount() throws -> Int {
    let names = SourceFiles.names(in: location.path).compactMap { name -> String? in
      // NAME.viewindex, NAME.viewindex.N and NAME.viewindex.meta
      let parts = name.split(separator: ".", omittingEmptySubsequences: false)
      guard let end = parts.lastIndex(of: "viewindex") else { return nil }
      return parts[..<end].joined(separator: ".")
    }
    return Set(names).count
  }

  /// The checksum of the header doesn't cover its last sequence.
  private var hasImplausibleSequence: Bool { file.lastSequence >= 1 << 53 }

  func lastSequence() throws -> Int {
    Int(clamping: hasImplausibleSequence ? highestSequence : file.lastSequence)
  }

  // MARK: Errors

  static func text(_ damage: ForestDBDamage, _ file: ForestDBFile) -> String {
    "\(damage.message), at byte \(damage.offset) of \(damage.file ?? file.path)"
  }

  /// Reads from the file. Converts its errors.
  func reading<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch let error as ForestDBError { throw Self.error(error, location) }
  }

  /// Converts an error of the file to an error about the source.
  static func error(
    _ error: ForestDBError, _ location: SourceFiles, isPassword: Bool = false
  ) -> UpgradeError {
    let place = error.offset.map { " at byte \($0)" } ?? ""
    switch error.code {
    case .notFound:
      return UpgradeError(.foreign, "the directory has files of ForestDB, but no database", path: error.path)
    case .foreign: return UpgradeError(.foreign, error.message, path: error.path)
    case .unsupported: return UpgradeError(.forestDB, error.message + place, path: error.path)
    case .truncated:
      return UpgradeError(.truncated, "\(error.message)\(place); restore it from a backup", path: error.path)
    case .damaged:
      return UpgradeError(
        .damaged, "the file is damaged\(place) (\(error.message)); restore it from a backup", path: error.path
      )
    case .keyRequired:
      return UpgradeError(
        .keyRequired,
        "the file is encrypted, or it isn't a database; if it is encrypted, give its password or key",
        path: location.path)
    case .wrongKey:
      return UpgradeError(
        .wrongKey,
        "the \(isPassword ? "password" : "key") is wrong, or the file isn't an encrypted 1.x database",
        path: location.path)
    case .notEncrypted:
      return UpgradeError(
        .notEncrypted, "a key was given, but the database isn't encrypted", path: location.path)
    }
  }
}
