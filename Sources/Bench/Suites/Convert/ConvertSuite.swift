import BenchmarkKit
import FoundationEssentials
import Storage
import Touchstone

extension Suite {
  /// Operations that rewrite a database, compare two databases, or change keys.
  public static let convert = Suite(
    name: "convert",
    summary:
      "Conversion between each pair of engines, compared with a copy of the same bytes with fsync; rekey, rotate, encrypt, "
      + "decrypt, copy; verify, compared with one full export.",
    workloadNames: ConvertWorkload.allCases.map(\.rawValue), usesDataset: true,
    standardEngines: { BenchEngines.encrypting(after: [.sqlite, .lmdb, .sqlcipher]) }
  ) { context in
    let data = try ConvertData(context)
    return ConvertWorkload.allCases.flatMap { data.workloads($0) }
  }
}

/// The workloads of the suite `convert`.
enum ConvertWorkload: String, CaseIterable {
  case convert, copy, rekey, rotate, encrypt, decrypt, verify

  var summary: String {
    switch self {
    case .convert: "a new database of the engine from one of another, written, compared and synced"
    case .copy: "a copy with UUIDs of its own, written, compared and synced"
    case .rekey: "another passphrase"
    case .rotate: "a new data key, everything written anew in place"
    case .encrypt: "a plain database becomes one of the engine, in place"
    case .decrypt: "a database of the engine becomes a plain one, in place"
    case .verify: "two databases compared, revision by revision"
    }
  }
}

/// The data that the runs of the suite share: one database of each engine with the same documents.
final class ConvertData: Sendable {
  static let name = "travel"
  private let context: SuiteContext
  private let documents: Int

  init(_ context: SuiteContext) throws {
    self.context = context
    documents = try context.dataset(for: "convert").count
  }

  private func key(_ engine: ProbedEngine) throws -> UserKey? {
    try engine.type.encrypts ? UserKey.raw(ProbedEngine.key) : nil
  }

  /// The path of a closed database of the engine, which isn't changed.
  private func filled(_ engine: ProbedEngine) throws -> String {
    try context.fixtures.directory("convert \(engine.type.name)") { directory in
      let database = try Database.open(
        Self.name, in: directory,
        options: DatabaseOptions(
          engine: EngineName(rawValue: engine.type.name), durability: .none, key: try key(engine),
          compaction: .off))
      try context.dataset?.save(in: database)
      try database.close()
    } + "/\(Self.name).touchstone"
  }

  /// The plain engine from which `encrypt` starts and to which `decrypt` converts.
  private func plain(_ engine: ProbedEngine) throws -> ProbedEngine {
    let wanted = engine.type.name.contains("lmdb") ? "lmdb" : "sqlite"
    return try context.engines[wanted]
      ?? ProbedEngine(
        try Engines.type(EngineName(rawValue: wanted)), durability: context.settings.durability,
        workDirectory: context.settings.workDirectory)
  }

  // MARK: Workloads

  func workloads(_ kind: ConvertWorkload) -> [Workload] {
    let engines = context.engines
    let encrypts: @Sendable (String) -> Bool = { engines[$0]?.type.encrypts ?? false }
    switch kind {
    case .convert:
      return engines.keys.sorted().map { source in
        workload(kind, ["from": .string(source)], limit: copyLimit, runs: { $0 != source }) {
          [self] engine, trial in
          try convertTrial(from: try context.engine(source), to: engine, trial)
        }
      }
    case .copy:
      return [
        workload(kind, [:], limit: copyLimit) { [self] engine, trial in
          let source = try filled(engine)
          let key = try key(engine)
          return made(trial) { try Database.copy(source, to: $0, key: key) }
        }
      ]
    case .rekey:
      let (old, new) = ("the first passphrase", "the second passphrase")
      return [
        workload(kind, [:], operations: 1, runs: encrypts) { [self] engine, trial in
          let path = try copied(try filled(engine), trial)
          guard let raw = try key(engine) else { throw Self.noKey }
          try Database.rekey(path, key: raw, newKey: .passphrase(old))
          return changed(trial) { try Database.rekey(path, key: .passphrase(old), newKey: .passphrase(new)) }
        }
      ]
    case .rotate:
      return [
        workload(kind, [:], limit: copyLimit, runs: encrypts) { [self] engine, trial in
          let path = try copied(try filled(engine), trial)
          guard let key = try key(engine) else { throw Self.noKey }
          return changed(trial) { try Database.rotateKey(path, key: key) }
        }
      ]
    case .encrypt:
      return [
        workload(kind, [:], limit: copyLimit, runs: encrypts) { [self] engine, trial in
          let path = try copied(try filled(try plain(engine)), trial)
          guard let key = try key(engine) else { throw Self.noKey }
          let name = EngineName(rawValue: engine.type.name)
          return changed(trial) { try Database.encrypt(path, key: key, engine: name) }
        }
      ]
    case .decrypt:
      return [
        workload(kind, [:], limit: copyLimit, runs: encrypts) { [self] engine, trial in
          let path = try copied(try filled(engine), trial)
          guard let key = try key(engine) else { throw Self.noKey }
          let name = EngineName(rawValue: try plain(engine).type.name)
          return changed(trial) { try Database.decrypt(path, key: key, engine: name) }
        }
      ]
    case .verify:
      return engines.keys.sorted().map { other in
        workload(kind, ["with": .string(other)], limit: exportLimit) { [self] engine, trial in
          try verifyTrial(engine, try context.engine(other), trial)
        }
      }
    }
  }

