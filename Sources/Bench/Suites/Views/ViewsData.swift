import BenchmarkKit
import Datasets
import Storage
import Touchstone

/// The databases and functions that the workloads of the suite `views` share.
final class ViewsData: Sendable {
  /// The number of values of the property `region`.
  static let regions = 100
  /// The rows of a range.
  static let rangeRows = 100
  static let viewName = "bench/rows"

  private let context: SuiteContext
  private let replays = Lock<[String: ViewsReplay]>([:])

  init(_ context: SuiteContext) { self.context = context }

  // MARK: Documents

  static func price(_ number: Int, version: Int = 1) -> Int { 40 + number % 211 + version - 1 }

  static func region(_ number: Int) -> Int { number % regions }

  /// The property `number`, which another version changes. It is in no order of IDs.
  static func key(_ number: Int, version: Int = 1) -> Int { 2 * number + version - 1 }

  static func json(_ number: Int, version: Int = 1) -> [UInt8] {
    let text = """
      {"type":"hotel","number":\(key(number, version: version)),"name":"Hotel \(number) of the Golden Lion",\
      "region":"Region \(region(number))","price":\(price(number, version: version)),"vacancy":\(number % 3 == 0),\
      "description":"A small house beside the canal with twelve rooms."}
      """
    return Array(text.utf8)
  }

  static func save(_ database: Database, _ size: Int, every step: Int = 1, version: Int = 1) throws {
    let numbers = Array(stride(from: 0, to: size, by: step))
    try database.inBatches(of: 10_000, numbers) { number in
      try json(number, version: version).withUnsafeBytes {
        _ = try database.save(HotelDocument.id(number), json: $0)
      }
    }
  }

  // MARK: Views

  /// Sets the functions of a view.
  static func set(_ view: View, _ variant: ViewsWorkload.Variant) throws {
    switch variant.key {
    case .number:
      try view.setMap(version: "1") { document, emit in emit(document["number"], document["price"]) }
    case .name: try view.setMap(version: "1") { document, emit in emit(document["name"], document["price"]) }
    case .region:
      try view.setMap(version: "1") { document, emit in emit(document["region"], document["price"]) }
    }
    view.setReduce(variant.isReduced ? .sum : nil)
  }

  /// Returns the view of a variant, which isn't built yet. Its functions are set; a design document is saved.
  func view(_ database: Database, _ variant: ViewsWorkload.Variant) throws -> View {
    if variant.map == .javascript {
      let map = "function (doc) { emit(doc.\(variant.key.rawValue), doc.price); }"
      try ViewsData.saveDesign(database, map: map)
      return try database.view(ViewsData.viewName)
    }
    let view = try database.view(ViewsData.viewName)
    try ViewsData.set(view, variant)
    return view
  }

  /// Saves the design document of the view, unless it is there.
  static func saveDesign(_ database: Database, map: String) throws {
    guard try database.document("_design/bench") == nil else { return }
    try database.save("_design/bench", ["views": ["rows": ["map": .string(map)]]])
  }

  static func indexColumns(_ key: ViewsWorkload.Key) -> [String] { [key.rawValue, "price"] }

  // MARK: Databases

  func open(_ engine: ProbedEngine, in directory: String) throws -> Database {
    try context.open("views", engine, in: directory)
  }

  /// The directory of a database that `fill` fills once for all runs.
  func fixture(_ name: String, _ engine: ProbedEngine, _ fill: (Database) throws -> Void) throws -> String {
    try context.filled("views \(engine.type.name) \(name)", open: { try open(engine, in: $0) }, fill: fill)
  }

  func documents(_ engine: ProbedEngine, _ size: Int) throws -> String {
    try fixture("\(size)", engine) { try ViewsData.save($0, size) }
  }

  /// A database with the view of a variant, in which documents have changed since.
  func changed(_ engine: ProbedEngine, _ size: Int, _ variant: ViewsWorkload.Variant, step: Int) throws
    -> String
  {
    try fixture("\(size) changed \(step) \(variant.map) \(variant.isReduced)", engine) { database in
      try ViewsData.save(database, size)
      try view(database, variant).updateIndex()
      try ViewsData.save(database, size, every: step, version: 2)
    }
  }

  /// A database with views by number and region, and the indexes for the same questions.
  func indexed(_ engine: ProbedEngine, _ size: Int) throws -> String {
    try fixture("\(size) indexed", engine) { database in
      try ViewsData.save(database, size)
      for key in [ViewsWorkload.Key.number, .region] {
        try reading(database, key).updateIndex()
        try database.createIndex(key.rawValue, on: ViewsData.indexColumns(key))
      }
    }
  }

  /// A view of `indexed`.
  func reading(_ database: Database, _ key: ViewsWorkload.Key) throws -> View {
    let view = try database.view(key.rawValue)
    try ViewsData.set(view, .init(key: key, isReduced: true))
    return view
  }

  /// A database with the tables of a view, which are empty: it was built before the documents were saved.
  func empty(_ engine: ProbedEngine, _ size: Int, _ variant: ViewsWorkload.Variant) throws -> String {
    try fixture("\(size) empty \(variant.isReduced) \(variant.key)", engine) { database in
      try ViewsData.set(try database.view(ViewsData.viewName), variant)
      try database.view(ViewsData.viewName).updateIndex()
      try ViewsData.save(database, size)
    }
  }

  /// The writes of a build, or of the update after every `step`th document has changed.
  func replay(_ size: Int, _ variant: ViewsWorkload.Variant, step: Int?) throws -> ViewsReplay {
    try replays.value(of: "\(size) \(variant.key) \(variant.isReduced) \(step ?? 0)") {
      let directory = try TrialDirectory(in: context.settings.workDirectory)
      defer { directory.remove() }
      return try ViewsReplay(size, variant, step: step, in: directory.path)
    }
  }

  /// The layout of the view in a directory, in the order of `ViewsReplay.suffixes`.
  func layout(_ engine: ProbedEngine, _ directory: String) throws -> TravelData.Layout {
    let database = try open(engine, in: directory)
    defer { try? database.close() }
    let found = try database.engine.read { try $0.keyspaces() }
    let tables = try ViewsReplay.keyspaces.map { name in
      guard let keyspace = found[name] else {
        throw StorageError(.noSuchKeyspace, "the database has no keyspace \(name)", path: database.path)
      }
      return LimitDatabase.Table(name: name, keyspace: keyspace)
    }
    let key = try engine.options.key.flatMap { key in
      try database.dataKey(try UserKey.raw(key))?.withUnsafeBytes { [UInt8]($0) }
    }
    return .init(engine: engine.keyed(key), file: database.engineFile, tables: tables)
  }
}
