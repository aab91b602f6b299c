// libFuzzer's target for files of ForestDB: whatever a file holds, opening and reading it throws an error or ends, and
// what is lent lies within the file. Checksums aren't looked at, so that what they protect is reached.
//
//   input := bytes of a file; if they are fewer than a block, those of a revision tree

import ForestDBFile
import FuzzDriver

#if canImport(Glibc)
  import Glibc
#endif

@main enum FuzzForestDB: FuzzTarget {
  /// A file without a name, which gets the bytes of each input.
  private static let file: Int32 = {
    var template = Array("/tmp/fuzz-forestdb-XXXXXX".utf8CString)
    let file = mkstemp(&template)
    precondition(file >= 0, "no temporary file")
    unlink(template)
    return file
  }()

  static func test(_ input: UnsafeRawBufferPointer) {
    guard input.count >= 4_096 else { return RevisionTreeFuzzing.test(input) }
    precondition(ftruncate(file, 0) == 0 && pwrite(file, input.baseAddress, input.count, 0) == input.count)
    do {
      let opened = try ForestDBFile(descriptor: dup(file), path: "input", scratch: "/tmp")
      // Twice: the order of documents has to stay the same.
      let first = try read(opened)
      let second = try read(opened)
      precondition(first == second, "a second reading differs")
      for name in ForestDBFile.storeNames {
        guard let store = opened.store(name) else { continue }
        let records = try opened.records(of: store)
        while let item = try records.next() {
          if case .record = item { _ = records.body()?.last }
        }
      }
    } catch is ForestDBError {
    } catch { preconditionFailure("another error: \(error)") }
  }

  private static func read(_ file: ForestDBFile) throws -> [Int] {
    let documents = try file.documents()
    let expirations = try file.store("expiry").map { try file.lookup(in: $0, ignoring: 7) }
    var counts: [Int] = []
    var id: [UInt8] = []
    while let item = try documents.next() {
      guard case .document = item else { continue }
      counts.append(documents.id.count)
      _ = try expirations?.withBody(documents.id) { $0?.count }
      for index in documents.revisions.indices {
        precondition(documents.revisions[index].parent < documents.revisions.count)
        id.removeAll()
        documents.appendID(index, to: &id)
        let length = try documents.withBody(index) { ($0.last.map(Int.init) ?? 0) &+ $0.count }
        precondition((length != nil) == documents.hasBody(index), "a body comes and goes")
        counts.append(length ?? -1)
      }
    }
    return counts
  }
}
