// Draws the modules of Package.swift, floor by floor, and what each imports, into docs/architecture.md. A module may import
// modules of its own floor and of the floors below it: the program names each import that leads up, and fails.
//
//   swift docs/draw-modules.swift          rewrites the picture
//   swift docs/draw-modules.swift --check  fails when the page's picture or table isn't that of Package.swift

import Foundation

struct Package: Decodable {
  struct Target: Decodable {
    struct Dependency: Decodable {
      let byName: [String?]?
    }
    let name: String
    let type: String
    let path: String?
    let dependencies: [Dependency]
  }
  let targets: [Target]
}

func fail(_ message: String) -> Never {
  FileHandle.standardError.write(Data("draw-modules: \(message)\n".utf8))
  exit(1)
}

let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
let page = root.appendingPathComponent("docs/architecture.md")

func dumpPackage() throws -> Package {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
  process.arguments = ["swift", "package", "--ignore-lock", "dump-package"]
  process.currentDirectoryURL = root
  let output = Pipe()
  process.standardOutput = output
  try process.run()
  let data = output.fileHandleForReading.readDataToEndOfFile()
  process.waitUntilExit()
  return try JSONDecoder().decode(Package.self, from: data)
}

/// The floors, from the lowest one up, and the floors that each one stands on.
let floors: [(name: String, standsOn: [String])] = [
  ("Ground", []), ("Wire", ["Ground"]), ("Storage", ["Ground"]), ("Database", ["Storage"]),
  ("Legacy", ["Database"]), ("Facade", ["Legacy"]), ("Sync", ["Facade", "Wire"]), ("CouchDB", ["Sync"]),
  ("Bindings", ["CouchDB"]), ("Bench", ["CouchDB"]), ("Tool", ["Bench"]),
]
// Tests reach a module through a database, read the data sets, replicate with a listener, and look at whole products.
let testedThrough = ["Facade", "Datasets", "TouchstoneServer", "Suites", "touchstone"]

/// A floor, and all floors below it.
func below(_ floor: String) -> Set<String> {
  let own = floors.first { $0.name == floor }?.standsOn ?? []
  return own.reduce(into: [floor]) { $0.formUnion(below($1)) }
}

/// The floor that a target's folder is on: `Sources/FLOOR/MODULE` or `Tests/FLOOR/MODULETests`.
func floor(of target: Package.Target) -> String? {
  let parts = (target.path ?? "").split(separator: "/")
  guard parts.count == 3, floors.contains(where: { $0.name == parts[1] }) else { return nil }
  return String(parts[1])
}

/// The modules that the files of a target import, each with the first file that does.
func importedModules(by target: Package.Target) -> [(module: String, file: String)] {
  guard let path = target.path,
    let files = FileManager.default.enumerator(atPath: root.appendingPathComponent(path).path)
  else { return [] }
  var found: [String: String] = [:]
  for case let file as String in files where file.hasSuffix(".swift") {
    guard let text = try? String(contentsOf: root.appendingPathComponent("\(path)/\(file)"), encoding: .utf8)
    else { continue }
    for line in text.split(separator: "\n") {
      // import M, @testable import M, public import struct M.T
      var words = line.split(separator: " ")
      while let word = words.first, word.hasPrefix("@") || ["public", "package", "private"].contains(word) {
        words.removeFirst()
      }
      guard words.first == "import", words.count > 1 else { continue }
      let isKind = ["struct", "class", "enum", "protocol", "func", "let", "var", "typealias"].contains(
        words[1])
      guard let name = words.dropFirst(isKind ? 2 : 1).first?.split(separator: ".").first else { continue }
      if found[String(name)] == nil { found[String(name)] = "\(path)/\(file)" }
    }
  }
  return found.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
}

let package = try dumpPackage()
let floorOf = Dictionary(
  package.targets.compactMap { target in floor(of: target).map { (target.name, $0) } },
  uniquingKeysWith: { first, _ in first })

