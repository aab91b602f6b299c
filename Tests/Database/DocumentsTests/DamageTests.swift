import Documents
import TestSupport

/// Bytes that nobody wrote, in every keyspace: what can't be read is a typed error, never a crash.
@Suite("Damaged storage") struct DamageTests {
  private func fill(_ database: Database) throws {
    for number in 0..<6 {
      try database.save("doc\(number)", ["n": .int(Int64(number)), "list": [1, 2.5, "three"]])
    }
    for number in 0..<4 {
      try database.save("doc\(number)", ["n": .int(Int64(number + 1)), "other": ["in": .null]])
    }
    for number in 1..<4 {
      let id = "doc\(number)"
      try database.apply(PulledRevision(id: id, history: ["2-\(number)f", "1-aa"], body: ["pulled": true]))
      try database.apply(PulledRevision(id: id, history: ["4-Text", "3-bb", "2-\(number)f"], body: ["n": 7]))
    }
    try database.delete("doc5", keeping: ["why": "gone"])
    // A deep history.
    for number in 0..<9 { try database.save("doc6", ["n": .int(Int64(number))]) }
  }

  /// Everything that can be done; only typed errors may come of it.
  private func exercise(_ database: Database, _ random: inout SeededGenerator) {
    func attempt(_ body: () throws -> Void) {
      do { try body() } catch is DocumentError {} catch is StorageError {} catch is DatabaseError {} catch {
        Issue.record("threw \(error), a \(type(of: error))")
      }
    }
    for number in 0..<7 {
      let id = "doc\(number)"
      attempt {
        guard let document = try database.document(id, includeDeleted: true) else { return }
        _ = (
          document["n"].int, document["list"][2].string, document["other"]["in"].exists, document.revisionID
        )
        attempt { _ = try document.value() }
        attempt { _ = try document.json() }
        attempt { _ = try document["list"].jsonValue() }
        attempt { _ = try MutableDocument(document) }
      }
      attempt { _ = try database.revisions(of: id) }
    }
    attempt { _ = try database.changes() }
    attempt { _ = try database.lastSequence }
    attempt {
      try database.read { snapshot in
        let key = try snapshot.key("n")
        try snapshot.forEachDocument { view in
          _ = (view.id, view.sequence, view[key]?.int)
          attempt { _ = try view.revisionID() }
          attempt { _ = try view.document().json() }
          var json: [UInt8] = []
          attempt { try view.writeJSON(into: &json) }
          return true
        }
        try snapshot.forEachTombstone { view in
          _ = view[key]?.int
          return true
        }
      }
    }
    for number in 0..<7 {
      let id = "doc\(number)"
      switch Int.random(in: 0..<6, using: &random) {
      case 0: attempt { try database.save(id, ["n": 1, "new": true]) }
      case 1: attempt { try database.delete(id) }
      case 2: attempt { try database.purge(id) }
      case 3:
        attempt {
          try database.apply(PulledRevision(id: id, history: ["3-cc", "2-\(number)f"], body: ["n": 1]))
        }
      case 4: attempt { try database.save(id, ["n": 2], basedOn: RevisionID("4-Text"), onConflict: .fail) }
      default:
        attempt {
          try database.inBatch {
            try database.apply(PulledRevision(id: id, history: ["9-cc", "8-dd"], body: ["n": 1]))
            try database.save("new\(number)", ["a": 1])
          }
        }
      }
    }
  }

  @Test("flipped, cut and foreign bytes in every keyspace", arguments: [EngineName.lmdb, .sqlite])
  func damage(_ engine: EngineName) throws {
    try withSeed { random in
      let directory = TemporaryDirectory()
      for round in 0..<150 {
        let name = "damaged"
        var options = try options(engine)
        options.revisionsPerBlock = 2
        let database = try Database.open(name, in: directory.path, options: options)
        try fill(database)
        var victims: [(String, [UInt8], [UInt8])] = []
        try database.engine.readEntries { transaction in
          for (name, keyspace) in try transaction.keyspaces() {
            victims += try transaction.entries(of: keyspace).map { (name, $0.key, $0.value) }
          }
        }
        // The same order on every run of a seed.
        victims.sort { $0.0 != $1.0 ? $0.0 < $1.0 : $0.1.lexicographicallyPrecedes($1.1) }
        let damage = { (transaction: any WriteTransaction) throws -> Void in
          for _ in 0..<(1 + round % 3) {
            guard let victim = victims.randomElement(using: &random) else { return }
            var (key, value) = (victim.1, victim.2)
            guard let keyspace = try transaction.keyspace(named: victim.0) else { return }
            switch Int.random(in: 0..<8, using: &random) {
            case 0: value.removeLast(Int.random(in: 0...value.count, using: &random))
            case 1:
              value = (0..<Int.random(in: 0..<40, using: &random)).map { _ in
                .random(in: 0...255, using: &random)
              }
            case 2: value = [UInt8](repeating: 0xFF, count: value.count)
            case 3:
              _ = try key.withUnsafeBytes { try transaction.delete($0, in: keyspace) }
              continue
            case 4: key = key.indices.map { $0 == key.count - 1 ? key[$0] ^ 1 : key[$0] }
            default:
              for _ in 0..<Int.random(in: 1...3, using: &random) where !value.isEmpty {
                // Most of them near the front, where the structure is.
                let bound = Bool.random(using: &random) ? min(value.count, 24) : value.count
                value[Int.random(in: 0..<bound, using: &random)] = .random(in: 0...255, using: &random)
              }
            }
            try transaction.put(key, value, in: keyspace)
          }
        }
        // With checksums that say it is right, and without.
        if round.isMultiple(of: 2) {
          try database.engine.writeEntries(damage)
        } else {
          try database.engine.write(damage)
        }
        exercise(database, &random)
        try database.close()
        do {
          let again = try Database.open(name, in: directory.path, options: options)
          exercise(again, &random)
          try again.close()
        } catch is DocumentError {} catch is DatabaseError {} catch is StorageError {}
        try Database.delete(name, in: directory.path)
      }
    }
  }
}
