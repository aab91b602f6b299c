import BenchmarkKit
import FoundationEssentials
import Storage
import Touchstone

/// A benchmark of the suite `documents` with its parameters. It makes the runs on an engine.
struct DocumentsBenchmark: Sendable {
  let kind: DocumentsWorkload
  let variant: DocumentsWorkload.Variant
  let data: DocumentsData
  let context: SuiteContext

  func workload() -> Workload {
    Workload(
      suite: "documents", name: kind.rawValue, summary: kind.summary, parameters: variant.parameters,
      operations: operations
    ) { trial in try documentsTrial(trial) }
  }

  private var sizes: DocumentsData.Sizes { data.sizes }

  private var blobCount: Int { sizes.blobs.first { $0.bytes == variant.bytes }?.count ?? 0 }

  private var operations: Int {
    switch kind {
    case .blobWrite, .blobRead: blobCount
    case .conflictStorm: sizes.conflicted * DocumentsWorkload.branches
    case .conflictResolve: sizes.conflicted * (DocumentsWorkload.branches - 1)
    case .history:
      DocumentsWorkload.historyBatch * DocumentsWorkload.windowBatches
        * sizes.historyDocuments
    case .purge, .compact: sizes.documents
    case .rewrite: sizes.documents * DocumentsWorkload.rewrites
    case .setExpiration, .expire: sizes.expiring
    case .readP50, .readP99: 1
    case .count: DocumentsWorkload.counts
    }
  }

  // MARK: Runs

  private func documentsTrial(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    if kind == .history || kind == .readP50 || kind == .readP99 { return try measuredTrial(engine, trial) }
    let directory = try directory(engine, trial)
    let database = try data.open(engine, in: directory)
    return try database.closingOnFailure {
      let work = try work(database)
      return Trial(
        timing: { try work() }, fileBytes: { try TrialDirectory.fileBytes(in: directory) },
        finish: { try database.close() })
    }
  }

  /// The directory of the database that a run uses.
  private func directory(_ engine: ProbedEngine, _ trial: TrialContext) throws -> String {
    var source: String?
    switch kind {
    case .blobWrite, .conflictStorm: break
    case .blobRead:
      return try data.fixture("blobs \(variant.bytes)", engine) { database in
        let blobs = (0..<blobCount).map { DocumentsData.blob($0, bytes: variant.bytes) }
        try data.saveBlobs(blobs, database)
      }
    case .conflictResolve:
      source = try data.fixture("conflicts", engine) { try $0.apply(data.stormOfRevisions()) }
    case .purge, .rewrite: source = try filled(engine)
    case .setExpiration:
      source = try data.fixture("to expire", engine) { try data.saveAll($0, sizes.expiring) }
    case .expire:
      source = try data.fixture("expiring", engine) { database in
        try data.saveAll(database, sizes.expiring)
        try setExpirations(database)
      }
    case .compact:
      source = try data.fixture("rewritten", engine) { database in
        try data.saveAll(database, sizes.documents)
        try rewrite(database)
      }
    case .count:
      return try data.fixture("counted \(variant.documents)", engine) {
        try data.saveHalfTombstones($0, variant.documents)
      }
    case .history, .readP50, .readP99: break
    }
    if let source { try Fixtures.copy(source, to: trial.directory) }
    return trial.directory
  }

  private func filled(_ engine: ProbedEngine) throws -> String {
    try data.fixture("filled", engine) { try data.saveAll($0, sizes.documents) }
  }

  /// Prepares a run, and returns the part that is timed.
  private func work(_ database: Database) throws -> () throws -> Void {
    switch kind {
    case .blobWrite:
      let blobs = (0..<blobCount).map { DocumentsData.blob($0, bytes: variant.bytes) }
      return { try data.saveBlobs(blobs, database) }
    case .blobRead: return { try readBlobs(database) }
    case .conflictStorm:
      let revisions = data.stormOfRevisions()
      return {
        for start in stride(from: 0, to: revisions.count, by: 1_000) {
          try database.apply(revisions[start..<min(start + 1_000, revisions.count)])
        }
      }
    case .conflictResolve: return { try resolve(database) }
    case .purge:
      return {
        try database.inBatch {
          for number in 0..<sizes.documents { try database.purge(DocumentsData.id(number)) }
        }
        try RunMismatch.check(try database.documentCount, 0)
      }
    case .setExpiration: return { try setExpirations(database) }
    case .expire:
      return {
        try RunMismatch.check(try database.purgeExpired(asOf: DocumentsBenchmark.late), sizes.expiring)
        try RunMismatch.check(try database.documentCount, 0)
      }
    case .rewrite: return { try rewrite(database) }
    case .compact: return { try database.compact() }
    case .count:
      return {
        for _ in 0..<DocumentsWorkload.counts {
          try RunMismatch.check(try database.documentCount, (variant.documents + 1) / 2)
        }
      }
    case .history, .readP50, .readP99: return {}
    }
  }

