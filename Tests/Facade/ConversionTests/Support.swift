import TestSupport

func oldKey() throws -> UserKey { try .raw([UInt8](repeating: 7, count: 32)) }
func newKey() throws -> UserKey { try .raw([UInt8](repeating: 8, count: 32)) }

func encrypts(_ engine: EngineName) throws -> Bool { try Engines.type(engine).encrypts }

let firstBlob = (0..<150_000).map { UInt8(truncatingIfNeeded: $0 * 7 + $0 >> 8) }
let secondBlob = Array("a small blob".utf8)

/// A database with something of everything.
func makeFixture(_ engine: EngineName, at path: String, documents: Int = 120) throws {
  let database = try Database.open(
    path,
    options: DatabaseOptions(
      engine: engine, creation: .createNew, durability: .none, key: try key(of: engine)))
  try database.inBatch {
    for n in 0..<documents {
      let text = String(repeating: "text \(n) ", count: 1 + n % 50)
      try database.save("doc\(n)", ["n": .int(Int64(n)), "text": .string(text), "key\(n % 40)": true])
    }
    for n in 0..<documents / 4 { try database.save("doc\(n)", ["n": .int(Int64(-n)), "again": true]) }
    for n in 0..<documents / 8 { try database.delete("doc\(n * 3)") }
  }
  try database.apply(PulledRevision(id: "pulled", history: ["3-cc", "2-bb", "1-aa"], body: ["side": "a"]))
  try database.apply(PulledRevision(id: "pulled", history: ["3-dd", "2-bb", "1-aa"], body: ["side": "b"]))
  try database.setExpiration(of: "doc1", after: 1e7)
  try database.createIndex("byN", on: ["n"])
  try database.save("blob1", ["file": try database.makeBlob(firstBlob).jsonValue])
  try database.save("blob2", ["file": try database.makeBlob(secondBlob).jsonValue])
  try database.engine.write { (transaction: any WriteTransaction) throws -> Void in
    for shape in KeyspaceShape.allCases {
      let keyspace = try transaction.createKeyspace("test.\(shape)", shape: shape)
      for n in UInt64(0)..<200 {
        let key = withUnsafeBytes(of: (n * n * 31).bigEndian) { [UInt8]($0) }
        try transaction.put(key, [UInt8](repeating: UInt8(n), count: Int(n % 7) * 900), in: keyspace)
      }
      _ = try transaction.createKeyspace("test.empty.\(shape)", shape: shape)
    }
  }
  try database.close()
}

/// All that a database's engine holds, but its own UUIDs: entry by entry, as text that can be compared.
struct Contents: Equatable {
  let keyspaces: [String: [SortedMap.Entry]]
  let shapes: [String: UInt8]

  init(_ engine: any StorageEngine) throws {
    let uuid = Array("UUID".utf8)
    (keyspaces, shapes) = try engine.read { transaction in
      let keyspaces = try transaction.keyspaces()
      var entries = try keyspaces.mapValues { try transaction.entries(of: $0) }
      entries["meta"]?.removeAll { $0.key.suffix(4) == uuid[...] }
      return (entries, keyspaces.mapValues(\.shape.rawValue))
    }
  }

  /// What a closed database holds, after a check of everything and a look at its blobs.
  init(of path: String, key: UserKey?) throws {
    let database = try Database.open(path, options: DatabaseOptions(creation: .openExisting, key: key))
    defer { try? database.close() }
    let faults = try database.check(deep: true)
    expect(faults.isEmpty, "\(faults)")
    for (id, bytes) in [("blob1", firstBlob), ("blob2", secondBlob)] {
      let blob = try #require(try database.document(id)?["file"].blob)
      try expect(database.contents(of: blob), equals: bytes)
    }
    self = try Contents(database.engine)
  }
}

/// Whether a name is that of a file that an engine keeps beside its own: readers make them too.
func isSideFile(_ name: String) -> Bool {
  ["-lock", "-shm", "-wal"].contains { name.hasSuffix($0) }
}
