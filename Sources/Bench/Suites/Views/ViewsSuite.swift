import BenchmarkKit
import Scripts
import Storage

extension Suite {
  /// Map/reduce views beside the value index and the query that answer the same.
  public static let views = Suite(
    name: "views",
    summary:
      "Map/reduce views with Swift maps and with JavaScript ones: building, updating after changes, rows by key, totals "
      + "and groups, beside the value index and the N1QL query that answer the same, at 1,000 documents and more, up to "
      + "--scale-docs.",
    workloadNames: ViewsWorkload.allCases.map(\.rawValue), usesDataset: true, notes: ViewsNotes.lines
  ) { context in
    let largest = context.settings.scaleDocuments ?? context.settings.documents ?? 10_000
    let data = ViewsData(context)
    return ViewsWorkload.allCases.flatMap { kind in
      kind.sizes(upTo: largest).flatMap { size in
        kind.variants(size).map {
          ViewsBenchmark(kind: kind, size: size, variant: $0, data: data, context: context).workload()
        }
      }
    }
  }
}

/// The workloads of the suite `views`.
enum ViewsWorkload: String, CaseIterable {
  case build
  case createIndex = "create-index"
  case update1 = "update-1-percent"
  case update10 = "update-10-percent"
  case keyLookup = "key-lookup"
  case range
  case reduceTotal = "reduce-total"
  case reduceGroups = "reduce-groups"
  case buildTravel = "build-travel"

  /// The language of a map function.
  enum Map: String, CaseIterable {
    case swift
    case javascript
  }

  /// The property that is the key of the rows.
  enum Key: String {
    case number
    case name
    case region
  }

  /// One form of a workload.
  struct Variant: Sendable {
    var map = Map.swift
    var key = Key.number
    /// Whether the view has a reducer. Its partial reductions are kept then.
    var isReduced = false
    /// Whether a N1QL query is measured instead of the view.
    var isQuery = false
    var parameters: Parameters = [:]
  }

  var summary: String {
    switch self {
    case .build: "builds a view of one row a document"
    case .createIndex: "makes the value index with the same keys and values"
    case .update1:
      "brings a view up to date after every 100th document has changed; an operation is a changed document"
    case .update10:
      "brings a view up to date after every 10th document has changed; an operation is a changed document"
    case .keyLookup: "the row of a key, at random"
    case .range: "100 rows from a random key on; an operation is all of them"
    case .reduceTotal: "the sum of all rows"
    case .reduceGroups: "the sums of 100 groups of rows; an operation is all of them"
    case .buildTravel: "builds a view of the data set's documents by type and name"
    }
  }

  /// Every how many documents one changes.
  var step: Int? { self == .update1 ? 100 : self == .update10 ? 10 : nil }

  /// The operations of a run, at most, and fewer when one takes long.
  var repeats: Int {
    switch self {
    case .keyLookup: 1_000
    case .range: 200
    case .reduceTotal: 20
    case .reduceGroups: 5
    default: 1
    }
  }

  /// JavaScript takes much longer, so it has no larger sizes than this.
  static let largestScripted = 100_000

  /// The numbers of documents: powers of ten from 1,000, and `largest`.
  func sizes(upTo largest: Int) -> [Int] {
    guard self != .buildTravel else { return [0] }
    var sizes: [Int] = []
    var size = 1_000
    while size < largest {
      sizes.append(size)
      size *= 10
    }
    return sizes + [largest]
  }

  func variants(_ size: Int) -> [Variant] {
    let rows: Parameters = ["rows": .integer(size)]
    func with(_ parameters: [(String, String)], _ change: (inout Variant) -> Void) -> Variant {
      var variant = Variant(parameters: self == .buildTravel ? [:] : rows)
      for (name, value) in parameters { variant.parameters[name] = .string(value) }
      change(&variant)
      return variant
    }
    let hasScripts = ScriptProcess.isAvailable && size <= ViewsWorkload.largestScripted
    let scripted =
      hasScripts ? [with([("map", "javascript"), ("key", "number")]) { $0.map = .javascript }] : []
    switch self {
    case .build:
      return [
        with([("map", "swift"), ("key", "number")]) { _ in },
        with([("map", "swift"), ("key", "number"), ("reduce", "sum")]) { $0.isReduced = true },
        with([("map", "swift"), ("key", "name")]) { $0.key = .name },
      ] + scripted
    case .createIndex:
      return [with([("key", "number")]) { _ in }, with([("key", "name")]) { $0.key = .name }]
    case .update1, .update10:
      return [
        with([("map", "swift"), ("key", "number")]) { _ in },
        with([("map", "swift"), ("key", "number"), ("reduce", "sum")]) { $0.isReduced = true },
      ] + scripted
    case .keyLookup, .range, .reduceTotal, .reduceGroups:
      return [
        with([("by", "view")]) { if self == .reduceGroups { $0.key = .region } },
        with([("by", "query")]) { $0.isQuery = true },
      ]
    case .buildTravel:
      return Map.allCases.filter { $0 == .swift || hasScripts }.map { map in
        with([("map", map.rawValue)]) { $0.map = map }
      }
    }
  }
}
