import BenchmarkKit
import Datasets
import FoundationEssentials
import Replication
import Storage
import Touchstone
import TouchstoneServer
import TouchstoneSync

/// The data that the workloads of the suite `replicate` share: pairs of databases before a run.
///
/// A pair is two directories, `local` and `other`, with a database of the same name in each.
final class ReplicateData: Sendable {
  static let name = "documents"
  static let blobBytes = 1 << 20

  let documents: StreamedDocuments
  /// The number of documents that change between two runs: every hundredth.
  let changes: Int
  /// The number of blobs: 100 with 10,000 documents or more, fewer with less.
  let blobs: Int
  /// The IDs and the JSON of all documents, and of those that change, in bytes.
  let documentBytes: Int
  let changeBytes: Int
  private let context: SuiteContext
  /// What went over the wire in the last run, by workload, engine and parameters.
  let traffic = Lock<[String: ReplicateTraffic]>([:])

  init(_ context: SuiteContext) throws {
    self.context = context
    documents = try StreamedDocuments(context.settings, for: "replicate")
    var (all, changed, number, changes) = (0, 0, 0, 0)
    try documents.forEach { id, json in
      all += id.utf8.count + json.count
      if Self.changes(number) {
        changed += id.utf8.count + Self.changed(json).count
        changes += 1
      }
      number += 1
    }
    self.changes = changes
    documentBytes = all
    changeBytes = changed
    blobs = min(100, max(1, documents.count / 100))
  }

  /// The number of documents that a run replicates.
  func count(_ content: ReplicateWorkload.Content) -> Int {
    switch content {
    case .documents: documents.count
    case .nothing: 0
    case .changes: changes
    case .blobs: blobs
    }
  }

  /// Their size: IDs and JSON, or the blobs, in bytes.
  func bytes(_ content: ReplicateWorkload.Content) -> Int {
    switch content {
    case .documents: documentBytes
    case .nothing: 0
    case .changes: changeBytes
    case .blobs: blobs * Self.blobBytes
    }
  }

  // MARK: Databases

  func open(_ engine: ProbedEngine, in directory: String) throws -> Database {
    try Database.open(Self.name, in: directory, options: try context.databaseOptions(engine))
  }

  static func local(_ directory: String) -> String { directory + "/local" }
  static func other(_ directory: String) -> String { directory + "/other" }

  /// Makes the pair of a run in a directory.
  func lay(
    _ kind: ReplicateWorkload, _ engine: ProbedEngine, _ target: ProbedEngine, _ link: ReplicateVariant.Link,
    in directory: String
  ) throws {
    let byHTTP = link == .http
    switch kind.content {
    case .documents, .blobs:
      let full = kind.isPush ? (engine, Self.local(directory)) : (target, Self.other(directory))
      let empty = kind.isPush ? (target, Self.other(directory)) : (engine, Self.local(directory))
      try lay(try filled(full.0, kind.content), empty: empty, full: full.1)
    case .nothing: try Fixtures.copy(try synced(engine, target, byHTTP: byHTTP), to: directory)
    case .changes:
      try Fixtures.copy(try changed(engine, target, byHTTP: byHTTP, here: kind.isPush), to: directory)
    }
  }

  private func lay(_ source: String, empty: (ProbedEngine, String), full: String) throws {
    for directory in [empty.1, full] {
      try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    }
    try Fixtures.copy(source, to: full)
    try open(empty.0, in: empty.1).close()
  }

  /// The directory of a database with all documents, or with all blobs.
  func filled(_ engine: ProbedEngine, _ content: ReplicateWorkload.Content) throws -> String {
    let hasBlobs = content == .blobs
    return try context.filled(
      "replicate \(engine.type.name) \(hasBlobs ? "blobs" : "documents")", open: { try open(engine, in: $0) }
    ) { database in
      if hasBlobs { return try saveBlobs(in: database) }
      try database.inBatch {
        try documents.forEach { id, json in try database.save(id, json: json) }
      }
    }
  }

