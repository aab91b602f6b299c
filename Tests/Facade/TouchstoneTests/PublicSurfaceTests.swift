import Foundation
import TestSupport
import Testing

/// What the products show is the list in `PublicTypes.txt`, as the compiler's symbol graphs say it.
@Suite(.enabled(if: Toolchain.isComplete, "there is no swift-symbolgraph-extract beside swift on the PATH"))
struct PublicSurfaceTests {
  /// The modules that make up each product. What `Touchstone` shows of others is in `Exports.swift`.
  private static let products = [
    "Touchstone": ["Touchstone"], "TouchstoneStorage": ["Bytes", "System", "Storage", "StorageConformance"],
    "TouchstoneBench": ["Suites", "BenchmarkKit"],
    "TouchstoneSync": ["Replication", "ReplicationBLIP", "ReplicationHTTP", "TouchstoneSync"],
    "TouchstoneServer": ["TouchstoneServer"], "TouchstoneRocksDB": ["StorageRocksDB"],
    "TouchstoneWiredTiger": ["StorageWiredTiger"], "TouchstonePostgres": ["StoragePostgres"],
  ]
  /// An engine comes from a module that imports `Storage`, so `Engines` may name what only that product shows. What such
  /// a module gives is handed to `Engines`.
  private static let forEngineWriters = [
    "Touchstone.Engines": "Storage.EngineType", "StorageRocksDB.RocksDBEngines": "Storage.EngineType",
    "StorageWiredTiger.WiredTigerEngines": "Storage.EngineType",
    "StoragePostgres.PostgresEngines": "Storage.EngineType",
  ]

  private let graphs: SymbolGraphs
  private let exports: Set<String>

  init() throws {
    graphs = try SymbolGraphs.current.get()
    let source = Toolchain.root.appending(path: "Sources/Facade/Touchstone/Exports.swift")
    let lines = try String(contentsOf: source, encoding: .utf8).split(separator: "\n")
    // @_exported import KIND MODULE.NAME
    exports = Set(
      lines.filter { $0.hasPrefix("@_exported") }.compactMap {
        $0.split(separator: " ").last.map(String.init)
      })
  }

  /// The names of a product's types, with their modules.
  private func types(of product: String) -> Set<String> {
    let modules = Self.products[product, default: []]
    return Set(
      graphs.types.values.filter {
        modules.contains($0.module) || product == "Touchstone" && exports.contains($0.outermost)
      }.map(\.name))
  }

  @Test("the public types are those of the list") func list() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "PublicTypes.txt")
    var listed: [String: [String]] = [:]
    var product = ""
    for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    where !line.hasPrefix("#") {
      if line.hasSuffix(":") {
        product = String(line.dropLast())
      } else {
        listed[product, default: []].append(String(line))
      }
    }
    expect(Set(listed.keys), equals: Set(Self.products.keys))
    for (product, names) in listed where graphs.contains(Self.products[product, default: []]) {
      expect(names, equals: names.sorted(), "the list of \(product) is sorted")
      let found = types(of: product)
      expect(found.subtracting(names), equals: [], "public, but not in the list of \(product)")
      expect(Set(names).subtracting(found), equals: [], "in the list of \(product), but not public")
    }
  }

  @Test("a type that no product shows isn't public") func nothingElse() {
    let shown = Self.products.keys.reduce(into: Set<String>()) { $0.formUnion(types(of: $1)) }
    expect(Set(graphs.types.values.map(\.name)).subtracting(shown), equals: [])
  }

  @Test("what a public signature names can be named by who sees the signature") func closed() {
    let app = types(of: "Touchstone")
    let engine = types(of: "TouchstoneStorage")
    let sync = app.union(types(of: "TouchstoneSync"))
    let server = sync.union(types(of: "TouchstoneServer"))
    let bench = app.union(engine).union(types(of: "TouchstoneBench"))
    var hidden: [String] = []
    for symbol in graphs.symbols {
      let visible =
        Self.products["TouchstoneBench", default: []].contains(symbol.module)
        ? bench
        : Self.products["TouchstoneSync", default: []].contains(symbol.module)
          ? sync
          : Self.products["TouchstoneServer", default: []].contains(symbol.module)
            ? server
            : Self.products["TouchstoneStorage", default: []].contains(symbol.module)
              && !exports.contains(symbol.outermost) ? engine : app
      for type in symbol.named.compactMap({ graphs.types[$0] })
      where !visible.contains(type.name) && Self.forEngineWriters[symbol.outermost] != type.name {
        hidden.append("\(symbol.name) names \(type.name)")
      }
    }
    expect(hidden.sorted(), equals: [])
  }

  @Test("an app can name each type, with Foundation's beside them") func app() throws {
    let names = types(of: "Touchstone").sorted().map {
      $0.split(separator: ".").dropFirst().joined(separator: ".")
    }
    var source = "import Foundation\nimport Touchstone\n"
    for (number, name) in names.enumerated() { source += "typealias Type\(number) = \(name)\n" }
    try expect(Toolchain.check(source), equals: "")
  }

  @Test("everything that Touchstone exports stands in one file") func oneFile() throws {
    let sources = Toolchain.root.appending(path: "Sources/Facade/Touchstone")
    let files = FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil)
    while let file = files?.nextObject() as? URL {
      guard file.pathExtension == "swift", file.lastPathComponent != "Exports.swift" else { continue }
      let text = try String(contentsOf: file, encoding: .utf8)
      expect(!text.contains("@_exported"), "\(file.path)")
    }
  }
}
