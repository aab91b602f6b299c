import BenchmarkKit
import Storage
import StorageLMDB
import StorageSQLite

extension Suite {
  /// Replication of two databases: in one process, and over a WebSocket or HTTP with `touchstone serve`.
  public static let replicate = Suite(
    name: "replicate",
    summary:
      "Pushes and pulls a data set, a second time with nothing new, one document in a hundred, and blobs of 1 MiB: in one "
      + "process, and with a second process over loopback: by WebSocket, plain and TLS, and by HTTP.",
    workloadNames: ReplicateWorkload.allCases.map(\.rawValue), usesDataset: false,
    data: "the data set, streamed", standardEngines: { ReplicateVariant.engines },
    notes: ReplicateNotes.lines, tables: ReplicateNotes.tables
  ) { context in
    let data = try ReplicateData(context)
    return ReplicateWorkload.allCases.flatMap { kind in
      ReplicateVariant.all(of: kind, context).map {
        ReplicateBenchmark(kind: kind, variant: $0, data: data, context: context).workload()
      }
    }
  }
}

/// The workloads of the suite `replicate`.
enum ReplicateWorkload: String, CaseIterable {
  case push, pull
  case pushNothing = "push-nothing"
  case pullNothing = "pull-nothing"
  case pushChanged = "push-changed"
  case pullChanged = "pull-changed"
  case pushBlobs = "push-blobs"
  case pullBlobs = "pull-blobs"

  var isPush: Bool { [.push, .pushNothing, .pushChanged, .pushBlobs].contains(self) }

  var summary: String {
    switch self {
    case .push: "all documents, to an empty database"
    case .pull: "all documents, into an empty database"
    case .pushNothing: "a second run, when there is nothing to push; an operation is the run"
    case .pullNothing: "a second run, when there is nothing to pull; an operation is the run"
    case .pushChanged: "every hundredth document, which has changed here"
    case .pullChanged: "every hundredth document, which has changed there"
    case .pushBlobs: "documents with a blob of 1 MiB each, to an empty database"
    case .pullBlobs: "documents with a blob of 1 MiB each, into an empty database"
    }
  }

  /// What is replicated.
  enum Content {
    case documents, nothing, changes, blobs
  }

  var content: Content {
    switch self {
    case .push, .pull: .documents
    case .pushNothing, .pullNothing: .nothing
    case .pushChanged, .pullChanged: .changes
    case .pushBlobs, .pullBlobs: .blobs
    }
  }
}

/// The way to the other database, and its engine.
struct ReplicateVariant: Sendable {
  /// How the two databases are connected.
  enum Link: String, CaseIterable {
    /// Both are open in this process.
    case local
    /// The other one is served by another process, over a WebSocket.
    case ws
    /// The same with TLS.
    case wss
    /// The other one is served by another process, over HTTP.
    case http
  }

  let link: Link
  /// The engine of the other database. Nil: the engine of the local one.
  let target: String?

  var parameters: Parameters { ["link": .string(link.rawValue), "target": .string(target ?? "same")] }

  /// The engine of the other database, if `engine` is that of the local one.
  func target(_ engine: String) -> String { target ?? engine }

  /// The engines that are compared if none is named.
  static let engines: [EngineType] = [LMDBEngines.lmdb, SQLiteEngines.sqlite]

  /// The variants of a workload. Two databases of different engines are measured over a WebSocket with all documents
  /// only, unless the settings ask for all pairs. Without the executable that serves there are no links to another
  /// process.
  static func all(of kind: ReplicateWorkload, _ context: SuiteContext) -> [ReplicateVariant] {
    let links = context.settings.executable == nil ? [.local] : Link.allCases
    let others = (context.settings.engines ?? engines).map(\.name)
    let same = links.map { ReplicateVariant(link: $0, target: nil) }
    guard others.count > 1 else { return same }
    let linksOfPairs =
      context.settings.measuresAllPairs ? links : kind.content == .documents ? links.filter { $0 == .ws } : []
    return same
      + others.flatMap { other in linksOfPairs.map { ReplicateVariant(link: $0, target: other) } }
  }
}
