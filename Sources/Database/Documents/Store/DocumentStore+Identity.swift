import Storage

extension DocumentStore {
  /// Returns a random UUID of version 4 (RFC 4122): 16 bytes.
  static func randomUUID() -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    var uuid = (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
    uuid[6] = uuid[6] & 0x0F | 0x40
    uuid[8] = uuid[8] & 0x3F | 0x80
    return uuid
  }

  static let previousPrivateUUIDKey = Array("previousPrivateUUID".utf8)

  /// Gives the documents in `engine`, which were copied from another database, an identity of their own.
  ///
  /// It assigns new UUIDs and stores the previous private UUID. Earlier syncs stored their checkpoints under
  /// that UUID. Only one previous UUID is remembered, as in Couchbase Lite: the sync of a copy continues
  /// where the database it was copied from had stopped. Throws `damaged` when the private UUID is missing.
  package static func assignNewUUIDs(in engine: any StorageEngine) throws {
    try engine.writeEntries { transaction in
      guard let meta = try transaction.keyspace(named: "meta"),
        let privateUUID = try transaction.bytes(Array("privateUUID".utf8), in: meta)
      else { throw DocumentError(.damaged, "the database's own records can't be read in \(engine.location)") }
      try transaction.put(previousPrivateUUIDKey, privateUUID, in: meta)
      for name in ["publicUUID", "privateUUID"] {
        try transaction.put(Array(name.utf8), randomUUID(), in: meta)
      }
    }
  }

  /// The private UUID of the database that this one was copied from: 16 bytes. Nil if it isn't a copy.
  package var previousPrivateUUID: [UInt8]? {
    get throws {
      try reading { transaction, context in
        try transaction.bytes(Self.previousPrivateUUIDKey, in: context.keyspaces.meta)
      }
    }
  }
}
