import BenchmarkKit
import Datasets
import Storage
import Touchstone

extension Suite {
  /// Full-text indexes on each engine, compared with SQLite's FTS5.
  public static let fullText = Suite(
    name: "fulltext",
    summary:
      "Full-text indexes on descriptions, contents and reviews of a travel data set, compared with SQLite's FTS5 on the "
      + "same texts, with the Porter stemmer and the same settings. Both return the IDs of documents.",
    workloadNames: FullTextCase.allCases.map(\.rawValue) + FullTextWork.allCases.map(\.rawValue),
    usesDataset: true
  ) { context in
    let dataset = try context.dataset(for: "fulltext")
    let texts = try TextDocuments(dataset)
    guard !texts.queries.isEmpty else {
      throw StorageError(.invalidArgument, "the suite fulltext needs a data set with descriptions or reviews")
    }
    let data = FullTextData(texts, context)
    return [data.build()] + FullTextCase.allCases.map { data.query($0) } + [data.update()]
      + FullTextSize.allCases.map { data.size($0) }
  }
}

/// The workloads that aren't queries.
enum FullTextWork: String, CaseIterable {
  case build, update, size
}

/// The kind of file whose size is measured.
enum FullTextSize: String, CaseIterable, Sendable {
  case documents
  case indexed
  case fts5
}

/// The data that the workloads of a run share.
final class FullTextData: Sendable {
  private static let suite = "fulltext"
  /// The number of documents that the workload `update` changes.
  private static let updates = 500

  private let texts: TextDocuments
  private let context: SuiteContext
  /// The number of rows of each query in the first run. All other runs must find the same number.
  private let expected = Lock<[String: Int]>([:])

