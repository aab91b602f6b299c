// Compiles the Swift code in the articles, in the README and in docs/*.md against the built library.
//
//   swift docs/check-code.swift BUILD     BUILD has the built modules: .build/release
//
// A block whose declarations all stand at its left edge is compiled as it is; the other blocks of the page see them. Any
// other block becomes the body of a function. A comment before a block says what the compiler can't know:
//
//   <!-- code: given travel: Database, key: UserKey -->    the block uses these values
//   <!-- code: fragment -->                                the block isn't whole, and isn't compiled
//
// A comment before a table makes each text in backticks in its second column be compiled:
//
//   <!-- code: rows given notes: Database, id: String -->  the rows use these values
//   <!-- code: rows -->
//
// A name of a type becomes `_ = Name.self`. A declaration, an assignment and a statement stay as they are. Anything else
// is an expression, and becomes `_ = try …`. The texts of a row see each other's variables. A row without code begins its
// second column with `later` or `no:`. A page with such a table has the comment before each table.

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

/// A row of a table, with the code in its second column.
struct Row {
  let line: Int
  let code: [String]
  /// The values that the comment before the table names, as parameters of a function.
  let given: String

  var isAsynchronous: Bool { code.contains { $0.contains("await ") } }

  /// Returns a text in backticks as a line of Swift.
  static func statement(_ text: String) -> String {
    let keywords = [
      "let", "var", "func", "struct", "for", "if", "guard", "while", "do", "try", "await", "switch", "defer",
    ]
    let first = text.prefix { $0.isLetter }
    if keywords.contains(String(first)), text.dropFirst(first.count).first == " " { return text }
    if text.firstMatch(of: #/^[A-Za-z_][\w.?]*(\[[^\]]*\][\w.?]*)* [-+]?= /#) != nil { return text }
    let name = text.hasPrefix("any ") ? text.dropFirst(4) : text[...]
    // A type's last name begins with a capital, as no other name does.
    if name.wholeMatch(of: #/([A-Z]\w*\.)*[A-Z]\w*/#) != nil { return "_ = (\(text)).self" }
    return "_ = try \(text)"
  }
}

/// Returns the cells of a line of a table. As GitHub does, it splits at each `|` that no backslash precedes, in code too.
func cells(_ line: String) -> [String] {
  let cells = line.replacingOccurrences(of: "\\|", with: "\0").dropFirst()
    .split(separator: "|", omittingEmptySubsequences: false)
  return cells.map { $0.replacingOccurrences(of: "\0", with: "|").trimmingCharacters(in: .whitespaces) }
}

/// Returns the rows of the page's tables whose second column is Swift.
func rows(_ page: String, in path: String) -> [Row] {
  let lines = page.components(separatedBy: "\n")
  var found: [Row] = []
  var others: [Int] = []
  var number = 0
  while number < lines.count {
    defer { number += 1 }
    guard lines[number].hasPrefix("|") else { continue }
    let note = number > 0 ? lines[number - 1] : ""
    let isCode = note.hasPrefix("<!-- code: rows") && note.hasSuffix(" -->")
    let begin = number
    while number < lines.count, lines[number].hasPrefix("|") { number += 1 }
    guard isCode else {
      others.append(begin)
      continue
    }
    let values = note.dropFirst(15).dropLast(4)
    guard values.isEmpty || values.hasPrefix(" given ") else {
      fail("\(path):\(begin): expected 'given NAME: TYPE' after 'rows', not '\(values)'")
    }
    let width = cells(lines[begin]).count
    // The first two lines are the header and the rule below it.
    for index in (begin + 2)..<max(begin + 2, number) {
      let row = cells(lines[index])
      guard row.count == width, !row[0].isEmpty else {
        fail("\(path):\(index + 1): the row needs \(width - 1) cells")
      }
      let code = row[1].split(separator: "`", omittingEmptySubsequences: false).enumerated()
        .filter { $0.offset % 2 == 1 }.map { String($0.element) }
      if code.isEmpty, row[1] != "later", !row[1].hasPrefix("later,"), !row[1].hasPrefix("no: ") {
        fail("\(path):\(index + 1): a row without code says 'later' or 'no: ' and why, not '\(row[1])'")
      }
      found.append(Row(line: index + 1, code: code, given: String(values.dropFirst(7))))
    }
  }
  if !found.isEmpty, let other = others.first {
    fail("\(path):\(other + 1): the table has no comment 'code: rows', as the others of the page do")
  }
  return found
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
      if note != "fragment", note != "rows", !note.hasPrefix("given "), !note.hasPrefix("rows given ") {
        fail("\(path):\(number + 1): expected 'given NAME: TYPE', 'fragment' or 'rows', not '\(note)'")
      }
      let next = page.components(separatedBy: "\n").dropFirst(number + 1).first
      if note.hasPrefix("rows") != (next?.hasPrefix("|") == true) {
        fail("\(path):\(number + 1): 'code: rows' belongs before a table, and nothing else does")
      }
    } else if !text.isEmpty {
      note = ""
    }
  }
  if let open { fail("\(path):\(open.line - 1): the code block has no end") }
  return found
}

