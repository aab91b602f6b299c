import TestSupport

/// Large files of ForestDB are read in little memory, wherever their records are.
@Suite("Large ForestDB files", .serialized) struct ForestDBMemoryTests {
  @Test("are read in less than 64 MiB", .enabled(if: !isSanitized), arguments: ["trie", "log"])
  func memory(_ place: String) throws {
    let directory = TemporaryDirectory()
    let documents = isLong ? 800_000 : 30_000
    let make = try startChild(
      .database, "forestdb", "make", directory.path, "large", "\(documents)", "2", "900",
      place == "log" ? "1" : "2",
      place)
    try expect(make.wait(), equals: .exited(0), "\(make.outputText)")
    let path = directory.path + "/large.cblite2"
    let child = try startChild(.database, "forestdb", "read", path, directory.path)
    try expect(child.wait(), equals: .exited(0), "\(child.outputText)")
    let words = child.outputText.split { $0 == " " || $0 == "\n" }.map(String.init)
    var numbers: [String: Double] = [:]
    for index in stride(from: 0, to: words.count - 1, by: 2) {
      numbers[words[index]] = Double(words[index + 1])
    }
    expect(numbers["revisions"] == Double(documents * 2) && numbers["bodies"] == Double(documents * 2))
    let size = try FileManager.default.attributesOfItem(atPath: path + "/db.forest.0")[.size] as? Int
    let revisions = (numbers["revisions"] ?? 0) / (numbers["seconds"] ?? 1)
    print(
      "\(place) of \((size ?? 0) >> 20) MiB: \(Int(revisions)) revisions a second of a processor, \(Int((numbers["anonymous"] ?? 0) / 1_048_576)) MiB of anonymous memory"
    )
    try expect(#require(numbers["anonymous"]) < Double(64 << 20))
  }
}
