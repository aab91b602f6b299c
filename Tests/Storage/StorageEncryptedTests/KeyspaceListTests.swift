import CLMDB
import LMDBTestSupport
import TestTools

@testable import StorageLMDB
@testable import StorageEncrypted

/// How encrypted files keep their keyspaces: in the root, or in a tree when there are many.
struct KeyspaceListTests {
  let directory = TemporaryDirectory()

  private var path: String { directory.file("main.emdb") }

  private func make(_ count: Int, from first: Int = 0, in engine: LMDBEncryptedEngine) throws {
    try engine.write { transaction in
      for number in first..<count {
        let keyspace = try transaction.createKeyspace("keyspace-with-a-name-\(number)", shape: .entries)
        try transaction.put(bytes("a"), bytes("\(number)"), in: keyspace)
      }
    }
  }

  /// Opens the file and looks at all of it.
  private func expectKeyspaces(_ numbers: some Sequence<Int>) throws {
    let engine = try openEncrypted(path, .openExisting)
    defer { try? engine.close() }
    try engine.read { transaction in
      let found = try transaction.keyspaces()
      expect(Set(found.keys), equals: Set(numbers.map { "keyspace-with-a-name-\($0)" }))
      for (name, keyspace) in found {
        let value = try transaction.bytes(bytes("a"), in: keyspace)
        expect(value, equals: bytes(String(name.dropFirst("keyspace-with-a-name-".count))))
      }
    }
    try expect(engine.checkIntegrity(), equals: [])
  }

  @Test(
    "a file with any number of keyspaces is opened again",
    arguments: [1, 22, 23, 24, 25, 31, 32, 33, 100, 1_000])
  func counts(count: Int) throws {
    try openEncrypted(path).closing { try make(count, in: $0) }
    try expectKeyspaces(0..<count)
  }

  @Test("keyspaces come and go, into the tree and out of it") func changes() throws {
    for (count, kept) in [(20, 20), (200, 200), (600, 90), (90, 30), (30, 5), (400, 0), (3, 3)] {
      let engine = try openEncrypted(path)
      struct Undone: Error {}
      for isUndone in [true, false] {
        do {
          try engine.write { transaction in
            let existing = try transaction.keyspaces()
            for number in 0..<count where existing["keyspace-with-a-name-\(number)"] == nil {
              let keyspace = try transaction.createKeyspace("keyspace-with-a-name-\(number)", shape: .entries)
              try transaction.put(bytes("a"), bytes("\(number)"), in: keyspace)
            }
            for (name, keyspace) in try transaction.keyspaces() {
              let number = Int(name.dropFirst("keyspace-with-a-name-".count)) ?? 0
              if number >= kept { try transaction.dropKeyspace(keyspace) }
            }
            if isUndone { throw Undone() }
          }
        } catch is Undone {}
      }
      try engine.close()
      try expectKeyspaces(0..<kept)
    }
  }

  @Test("a commit doesn't write what it doesn't change, however many keyspaces there are") func commits()
    throws
  {
    try openEncrypted(path).closing { try make(1_000, in: $0) }
    let before = try Records.all(path)
    try openEncrypted(path).closing { engine in
      try engine.write { transaction in
        let keyspace = try #require(try transaction.keyspace(named: "keyspace-with-a-name-500"))
        try transaction.put(bytes("a"), bytes("500"), in: keyspace)
      }
    }
    let after = try Records.all(path)
    let changed = after.filter { before[$0.key] != $0.value }
    // The root, a node of the keyspace, and the path to it.
    expect(changed.count <= 4, "\(changed.count) of \(after.count) records")
    try expectKeyspaces(0..<1_000)
  }

  /// More snapshots than the pool keeps.
  private static let many = 120

