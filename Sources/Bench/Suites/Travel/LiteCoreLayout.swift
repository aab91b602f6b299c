import BenchmarkKit
import CSQLite
import Datasets
import Limits
import SQLiteLibrary
import Storage

/// The peer of the travel suite: the same documents in SQLite with the layout of Couchbase Lite's C++ core,
/// in bare C.
///
/// The rows, settings and statements are those of the core. In addition, each document is only parsed and
/// digested. The bodies are ours, byte for byte.
struct LiteCoreLayout: Sendable {
  static let name = "peer"

  private let data: TravelData
  private let context: SuiteContext
  private let documents: Documents

  init(_ data: TravelData, _ context: SuiteContext) {
    self.data = data
    self.context = context
    documents = Documents(data)
  }

  /// Whether the peer has the workload. Its file is never compacted, and it has one connection.
  static func runs(_ kind: TravelWorkload) -> Bool { kind != .compact && kind != .insertThreads }

  static func description(_ settings: BenchSettings) throws -> ResultsFile.EngineDescription {
    let library = try Library.load(Library.sqlitePath)
    return .init(
      library: "SQLite \(library.version), bare C, tables as Couchbase Lite's",
      settings: [
        "durability": settings.durability.rawValue, "synchronous": settings.durability.synchronous,
        "cache_size": "-\(cacheBytes(settings) >> 10)",
        "page_size": "4096", "journal_mode": "wal",
      ])
  }

  fileprivate static func cacheBytes(_ settings: BenchSettings) -> Int { settings.cacheBytes ?? 10 << 20 }

  // MARK: Runs

  func trial(_ kind: TravelWorkload, _ trial: TrialContext) throws -> Trial {
    let directory = try directory(kind.start, trial)
    let path = directory + "/peer.sqlite"
    let fileBytes = { try TrialDirectory.fileBytes(in: directory) }
    if kind == .reopen { return Trial(run: { .seconds(try reopen(path).seconds) }, fileBytes: fileBytes) }
    let database = try LiteCoreDatabase(path, context.settings, creates: kind.start == .empty)
    return Trial(
      run: { .seconds(try run(kind, database)) }, fileBytes: fileBytes,
      finish: { withExtendedLifetime(database) {} })
  }

  private func run(_ kind: TravelWorkload, _ database: LiteCoreDatabase) throws -> Double {
    switch kind {
    case .insertBatch: return try database.save(documents.insert, batch: kind.batch)
    case .insertSingle: return try database.save(documents.insertSingle, batch: kind.batch)
    case .update: return try database.save(documents.update, batch: kind.batch)
    case .syncApply: return try database.save(documents.pull, batch: kind.batch)
    case .delete: return try database.save(documents.delete, batch: kind.batch)
    case .read:
      let outcome = try database.get(documents.reads)
      try RunMismatch.check(Int(outcome.count), data.reads.count)
      return outcome.seconds
    case .scan:
      var seconds = 0.0
      for _ in 0..<TravelWorkload.scans {
        let outcome = try database.scan()
        try RunMismatch.check(Int(outcome.count), data.ids.count)
        seconds += outcome.seconds
      }
      return seconds
    case .insertThreads, .reopen, .compact: preconditionFailure("\(kind.rawValue) has no run on an open peer")
    }
  }

  private func reopen(_ path: String) throws -> limit_outcome {
    let outcome = try LiteCoreDatabase.reopen(
      path, context.settings, documents.insert[0].key, times: TravelWorkload.opens)
    try RunMismatch.check(Int(outcome.count), TravelWorkload.opens)
    return outcome
  }

  /// The directory of the file with which a run starts. For `empty`, the run makes the file itself.
  private func directory(_ start: TravelWorkload.Start, _ trial: TrialContext) throws -> String {
    guard start != .empty else { return trial.directory }
    let fixture = try context.fixtures.directory("travel peer loaded") { directory in
      let database = try LiteCoreDatabase(directory + "/peer.sqlite", context.settings, creates: true)
      _ = try database.save(documents.insert, batch: 0)
    }
    if start == .shared { return fixture }
    try Fixtures.copy(fixture, to: trial.directory)
    return trial.directory
  }