  private func saveBlobs(in database: Database) throws {
    for number in 0..<blobs {
      var random = SeededRandom(seed: context.settings.seed, stream: 0, index: UInt64(number))
      var bytes: [UInt8] = []
      bytes.reserveCapacity(Self.blobBytes)
      while bytes.count < Self.blobBytes {
        withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) }
      }
      let blob = try database.makeBlob(bytes, contentType: "application/octet-stream")
      try database.save("blob-\(number)", ["blob": blob.jsonValue])
    }
  }

  /// The directory of a pair with the same documents, of which both sides know it.
  private func synced(_ engine: ProbedEngine, _ target: ProbedEngine, byHTTP: Bool) throws -> String {
    // Made before: one fixture can't be made while another one is.
    let full = try filled(engine, .documents)
    return try context.fixtures.directory(
      "replicate \(engine.type.name) \(target.type.name)\(byHTTP ? " http" : "")"
    ) { directory in
      try lay(full, empty: (target, Self.other(directory)), full: Self.local(directory))
      try withPair(engine, target, directory) { local, other in
        // The checkpoint there has another place for each protocol.
        let listener = byHTTP ? try Self.listener(other) : nil
        defer { listener?.stop() }
        let target = try listener.map { try ReplicatorTarget.url(($0.httpURL ?? "") + Self.name) }
        var configuration = ReplicatorConfiguration(local, target ?? .database(other))
        configuration.remoteID = ReplicateBenchmark.remoteID
        // The second run notes what came back of the first one's push.
        for _ in 0..<2 { try Replicator(configuration).runToEnd() }
      }
    }
  }

  /// The same after every hundredth document was changed in one of them.
  private func changed(_ engine: ProbedEngine, _ target: ProbedEngine, byHTTP: Bool, here: Bool) throws
    -> String
  {
    let pair = try synced(engine, target, byHTTP: byHTTP)
    let name =
      "replicate \(engine.type.name) \(target.type.name)\(byHTTP ? " http" : "") changed \(here ? "here" : "there")"
    return try context.fixtures.directory(name) { directory in
      try Fixtures.copy(pair, to: directory)
      try withPair(engine, target, directory) { local, other in
        let database = here ? local : other
        var number = 0
        try database.inBatch {
          try documents.forEach { id, json in
            if Self.changes(number) {
              try Self.changed(json).withUnsafeBytes { _ = try database.save(id, json: $0) }
            }
            number += 1
          }
        }
      }
    }
  }

  private static func listener(_ database: Database) throws -> SyncListener {
    var configuration = SyncListenerConfiguration(databases: [name: database])
    configuration.servesHTTP = true
    let listener = SyncListener(configuration)
    try listener.start()
    return listener
  }

  private func withPair(
    _ engine: ProbedEngine, _ target: ProbedEngine, _ directory: String,
    _ body: (_ local: Database, _ other: Database) throws -> Void
  ) throws {
    let local = try open(engine, in: Self.local(directory))
    try local.closingOnFailure {
      let other = try open(target, in: Self.other(directory))
      try other.closingOnFailure { try body(local, other) }
      try other.close()
    }
    try local.close()
  }

  private static func changes(_ number: Int) -> Bool { number % 100 == 0 }

  /// The JSON of a document with another member.
  private static func changed(_ json: UnsafeRawBufferPointer) -> [UInt8] {
    var bytes = Array(json)
    guard let brace = bytes.lastIndex(of: UInt8(ascii: "}")) else { return bytes }
    let isEmpty = bytes[..<brace].last { $0 > 0x20 } == UInt8(ascii: "{")
    bytes.replaceSubrange(brace..., with: Array((isEmpty ? "\"revised\":1}" : ",\"revised\":1}").utf8))
    return bytes
  }

  // MARK: The expected result

  /// Throws unless both databases have what they have to have after a run: all documents, the same in both.
  func check(_ kind: ReplicateWorkload, _ local: Database, _ other: Database, byHTTP: Bool) throws {
    let expected = kind.content == .blobs ? blobs : documents.count
    var first: DocumentDifference?
    let compared = try local.compare(with: other) { difference in
      // Over HTTP the checkpoint is a local document there.
      if !byHTTP || difference.kind != .local { first = first ?? difference }
    }
    if let first {
      throw RunMismatch(what: "the databases", found: "\(first)", expected: "no difference")
    }
    try RunMismatch.check("documents compared", compared, expected)
  }
}

extension Replicator {
  /// Runs it once and waits for its end. Throws the error that it stopped with.
  func runToEnd() throws {
    let stopped = CountingSemaphore()
    let token = observeStatus { if $0.activity == .stopped { stopped.signal() } }
    start()
    stopped.wait()
    token.cancel()
    if let error = status.error { throw error }
  }
}