  @Test("snapshots beyond the pool share what is known of 1,000 keyspaces") func snapshots() throws {
    let engine = try openEncrypted(path)
    try make(1_000, in: engine)
    // Twice: the second time those are begun anew that the pool let go.
    for _ in 0..<2 {
      let snapshots = try (0..<Self.many).map { _ in try engine.file.beginRead() }
      let (state, catalog) = (snapshots[0].state, snapshots[0].outer.slot.catalog)
      expect(state.table.items.count, equals: 1_000)
      for snapshot in snapshots {
        expect(snapshot.state === state && snapshot.outer.slot.catalog === catalog)
        snapshot.end()
      }
    }
    try engine.close()
  }

  @Test("a list in chunks, as older releases wrote it, is read and replaced") func olderFiles() throws {
    var engine = try openEncrypted(path)
    try make(60, in: engine)
    try rewriteInChunks(engine.file)
    try engine.close()
    try expectKeyspaces(0..<60)
    engine = try openEncrypted(path)
    try expect(engine.file.beginRead().state.list != nil)
    try make(61, from: 60, in: engine)
    try expect(engine.file.beginRead().state.list == nil)
    try engine.close()
    try expectKeyspaces(0..<61)
  }

  /// Writes the root as it was before there was a tree of keyspaces.
  private func rewriteInChunks(_ file: EncryptedFile) throws {
    let outer = try file.environment.beginWrite()
    let write = try EncryptedWrite(file, outer)
    let list = RootRecord.encode(write.table)
    try write.clear(at: KeyspaceTable.directoryPlace)
    let reference = try list.withUnsafeBytes { try write.writeLarge($0) }
    var payload = [UInt8](repeating: 0, count: RootRecord.payloadBytes)
    payload.withUnsafeMutableBytes { payload in
      payload.storeBytes(of: write.base.transaction + 1, as: UInt64.self)
      payload.storeBytes(of: write.nextNumber, toByteOffset: 8, as: UInt64.self)
      payload.storeBytes(of: UInt64(write.nextKeyspace), toByteOffset: 16, as: UInt64.self)
      payload.storeBytes(of: UInt32(write.table.items.count), toByteOffset: 24, as: UInt32.self)
      payload.storeBytes(of: UInt32(list.count), toByteOffset: 28, as: UInt32.self)
      if let start = payload.baseAddress { reference.write(to: start + RootRecord.headerBytes) }
    }
    let place = try outer.reserve(RecordFormat.rootNumber, RootRecord.byteCount, in: file.records)
    let seal = try file.sealer.take()
    seal.write(to: place)
    try payload.withUnsafeBytes { payload in
      try write.reader.cipher.seal(
        #require(payload.baseAddress), count: payload.count,
        Reference(number: RecordFormat.rootNumber, seal: seal), .root, into: place + Seal.byteCount)
    }
    outer.bodyEnded()
    try file.environment.commit(outer)
  }

  @Test("an older root over younger records is an error at open") func oldRoots() throws {
    try openEncrypted(path).close()
    let empty = try Records.all(path)[RecordFormat.rootNumber] ?? []
    var engine = try openEncrypted(path)
    try make(3, in: engine)
    try engine.close()
    let older = try Records.all(path)[RecordFormat.rootNumber] ?? []
    try openEncrypted(path).closing { try make(6, from: 3, in: $0) }
    let newest = try Records.all(path)[RecordFormat.rootNumber] ?? []
    for root in [empty, older] {
      try Records.put([RecordFormat.rootNumber: root], path)
      try expect(storageCode { _ = try openEncrypted(path, .openExisting) }, equals: .damaged)
    }
    try Records.put([RecordFormat.rootNumber: newest], path)
    try expectKeyspaces(0..<6)
    // A file that has lost all its keyspaces rightly is empty.
    engine = try openEncrypted(path)
    try engine.write { transaction in
      for keyspace in try transaction.keyspaces().values { try transaction.dropKeyspace(keyspace) }
    }
    try engine.close()
    try expectKeyspaces(0..<0)
  }
}