  /// The documents to save, made from the records that the document layer writes for them.
  private final class Documents: @unchecked Sendable {
    // Never changes after `init`. The pointers refer to the replays and the data set, which `data` keeps, and
    // to `fixed`.
    let insert, insertSingle, update, pull, delete: [litecore_document]
    /// The keys to read, in order.
    let reads: [limit_bytes]
    private let data: TravelData
    private let fixed: UnsafeMutableRawBufferPointer

    init(_ data: TravelData) {
      self.data = data
      let fixed = UnsafeMutableRawBufferPointer.allocate(byteCount: 256, alignment: 16)
      for index in fixed.indices { fixed[index] = UInt8(truncatingIfNeeded: index) }
      self.fixed = fixed
      // A revision ID as the core packs it, a tree of one revision, a tree of two without bodies, and an
      // empty body.
      let version = limit_bytes(bytes: fixed.baseAddress, count: 21)
      let tree = limit_bytes(bytes: fixed.baseAddress, count: 36)
      let longTree = limit_bytes(bytes: fixed.baseAddress, count: 66)
      let empty = limit_bytes(bytes: fixed.baseAddress, count: 2)
      func documents(_ replay: TravelReplay, extra: limit_bytes, isDeletion: Bool = false)
        -> [litecore_document]
      {
        replay.steps.map { step in
          // The document's record, or the tombstone's record for a deletion.
          let record = replay.operations[step.first..<step.end].last {
            Int($0.table) <= 1 && ($0.kind == LIMIT_INSERT || $0.kind == LIMIT_UPDATE)
          }?.record
          return litecore_document(
            text: step.text, digests: step.digests, flags: isDeletion ? 1 : 0,
            key: record?.key ?? limit_bytes(),
            version: version, body: isDeletion ? empty : record?.value ?? limit_bytes(), extra: extra)
        }
      }
      let insert = documents(data.replays.insert, extra: tree)
      self.insert = insert
      reads = data.reads.map { insert[$0].key }
      insertSingle = documents(data.replays.insertSingle, extra: tree)
      update = documents(data.replays.update, extra: longTree)
      pull = documents(data.replays.pull, extra: longTree)
      delete = documents(data.replays.delete, extra: longTree, isDeletion: true)
    }

    deinit { fixed.deallocate() }
  }
}

/// An open database file of the peer.
private final class LiteCoreDatabase {
  private let handle: OpaquePointer

  init(_ path: String, _ settings: BenchSettings, creates: Bool) throws {
    var outcome = limit_outcome()
    let opened = try LiteCoreDatabase.withOptions(settings) { litecore_open(path, $0, creates, &outcome) }
    guard let opened else { throw LimitDatabase.failure(outcome) }
    handle = opened
  }

  deinit { litecore_close(handle) }

  private static func withOptions<Result>(
    _ settings: BenchSettings, _ body: (UnsafePointer<litecore_options>) throws -> Result
  ) throws -> Result {
    let library = try Library.load(Library.sqlitePath)
    return try settings.durability.synchronous.withCString { synchronous in
      var options = litecore_options(
        functions: library.functions, synchronous: synchronous,
        cache_bytes: LiteCoreLayout.cacheBytes(settings))
      return try body(&options)
    }
  }

  /// Saves all documents, and returns the seconds.
  func save(_ documents: [litecore_document], batch: Int) throws -> Double {
    try LimitDatabase.run { litecore_save(handle, documents, documents.count, batch, &$0) }.seconds
  }

  func get(_ keys: [limit_bytes]) throws -> limit_outcome {
    try LimitDatabase.run { litecore_get(handle, keys, keys.count, &$0) }
  }

  func scan() throws -> limit_outcome { try LimitDatabase.run { litecore_scan(handle, &$0) } }

  static func reopen(_ path: String, _ settings: BenchSettings, _ key: limit_bytes, times: Int) throws
    -> limit_outcome
  {
    try LimitDatabase.run { outcome in
      try withOptions(settings) { litecore_reopen(path, $0, key, times, &outcome) }
    }
  }
}
