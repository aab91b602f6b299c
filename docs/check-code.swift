// Compiles the Swift code in the articles, in the README and in docs/*.md against the built library.
//
//   swift docs/check-code.swift BUILD     BUILD has the built modules: .build/release
//
// A block whose declarations all stand at its left edge is compiled as it is; the other blocks of the page see them. Any
// other block becomes the body of a function. A comment before a block says what the compiler can't know:
//
//   <!-- code: given travel: Database, key: UserKey -->    the block uses these values
//   <!-- code: fragment -->                                the block isn't whole, and isn't compiled

import Foundation

struct Block {
  /// The line of the block's first line of code in its page.
  let line: Int
  let lines: [String]
  /// The text after `code:` in the comment before the block.
  let note: String

  var isManifest: Bool { lines.first?.hasPrefix("// swift-tools-version") == true }
  var imports: [String] { lines.filter { $0.hasPrefix("import ") } }
  var isAsynchronous: Bool { lines.contains { $0.contains("await ") } }

  /// Whether each line at the left edge begins or ends a declaration that may stand outside functions.
  var isDeclarations: Bool {
    let edge = lines.filter {
      !$0.isEmpty && !$0.hasPrefix(" ") && !$0.hasPrefix("import ") && !$0.hasPrefix("//")
    }
    let begins = [
      "struct ", "final class ", "enum ", "extension ", "func ", "actor ", "public ", "@", "}", ")",
    ]
    return !edge.isEmpty && edge.allSatisfy { line in begins.contains { line.hasPrefix($0) } }
  }
}

func fail(_ message: String) -> Never {
  FileHandle.standardError.write(Data("check-code: \(message)\n".utf8))
  exit(1)
}

/// Returns the Swift blocks of a page.
func blocks(_ page: String, in path: String) -> [Block] {
  var found: [Block] = []
  var note = ""
  var open: (line: Int, indent: String, lines: [String])?
  for (number, line) in page.components(separatedBy: "\n").enumerated() {
    let text = line.trimmingCharacters(in: .whitespaces)
    if let block = open {
      if text == "```" {
        found.append(Block(line: block.line, lines: block.lines, note: note))
        (open, note) = (nil, "")
      } else {
        open?.lines.append(line.hasPrefix(block.indent) ? String(line.dropFirst(block.indent.count)) : text)
      }
    } else if text == "```swift" {
      open = (number + 2, String(line.prefix { $0 == " " }), [])
    } else if text.hasPrefix("<!-- code: "), text.hasSuffix(" -->") {
      note = String(text.dropFirst(11).dropLast(4))
      if note != "fragment", !note.hasPrefix("given ") {
        fail("\(path):\(number + 1): expected 'given NAME: TYPE' or 'fragment' after 'code:', not '\(note)'")
      }
    } else if !text.isEmpty {
      note = ""
    }
  }
  if let open { fail("\(path):\(open.line - 1): the code block has no end") }
  return found
}

/// Returns a source file with the blocks of a page. Its diagnostics name lines of the page.
func source(_ blocks: [Block], of path: String) -> String {
  var text = Set(blocks.flatMap(\.imports) + ["import Touchstone"]).sorted().joined(separator: "\n") + "\n"
  for (index, block) in blocks.enumerated() {
    let code = block.lines.map { $0.hasPrefix("import ") ? "" : $0 }.joined(separator: "\n")
    let located = "#sourceLocation(file: \"\(path)\", line: \(block.line))\n\(code)\n#sourceLocation()\n"
    if block.isDeclarations {
      text += located
    } else {
      let given = block.note.hasPrefix("given ") ? String(block.note.dropFirst(6)) : ""
      // A scope of its own, so that a block may name a value like one that is given.
      text +=
        "func block\(index)(\(given)) \(block.isAsynchronous ? "async " : "")throws {\ndo {\n\(located)}\n}\n"
    }
  }
  return text
}

func run(_ arguments: [String]) throws -> Bool {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
  process.arguments = arguments
  process.standardOutput = FileHandle.nullDevice
  try process.run()
  process.waitUntilExit()
  return process.terminationStatus == 0
}

guard CommandLine.arguments.count == 2 else { fail("usage: swift docs/check-code.swift BUILD") }
let files = FileManager.default
let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
let build = URL(fileURLWithPath: CommandLine.arguments[1]).resolvingSymlinksInPath()
guard files.fileExists(atPath: build.appendingPathComponent("Modules/Touchstone.swiftmodule").path) else {
  fail("there is no built library in \(build.path): run 'make build'")
}

func contents(_ directory: URL) throws -> [URL] {
  try files.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil).sorted { $0.path < $1.path }
}

// The library's modules import modules of C, whose maps are in the sources or were made by the build.
let maps = try (contents(root.appendingPathComponent("Sources")) + contents(build))
  .map { $0.appendingPathComponent("module.modulemap").path }
  .filter { files.fileExists(atPath: $0) }
let headers = try contents(root.appendingPathComponent("Sources"))
  .map { $0.appendingPathComponent("include").path }.filter { files.fileExists(atPath: $0) }
let library =
  ["-I", build.appendingPathComponent("Modules").path] + maps.flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] }
  + headers.flatMap { ["-Xcc", "-I\($0)"] }

let folders = ["Sources/Touchstone/Touchstone.docc", "docs"].map { root.appendingPathComponent($0) }
let pages =
  try [root.appendingPathComponent("README.md")]
  + folders.flatMap { try contents($0).filter { $0.pathExtension == "md" } }
let scratch = files.temporaryDirectory.appendingPathComponent("check-code-\(UUID().uuidString)")
try files.createDirectory(at: scratch, withIntermediateDirectories: true)
var compiled = 0
var fragments = 0
var faults: [String] = []
for page in pages {
  let path = String(page.path.dropFirst(root.path.count + 1))
  let all = blocks(try String(contentsOf: page, encoding: .utf8), in: path)
  let whole = all.filter { $0.note != "fragment" }
  fragments += all.count - whole.count
  compiled += whole.count
  for manifest in whole where manifest.isManifest {
    let file = scratch.appendingPathComponent("Package.swift")
    try files.createDirectory(at: scratch, withIntermediateDirectories: true)
    try manifest.lines.joined(separator: "\n").write(to: file, atomically: true, encoding: .utf8)
    if try !run(["swift", "package", "--package-path", scratch.path, "dump-package"]) { faults.append(path) }
  }
  let code = whole.filter { !$0.isManifest }
  guard !code.isEmpty else { continue }
  let file = scratch.appendingPathComponent(
    page.deletingPathExtension().lastPathComponent.replacingOccurrences(of: "-", with: "_") + ".swift")
  try source(code, of: path).write(to: file, atomically: true, encoding: .utf8)
  let compiles = try run(
    [
      "swiftc", "-typecheck", "-parse-as-library", "-swift-version", "6", "-suppress-warnings",
      "-module-name", "Page",
    ]
      + library + [file.path])
  if !compiles { faults.append(path) }
}
try? files.removeItem(at: scratch)
guard faults.isEmpty else { fail("code doesn't compile in \(faults.joined(separator: ", "))") }
print(
  "check-code: \(compiled) blocks compile in \(pages.count) pages; \(fragments) fragments aren't compiled")
