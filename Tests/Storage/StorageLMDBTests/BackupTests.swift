import LMDBTestSupport
import TestTools

@testable import StorageLMDB

/// How copies of LMDB's files get their names.
@Suite("Copies of LMDB's files") struct BackupTests {
  let directory = TemporaryDirectory()

  @Test("a backup is made where there are no hard links, once", arguments: [true, false])
  func withoutHardLinks(_ exclusiveRenames: Bool) throws {
    let engine = try open(directory.file())
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
    let copy = directory.file("copy.mdb")
    try withFileSystem(exclusiveRenames: exclusiveRenames) {
      try engine.backup(to: copy)
      try engine.write { try $0.put(bytes("later"), [1], in: keyspace) }
      try expect(storageCode { try engine.backup(to: copy) }, equals: .alreadyExists)
    }
    try engine.close()
    try expect(directory.names(), equals: ["copy.mdb", "main.mdb", "main.mdb-lock"])
    let copied = try open(copy, .openExisting)
    try expect(copied.read { try $0.count(of: keyspace) }, equals: 0)
    try copied.close()
  }
}
