import Replication
import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone sync`: replicates a database with another one.
struct SyncCommand: Subcommand {
  private static let target = Positional(
    "TARGET", "The other database: the path of a NAME.touchstone directory")
  private static let push = Flag("push", "Only sends changes of DB")
  private static let pull = Flag("pull", "Only fetches changes of TARGET")
  private static let continuous = Flag("continuous", "Goes on until Ctrl-C")
  private static let ids = Option("ids", "ID,ID…", "Only these documents")
  private static let reset = Flag("reset", "Compares all documents, whatever earlier runs did")

  static let usage = Usage(
    "sync", "Replicates DB with another database, in both directions",
    positionals: [DatabaseArguments.database, target],
    options: [push, pull, continuous, ids, reset, DatabaseArguments.json, Keys.file],
    examples: ["touchstone sync travel backup/travel", "touchstone sync travel other --pull --json"],
    notes: """
      Both databases must exist. Conflicts are resolved in DB by the rules of Couchbase Lite, and the results
      are sent to TARGET. A second run begins where the first one stopped. The key opens each encrypted database.
      Documents that couldn't be replicated are lines on standard error, and the status is then 1.
      """)

  private let database: DatabaseArguments
  private let targetDatabase: DatabaseArguments
  private let direction: ReplicatorConfiguration.Direction
  private let isContinuous: Bool
  private let ids: [String]?
  private let resets: Bool
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    targetDatabase = try DatabaseArguments(arguments, Self.target)
    let (pushes, pulls) = (arguments[Self.push], arguments[Self.pull])
    direction = pushes == pulls ? .pushAndPull : pushes ? .push : .pull
    isContinuous = arguments[Self.continuous]
    ids = try arguments.value(Self.ids).map { $0.split(separator: ",").map(String.init) }
    resets = arguments[Self.reset]
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let (local, other) = (try database.open(), try targetDatabase.open())
    var configuration = ReplicatorConfiguration(local, .database(other))
    configuration.direction = direction
    configuration.isContinuous = isContinuous
    configuration.documentIDs = ids
    configuration.resetsCheckpoint = resets
    let replicator = Replicator(configuration)
    let counts = Lock(Counts())
    let changed = CountingSemaphore()
    let tokens = [
      replicator.observeDocuments { documents in
        counts.withLock { $0.add(documents) }
      },
      replicator.observeStatus { if $0.activity == .stopped { changed.signal() } },
    ]
    let start = ContinuousClock.now
    replicator.start()
    var progress = Progress("sync", unit: "documents")
    var isStopping = false
    while !changed.wait(seconds: 0.1) {
      progress.update(Int(replicator.status.progress.completed))
      for line in counts.withLock({ $0.takeLines() }) { StandardError.line(line) }
      if Interrupt.isRequested, !isStopping {
        isStopping = true
        replicator.stop()
      }
    }
    progress.end()
    for token in tokens { token.cancel() }
    let seconds = (ContinuousClock.now - start).components
    let status = replicator.status
    for database in [local, other] { try database.close() }
    let result = counts.withLock { $0 }
    for line in result.lines { StandardError.line(line) }
    if let error = status.error { throw error }
    let milliseconds = Int(seconds.seconds) * 1_000 + Int(seconds.attoseconds / 1_000_000_000_000_000)
    if asJSON {
      let object: JSONObjectText = [
        "pushed": result.pushed, "pulled": result.pulled, "failed": result.failed,
        "milliseconds": milliseconds,
      ]
      try output.line(object.jsonText)
    } else {
      try output.line(
        "\(TextTable.grouped(result.pushed)) pushed, \(TextTable.grouped(result.pulled)) pulled"
          + (result.failed == 0 ? "" : ", \(TextTable.grouped(result.failed)) failed")
          + ", in \(milliseconds) ms")
    }
    if Interrupt.isRequested, !isContinuous { throw Interrupted("what was replicated is kept") }
    guard result.failed == 0 else { throw Refusal("\(result.failed) documents couldn't be replicated") }
  }

  private struct Counts: Sendable {
    var pushed = 0
    var pulled = 0
    var failed = 0
    var lines: [String] = []

    mutating func add(_ documents: [ReplicatedDocument]) {
      for document in documents {
        if let error = document.error {
          failed += 1
          lines.append("\(document.id) \(document.revisionID): \(error.message)")
        } else if document.isPush {
          pushed += 1
        } else {
          pulled += 1
        }
      }
    }

    mutating func takeLines() -> [String] {
      defer { lines = [] }
      return lines
    }
  }
}
