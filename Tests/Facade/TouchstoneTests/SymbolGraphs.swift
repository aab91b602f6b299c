import Foundation
import TestSupport
import Testing

/// The public symbols of the library's modules, as they were built with these tests.
struct SymbolGraphs {
  struct Symbol {
    let module: String
    let path: [String]
    /// The compiler's names of the types in its declaration.
    let named: [String]

    var name: String { ([module] + path).joined(separator: ".") }
    /// The outermost type that it is or belongs to.
    var outermost: String { "\(module).\(path[0])" }
  }

  private(set) var symbols: [Symbol] = []
  /// The types by the compiler's names.
  private(set) var types: [String: Symbol] = [:]
  private var modules: Set<String> = []

  /// They take a second to read, and never change.
  static let current = Result { try SymbolGraphs() }

  /// Whether these modules were built. A build for the tests of one part leaves some out.
  func contains(_ modules: [String]) -> Bool { self.modules.isSuperset(of: modules) }

  private init() throws {
    let output = TemporaryDirectory()
    defer { withExtendedLifetime(output) {} }
    for module in try Self.moduleNames() where Toolchain.hasBuilt(module) {
      modules.insert(module)
      let run = try Toolchain.run(
        "swift-symbolgraph-extract",
        [
          "-module-name", module, "-output-dir", output.path, "-minimum-access-level", "public",
          "-skip-synthesized-members",
        ])
      try #require(run.status == 0, "\(module): \(run.output)")
    }
    for file in try FileManager.default.contentsOfDirectory(atPath: output.path) {
      // MODULE.symbols.json, and MODULE@OTHER.symbols.json for extensions of another module's types.
      let module = String(file.prefix { $0 != "." && $0 != "@" })
      let data = try Data(contentsOf: URL(filePath: "\(output.path)/\(file)"))
      for found in try JSONDecoder().decode(Graph.self, from: data).symbols {
        let symbol = Symbol(
          module: module, path: found.pathComponents,
          named: found.declarationFragments.compactMap(\.preciseIdentifier))
        symbols.append(symbol)
        if Graph.typeKinds.contains(found.kind.identifier) { types[found.identifier.precise] = symbol }
      }
    }
  }

  /// The modules of all floors in `Sources`, and those that the products have elsewhere. What the bindings show is in headers.
  private static func moduleNames() throws -> [String] {
    let sources = Toolchain.root.appending(path: "Sources").path
    return try FileManager.default.contentsOfDirectory(atPath: sources).filter { $0 != "Bindings" }.flatMap {
      try FileManager.default.contentsOfDirectory(atPath: "\(sources)/\($0)")
    } + ["StorageConformance"]
  }

  /// The part of a symbol graph's JSON that is needed.
  private struct Graph: Decodable {
    static let typeKinds: Set = [
      "swift.struct", "swift.class", "swift.enum", "swift.protocol", "swift.typealias", "swift.actor",
    ]
    struct Found: Decodable {
      let kind: Kind
      let identifier: Identifier
      let pathComponents: [String]
      let declarationFragments: [Fragment]
    }
    struct Kind: Decodable { let identifier: String }
    struct Identifier: Decodable { let precise: String }
    struct Fragment: Decodable { let preciseIdentifier: String? }
    let symbols: [Found]
  }
}

/// The tools beside `swift`, used on the modules that were built with these tests.
enum Toolchain {
  static let root = URL(filePath: #filePath).appending(path: "../../../..").standardizedFileURL
  private static let products = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    .deletingLastPathComponent()

  private static let directory = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":").lazy
    .map { URL(filePath: "\($0)/swift").resolvingSymlinksInPath().deletingLastPathComponent() }
    .first {
      FileManager.default.isExecutableFile(atPath: $0.appending(path: "swift-symbolgraph-extract").path)
    }

  /// Whether the tools are here.
  static var isComplete: Bool { directory != nil }

  static func hasBuilt(_ module: String) -> Bool {
    FileManager.default.fileExists(atPath: products.appending(path: "Modules/\(module).swiftmodule").path)
  }

  /// Runs a tool that reads modules. Returns how it ended, and what it printed.
  static func run(_ tool: String, _ arguments: [String]) throws -> (status: Int32, output: String) {
    let launch = ProgramLaunch(
      try #require(directory).appending(path: tool).path,
      arguments + ["-I", products.appending(path: "Modules").path]
        + ["-target", products.deletingLastPathComponent().lastPathComponent]
        + clangOptions.flatMap { ["-Xcc", $0] })
    let process = try ChildProcess(launch, mixesErrors: true)
    let ending = try process.wait(seconds: 600)
    return (ending.shellStatus, process.outputText)
  }

  /// Returns what the compiler says against a source file, with the library's modules to import.
  static func check(_ source: String) throws -> String {
    try withTemporaryDirectory { directory in
      let file = "\(directory)/main.swift"
      try source.write(toFile: file, atomically: true, encoding: .utf8)
      return try run("swiftc", ["-typecheck", file]).output
    }
  }

  /// How the modules' C is found: the module maps of the sources, those that the build made, and headers.
  private static var clangOptions: [String] {
    let sources = entries(root.appending(path: "Sources/CLibraries"))
    let headers = sources.map { $0.appending(path: "include") }
    let maps =
      (sources + headers + entries(products).filter { $0.pathExtension == "build" })
      .map { $0.appending(path: "module.modulemap").path }
    return packageOptions + headers.map { "-I\($0.path)" }
      + maps.filter { FileManager.default.fileExists(atPath: $0) }.map { "-fmodule-map-file=\($0)" }
  }

  /// Headers of libraries that aren't on the system's own path.
  private static let packageOptions: [String] = {
    let launch = ProgramLaunch("/usr/bin/env", ["pkg-config", "--cflags-only-I", "libpq"])
    guard let process = try? ChildProcess(launch), let ending = try? process.wait(seconds: 600),
      ending.shellStatus == 0
    else { return [] }
    return process.outputText.split(whereSeparator: \.isWhitespace).map(String.init)
  }()

  private static func entries(_ directory: URL) -> [URL] {
    (try? FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)) ?? []
  }
}
