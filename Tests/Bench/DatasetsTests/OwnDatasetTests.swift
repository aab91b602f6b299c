import Expectations
import Foundation
import Testing

@testable import Datasets

/// Data sets of the user's own: what can't be measured is refused with its file and line.
struct OwnDatasetTests {
  private func load(_ lines: String, documents: Int? = nil) throws -> LoadedDataset {
    let path = NSTemporaryDirectory() + "own-\(UUID().uuidString).jsonl"
    try Data(lines.utf8).write(to: URL(filePath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try LoadedDataset.load(path, documents: documents)
  }

  private func error(_ lines: String, documents: Int? = nil) -> DatasetError? {
    #expect(throws: DatasetError.self) { try load(lines, documents: documents) }
  }

  @Test(arguments: ["", "\n\n"]) func noDocumentsAreAnError(_ text: String) {
    let error = error(text)
    expect(error?.code == .empty && error?.path != nil)
  }

  @Test func aRepeatedIDIsNamedWithBothLines() {
    let error = error(#"{"_id":"a"}"# + "\n\n" + #"{"_id":"b"}"# + "\n" + #"{"n":1,"_id":"a"}"# + "\n")
    expect(error?.code == .duplicateID && error?.line == 4)
    expect(error?.message, equals: "the document has the ID a of line 1; give each document its own _id")
  }

  @Test func documentsKeepTheLinesThatTheyHaveInTheFile() throws {
    let lines = (1...10).map { #"{"_id":"d\#($0)"}"# }.joined(separator: "\n\n")
    let all = try load(lines)
    expect((0..<10).map { all.line($0) }, equals: (0..<10).map { 2 * $0 + 1 })
    expect(all.fault(2, "no").description.hasSuffix(".jsonl: line 5: no"))
  }
}
