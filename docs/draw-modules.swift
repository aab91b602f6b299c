// Draws the modules of Package.swift, and what each imports, into docs/architecture.md.
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
  process.arguments = ["swift", "package", "dump-package"]
  process.currentDirectoryURL = root
  let output = Pipe()
  process.standardOutput = output
  try process.run()
  let data = output.fileHandleForReading.readDataToEndOfFile()
  process.waitUntilExit()
  return try JSONDecoder().decode(Package.self, from: data)
}

let package = try dumpPackage()
// What is tested with, and the thin modules of C libraries, aren't drawn.
let drawn = package.targets.filter { target in
  (target.type == "regular" || target.type == "executable") && target.path?.hasPrefix("Tests/") != true
    && !(target.name.hasPrefix("C") && target.name.dropFirst().first?.isUppercase == true
      && target.name != "CBLite2")
}
let names = Set(drawn.map(\.name))
var imports: [String: Set<String>] = [:]
for target in drawn {
  imports[target.name] = Set(target.dependencies.compactMap { $0.byName?.first ?? nil }).intersection(names)
}

func reached(from name: String) -> Set<String> {
  var found: Set<String> = []
  var open = Array(imports[name, default: []])
  while let next = open.popLast() {
    if found.insert(next).inserted { open += imports[next, default: []] }
  }
  return found
}

// An arrow that a longer way says as well is left out.
var lines = ["```mermaid", "graph TD"]
for name in names.sorted() {
  let direct = imports[name, default: []]
  let indirect = direct.reduce(into: Set<String>()) { $0.formUnion(reached(from: $1)) }
  for other in direct.subtracting(indirect).sorted() { lines.append("  \(name) --> \(other)") }
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