  private static var noKey: StorageError { StorageError(.keyRequired, "the engine has no key in this run") }

  private func workload(
    _ kind: ConvertWorkload, _ parameters: Parameters, operations: Int? = nil, limit: Workload.Limit? = nil,
    runs: @escaping @Sendable (String) -> Bool = { _ in true },
    _ trial: @escaping @Sendable (ProbedEngine, TrialContext) throws -> Trial
  ) -> Workload {
    Workload(
      suite: "convert", name: kind.rawValue, summary: kind.summary, parameters: parameters,
      operations: operations ?? documents, runsThreads: kind != .rekey && kind != .verify, limit: limit,
      runs: runs
    ) { [context] in try trial(try context.engine($0.engine), $0) }
  }

  // MARK: Runs

  private func convertTrial(from source: ProbedEngine, to engine: ProbedEngine, _ trial: TrialContext) throws
    -> Trial
  {
    let path = try filled(source)
    let name = EngineName(rawValue: engine.type.name)
    let (key, newKey) = (try key(source), try key(engine))
    return made(trial) { try Database.convert(path, to: name, at: $0, key: key, newKey: newKey) }
  }

  /// A run that makes a database at the path that `body` receives.
  private func made(_ trial: TrialContext, _ body: @escaping (String) throws -> Void) -> Trial {
    Trial(
      timing: { try body("\(trial.directory)/new.touchstone") },
      fileBytes: { try TrialDirectory.fileBytes(in: trial.directory) })
  }

  /// A run that changes a database in the trial's directory.
  private func changed(_ trial: TrialContext, _ body: @escaping () throws -> Void) -> Trial {
    Trial(
      timing: { try body() }, fileBytes: { try TrialDirectory.fileBytes(in: trial.directory) })
  }

  private func copied(_ path: String, _ trial: TrialContext) throws -> String {
    try Fixtures.copy(URL(filePath: path).deletingLastPathComponent().path, to: trial.directory)
    return "\(trial.directory)/\(Self.name).touchstone"
  }

  private func verifyTrial(_ engine: ProbedEngine, _ other: ProbedEngine, _ trial: TrialContext) throws
    -> Trial
  {
    let left = try open(engine, trial.directory + "/left")
    return try left.closingOnFailure {
      let right = try open(other, trial.directory + "/right")
      return Trial(
        timing: { [documents] in
          var differences = 0
          let compared = try left.compare(with: right) { _ in differences += 1 }
          guard differences == 0, compared == documents else {
            throw RunMismatch(seen: compared - differences, expected: documents)
          }
        },
        finish: {
          try left.close()
          try right.close()
        })
    }
  }

  /// Copies the engine's database and opens the copy as a user does. A path can be open only once.
  private func open(_ engine: ProbedEngine, _ directory: String) throws -> Database {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    try Fixtures.copy(URL(filePath: try filled(engine)).deletingLastPathComponent().path, to: directory)
    return try Database.open(
      Self.name, in: directory, options: DatabaseOptions(key: try key(engine), compaction: .off))
  }

  // MARK: Limits

  /// The limit: read the files of the engine's database, write them to new files, and sync.
  private var copyLimit: Workload.Limit {
    Workload.Limit(name: { _ in "a copy of the same bytes, with fsync" }) { [self] trial in
      let path = try filled(try context.engine(trial.engine))
      let files = try FileManager.default.subpathsOfDirectory(atPath: path).map { path + "/" + $0 }
      return Trial(timing: {
        for (number, file) in files.enumerated() {
          try FileCopy.copy(file, to: "\(trial.directory)/\(number)")
        }
      })
    }
  }

  /// The limit: make one JSON line per document, as `touchstone export` does, without writing a file.
  private var exportLimit: Workload.Limit {
    Workload.Limit(name: { _ in "one full export" }) { [self] trial in
      let database = try open(try context.engine(trial.engine), trial.directory + "/left")
      return Trial(
        timing: { [documents] in
          var line: [UInt8] = []
          var count = 0
          try database.read { snapshot in
            try snapshot.enumerate { document in
              line.removeAll(keepingCapacity: true)
              line += Array("{\"_id\":\"\(document.id)\"".utf8)
              try document.writeJSON(into: &line)
              count += 1
              return true
            }
          }
          if count != documents { throw RunMismatch(seen: count, expected: documents) }
        }, finish: { try database.close() })
    }
  }
}