  /// A run whose results aren't valid.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  init(_ texts: TextDocuments, _ context: SuiteContext) {
    self.texts = texts
    self.context = context
  }

  // MARK: Databases

  private func open(_ name: String, _ directory: String) throws -> Database {
    try context.open("texts", try context.engine(name), in: directory)
  }

  private func save(_ documents: [TextDocuments.Document], in database: Database) throws {
    try database.inBatch {
      for document in documents {
        try document.json().withUnsafeBytes { _ = try database.save(document.id, json: $0) }
      }
    }
  }

  private func makeIndex(_ database: Database) throws {
    try database.createFullTextIndex(
      "texts", on: TextDocuments.columns,
      options: TextAnalysisOptions(language: .porter, ignoresAccents: true, stopWords: .none))
  }

  private func filled(_ name: String, _ directory: String, indexed: Bool) throws -> Database {
    let database = try open(name, directory)
    try save(texts.all, in: database)
    if indexed { try makeIndex(database) }
    return database
  }

  private func table(_ directory: String) throws -> FTS5Table {
    try FTS5Table(
      directory + "/fts5.sqlite", like: context.engines["sqlite"], context.settings.durability)
  }

  private func indexedTable() throws -> FTS5Table {
    try table(
      try context.fixtures.directory("fulltext fts5") { directory in
        let table = try table(directory)
        try table.fill(texts.all)
        try table.index()
        try table.optimize()
        table.close()
      })
  }

  // MARK: Queries

  func query(_ kind: FullTextCase) -> Workload {
    let queries = texts.queries[kind] ?? []
    let times = kind.repeats
    let text =
      kind.isRanked
      ? "SELECT META().id FROM _ WHERE MATCH(texts, $text) ORDER BY RANK(texts) DESC LIMIT 20"
      : "SELECT META().id FROM _ WHERE MATCH(texts, $text)"
    return Workload(
      suite: Self.suite, name: kind.rawValue, summary: kind.summary,
      operations: times * max(queries.count, 1),
      limit: .init(name: { _ in "SQLite's FTS5" }) { [self] _ in
        let table = try indexedTable()
        _ = try table.rows(queries, ranked: kind.isRanked, times: 1)
        return Trial(
          timing: {
            let rows = try table.rows(queries, ranked: kind.isRanked, times: times)
            try self.check(kind, rows / times, isOurs: false)
          }, finish: { table.close() })
      }
    ) { [self] trial in
      let directory = try context.fixtures.directory("fulltext \(trial.engine)") { directory in
        try filled(trial.engine, directory, indexed: true).close()
      }
      let database = try open(trial.engine, directory)
      let prepared = try database.query(text)
      let values = queries.map { ["text": JSONValue($0.ours)] }
      for value in values { _ = try prepared.run(value).count }
      return Trial(
        timing: {
          var rows = 0
          for _ in 0..<times {
            for value in values { rows += try prepared.run(value).count }
          }
          try self.check(kind, rows / times, isOurs: true)
        }, finish: { try database.close() })
    }
  }

  /// Checks that all engines find the same number of rows. For FTS5 a small difference is allowed, because
  /// its Porter stemmer differs in a few words.
  private func check(_ kind: FullTextCase, _ rows: Int, isOurs: Bool) throws {
    let before = expected.withLock { counts -> Int? in
      let name = isOurs ? "ours" : "fts5"
      let before = counts["\(kind) \(name)"]
      counts["\(kind) \(name)"] = before ?? rows
      return before
        ?? counts["\(kind) \(isOurs ? "fts5" : "ours")"].flatMap { other in
          abs(other - rows) * 50 <= other ? rows : other
        }
    }
    guard before ?? rows == rows, rows > 0 else {
      throw Failure(description: "\(kind.rawValue) gave \(rows) rows, and \(before ?? 0) before")
    }
  }

  // MARK: The rest

  func build() -> Workload {
    Workload(
      suite: Self.suite, name: FullTextWork.build.rawValue, summary: "makes the index on filled documents",
      operations: 1,
      limit: .init(name: { _ in "SQLite's FTS5" }) { [self] trial in
        let table = try table(trial.directory)
        try table.fill(texts.all)
        return Trial(
          timing: { try table.index() }, finish: { table.close() })
      }
    ) { [self] trial in
      let database = try filled(trial.engine, trial.directory, indexed: false)
      return Trial(
        timing: { try self.makeIndex(database) },
        fileBytes: { try TrialDirectory.fileBytes(in: trial.directory) },
        finish: { try database.close() })
    }
  }

  func update() -> Workload {
    let changed = texts.changed(Self.updates, round: 1)
    return Workload(
      suite: Self.suite, name: FullTextWork.update.rawValue,
      summary: "saves \(changed.count) documents anew in one transaction", operations: max(changed.count, 1),
      limit: .init(name: { _ in "SQLite's FTS5, by triggers" }) { [self] trial in
        let table = try table(trial.directory)
        try table.fill(texts.all)
        try table.indexWithTriggers()
        return Trial(
          timing: { try table.update(changed) }, finish: { table.close() })
      }
    ) { [self] trial in
      let database = try filled(trial.engine, trial.directory, indexed: true)
      return Trial(
        timing: { try self.save(changed, in: database) }, finish: { try database.close() })
    }
  }

  /// The size of the file after compaction. The compaction is timed.
  func size(_ what: FullTextSize) -> Workload {
    Workload(
      suite: Self.suite, name: FullTextWork.size.rawValue,
      summary: "compacts documents, the same with the index, and an FTS5 index alone (with content='')",
      parameters: ["of": .string(what.rawValue)], operations: 1
    ) { [self] trial in
      let bytes = { try TrialDirectory.fileBytes(in: trial.directory) }
      guard what == .fts5 else {
        let database = try filled(trial.engine, trial.directory, indexed: what == .indexed)
        return Trial(
          timing: { try database.compact() }, fileBytes: bytes, finish: { try database.close() })
      }
      let table = try table(trial.directory)
      try table.indexAlone(texts.all)
      return Trial(
        timing: {
          try table.optimize()
          try table.vacuum()
        }, fileBytes: bytes, finish: { table.close() })
    }
  }
}