  /// A date after all expirations that are set, so that the timer of the database has nothing to do.
  private static let late = Date(timeIntervalSince1970: 10_000_000_000)

  private func setExpirations(_ database: Database) throws {
    try database.inBatch {
      for number in 0..<sizes.expiring {
        // The order of expirations differs from that of documents.
        let seconds = 9_000_000_000 + Double(number * 7_919 % sizes.expiring)
        try database.setExpiration(of: DocumentsData.id(number), at: Date(timeIntervalSince1970: seconds))
      }
    }
  }

  private func rewrite(_ database: Database) throws {
    for version in 2..<(2 + DocumentsWorkload.rewrites) {
      try data.saveAll(database, sizes.documents, version: version)
    }
  }

  private func readBlobs(_ database: Database) throws {
    for number in 0..<blobCount {
      guard let document = try database.document(DocumentsData.id(number)),
        let blob = document["avatar"].blob
      else { throw RunMismatch(seen: 0, expected: 1) }
      try RunMismatch.check(try database.contents(of: blob).count, variant.bytes)
    }
  }

  private func resolve(_ database: Database) throws {
    for number in 0..<sizes.conflicted {
      let id = DocumentsData.id(number)
      try database.inBatch {
        let losers = try database.revisions(of: id)?.filter { $0.isLeaf && !$0.isCurrent } ?? []
        try RunMismatch.check(losers.count, DocumentsWorkload.branches - 1)
        for loser in losers { try database.delete(id, basedOn: loser.id, onConflict: .fail) }
      }
    }
    try RunMismatch.check(try database.documentCount, sizes.conflicted)
  }

  // MARK: Runs that measure for several rows

  private func measuredTrial(_ engine: ProbedEngine, _ trial: TrialContext) throws -> Trial {
    let name = "\(engine.type.name) \(trial.round)"
    return Trial(run: {
      if kind == .history {
        let windows = sizes.windows(depth: variant.depth)
        let seconds = try data.measured.value(of: "\(name) history \(variant.depth)") {
          try history(engine, trial, windows)
        }
        guard let index = windows.firstIndex(of: variant.update) else { return .whole }
        return .seconds(seconds[index])
      }
      let seconds = try data.measured.value(of: "\(name) read \(variant.readers) \(variant.hasWriter)") {
        try read(engine, trial)
      }
      return .seconds(seconds[kind == .readP50 ? 0 : 1])
    })
  }

  /// Updates documents many times. Returns the seconds of the updates around each of `windows`. They are
  /// computed from the median transaction, because a window is too short to average out another process's
  /// sync.
  private func history(_ engine: ProbedEngine, _ trial: TrialContext, _ windows: [Int]) throws -> [Double] {
    let database = try data.open(engine, in: trial.directory, depth: variant.depth)
    defer { try? database.close() }
    let batch = DocumentsWorkload.historyBatch
    let batches = sizes.updates / batch
    var seconds = windows.map { _ in [Double]() }
    for document in 0..<sizes.historyDocuments {
      let id = DocumentsData.id(document)
      for number in 0..<batches {
        let begin = Clock.nanoseconds()
        try database.inBatch {
          for update in 0..<batch {
            try database.save(id, DocumentsData.body(document, version: number * batch + update))
          }
        }
        let end = Clock.nanoseconds()
        for (index, window) in windows.enumerated() {
          // The batches before and after the update; for the last window, the last batches.
          let first = min(window / batch - 1, batches - DocumentsWorkload.windowBatches)
          if (first..<first + DocumentsWorkload.windowBatches).contains(number) {
            seconds[index].append(Double(end - begin) / 1e9)
          }
        }
      }
    }
    return seconds.map { SampleStatistics.median($0) * Double($0.count) }
  }

  private func read(_ engine: ProbedEngine, _ trial: TrialContext) throws -> [Double] {
    var directory = try filled(engine)
    if variant.hasWriter {
      try Fixtures.copy(directory, to: trial.directory)
      directory = trial.directory
    }
    let database = try data.open(engine, in: directory)
    defer { try? database.close() }
    return try ReadLatency.measure(
      database, documents: sizes.documents, readers: variant.readers, hasWriter: variant.hasWriter,
      readsEach: variant.readers == 1 ? sizes.readsEach * 3 : sizes.readsEach,
      seed: context.settings.seed &+ UInt64(trial.round))
  }
}