// Imports that lead up.
var faults: [String] = []
for target in package.targets {
  guard let own = floorOf[target.name] else { continue }
  var allowed = below(own)
  var exceptions: Set<String> = []
  if target.path?.hasPrefix("Tests/") == true {
    for name in testedThrough {
      if floors.contains(where: { $0.name == name }) {
        allowed.formUnion(below(name))
      } else {
        exceptions.insert(name)
      }
    }
  }
  func check(_ name: String, _ where_: String) {
    guard let other = floorOf[name], !allowed.contains(other), !exceptions.contains(name) else { return }
    faults.append("\(where_) imports \(name): \(own) doesn't stand on \(other)")
  }
  for dependency in target.dependencies {
    if let name = dependency.byName?.first ?? nil { check(name, "Package.swift: \(target.name)") }
  }
  for (name, file) in importedModules(by: target) { check(name, file) }
}
guard faults.isEmpty else { fail(faults.joined(separator: "\ndraw-modules: ")) }

// What is tested with, and the thin modules of C libraries, aren't drawn.
let drawn = package.targets.filter { target in
  (target.type == "regular" || target.type == "executable") && target.path?.hasPrefix("Sources/") == true
    && target.path?.hasPrefix("Sources/CLibraries/") != true
}
let names = Set(drawn.map(\.name))
var imports: [String: Set<String>] = [:]
for target in drawn {
  imports[target.name] = Set(target.dependencies.compactMap { $0.byName?.first ?? nil }).intersection(names)
}
for target in drawn where floorOf[target.name] == nil {
  fail("the module \(target.name) is on no floor: its folder is \(target.path ?? "")")
}

func reached(from name: String) -> Set<String> {
  var found: Set<String> = []
  var open = Array(imports[name, default: []])
  while let next = open.popLast() {
    if found.insert(next).inserted { open += imports[next, default: []] }
  }
  return found
}

/// The arrows that don't follow from a longer way, out of `chosen`.
func arrows(from chosen: some Sequence<String>) -> [String] {
  chosen.sorted().flatMap { name in
    let direct = imports[name, default: []]
    let indirect = direct.reduce(into: Set<String>()) { $0.formUnion(reached(from: $1)) }
    return direct.subtracting(indirect).sorted().map { "  \(name) --> \($0)" }
  }
}

// The floors first, then the modules of each, with the imports that stay on it.
var lines = ["```mermaid", "graph BT"]
for floor in floors {
  for other in floor.standsOn { lines.append("  \(other) --- \(floor.name)") }
}
lines += [
  "```", "", "On each floor, an arrow means \"imports\". Arrows that follow from longer ways are left out.",
  "",
]
lines += ["```mermaid", "graph TD"]
for floor in floors.reversed() {
  let own = names.filter { floorOf[$0] == floor.name }
  lines.append("  subgraph \(floor.name)Floor[\(floor.name)]")
  lines += own.sorted().map { "    \($0)" }
  lines.append("  end")
}
for floor in floors {
  let own = names.filter { floorOf[$0] == floor.name }
  lines += arrows(from: own).filter { arrow in
    floorOf[String(arrow.split(separator: " ").last ?? "")] == floor.name
  }
}
lines.append("```")

let (begin, end) = ("<!-- modules, drawn by docs/draw-modules.swift -->", "<!-- end of modules -->")
let text = try String(contentsOf: page, encoding: .utf8)
guard let start = text.range(of: begin), let stop = text.range(of: end), start.upperBound <= stop.lowerBound
else { fail("docs/architecture.md has lost the marks of its picture") }
let new =
  text[..<start.upperBound] + "\n" + lines.joined(separator: "\n") + "\n" + text[stop.lowerBound...]
for name in names.sorted() where !text.contains("| `\(name)` |") {
  fail("docs/architecture.md has no line about the module \(name)")
}
if CommandLine.arguments.contains("--check") {
  if new != text { fail("the picture in docs/architecture.md is stale: run swift docs/draw-modules.swift") }
} else {
  try Data(new.utf8).write(to: page)
}