/// Returns a source file with the blocks and the rows of a page. Its diagnostics name lines of the page.
func source(_ blocks: [Block], _ rows: [Row], of path: String) -> String {
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
  for row in rows where !row.code.isEmpty {
    text += "func row\(row.line)(\(row.given)) \(row.isAsynchronous ? "async " : "")throws {\ndo {\n"
    for code in row.code {
      text +=
        "#sourceLocation(file: \"\(path)\", line: \(row.line))\n\(Row.statement(code))\n#sourceLocation()\n"
    }
    text += "}\n}\n"
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
let maps = try (contents(root.appendingPathComponent("Sources/CLibraries")) + contents(build))
  .map { $0.appendingPathComponent("module.modulemap").path }
  .filter { files.fileExists(atPath: $0) }
let headers = try contents(root.appendingPathComponent("Sources/CLibraries"))
  .map { $0.appendingPathComponent("include").path }.filter { files.fileExists(atPath: $0) }
let library =
  ["-I", build.appendingPathComponent("Modules").path] + maps.flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] }
  + headers.flatMap { ["-Xcc", "-I\($0)"] }

let folders = ["Sources/Facade/Touchstone/Touchstone.docc", "docs"].map { root.appendingPathComponent($0) }
let pages =
  try [root.appendingPathComponent("README.md")]
  + folders.flatMap { try contents($0).filter { $0.pathExtension == "md" } }
let scratch = files.temporaryDirectory.appendingPathComponent("check-code-\(UUID().uuidString)")
try files.createDirectory(at: scratch, withIntermediateDirectories: true)
var compiled = 0
var fragments = 0
var compiledRows = 0
var faults: [String] = []
for page in pages {
  let path = String(page.path.dropFirst(root.path.count + 1))
  let text = try String(contentsOf: page, encoding: .utf8)
  let all = blocks(text, in: path)
  let table = rows(text, in: path)
  let whole = all.filter { $0.note != "fragment" }
  fragments += all.count - whole.count
  compiled += whole.count
  compiledRows += table.count { !$0.code.isEmpty }
  for manifest in whole where manifest.isManifest {
    let file = scratch.appendingPathComponent("Package.swift")
    try files.createDirectory(at: scratch, withIntermediateDirectories: true)
    try manifest.lines.joined(separator: "\n").write(to: file, atomically: true, encoding: .utf8)
    if try !run(["swift", "package", "--package-path", scratch.path, "dump-package"]) { faults.append(path) }
  }
  let code = whole.filter { !$0.isManifest }
  guard !code.isEmpty || !table.isEmpty else { continue }
  let file = scratch.appendingPathComponent(
    page.deletingPathExtension().lastPathComponent.replacingOccurrences(of: "-", with: "_") + ".swift")
  try source(code, table, of: path).write(to: file, atomically: true, encoding: .utf8)
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
  "check-code: \(compiled) blocks and \(compiledRows) rows of tables compile in \(pages.count) pages; "
    + "\(fragments) fragments aren't compiled")
