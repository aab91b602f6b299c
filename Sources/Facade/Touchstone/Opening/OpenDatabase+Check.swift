import Documents
import Storage

/// The file of a database has faults, so it wasn't opened (`DatabaseOptions.checksFile`).
public struct DamagedFile: Error, Sendable, CustomStringConvertible {
  /// The directory of the database.
  public let path: String
  /// The faults that the engine found, at least one.
  public let faults: [IntegrityFault]

  /// The path, and the first fault.
  public var description: String {
    let more = faults.count > 1 ? ", and \(faults.count - 1) more faults" : ""
    return "the file is damaged: \(path) (\(faults.first?.problem ?? "")\(more))"
  }
}

extension OpenDatabase {
  /// Lets the engine check its file before documents are read. Closes the engine and throws `DamagedFile` if there are faults.
  static func checkFile(_ engine: any StorageEngine, _ path: String) throws {
    guard let engine = engine as? any EngineMaintenance else { return }
    let faults: [IntegrityFault]
    do { faults = try engine.checkIntegrity().map { IntegrityFault("engine", $0) } } catch {
      try? engine.close()
      throw error
    }
    guard !faults.isEmpty else { return }
    try? engine.close()
    throw DamagedFile(path: path, faults: faults)
  }

  /// Checks documents, indexes and views. A deep check of an encrypted database also checks its files.
  func check(
    deep: Bool, limit: Int, onFile: @escaping (FileEntropy) -> Void, progress: @escaping (Int) throws -> Void
  ) throws -> [IntegrityFault] {
    let views: (subject: String, check: (IntegrityCheck) throws -> Void) = (
      "views", { [self] in try self.views.check($0) }
    )
    guard deep, isEncrypted else {
      return try store.check(deep: deep, limit: limit, others: [views], progress: progress)
    }
    let search: (IntegrityCheck) throws -> Void = { [self] check in
      // A compaction makes files that `database.json` doesn't name yet.
      let files = try whileFilesStay { try home.plaintextCheck(heldFiles, onFile: onFile) }
      try files?.run(check, store)
    }
    return try heldFiles.using {
      try store.check(
        deep: deep, limit: limit, others: [views, (PlaintextCheck.subject, search)], progress: progress)
    }
  }
}
