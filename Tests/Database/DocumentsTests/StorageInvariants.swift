import TestSupport

@testable import Documents

/// What has to hold of a database's keyspaces after every commit; one line for each fault.
func storageFaults(_ database: Database) throws -> [String] {
  try storageFaults(database.engine)
}

func storageFaults(_ engine: any StorageEngine) throws -> [String] {
  var faults: [String] = []
  try engine.readEntries { transaction in
    func keyspace(_ name: String) throws -> Keyspace {
      guard let keyspace = try transaction.keyspace(named: name) else {
        throw DocumentError(.damaged, "there is no keyspace \(name)")
      }
      return keyspace
    }
    func number(_ key: RawSpan) -> UInt64 {
      [UInt8](copying: key).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    }
    var changes: [String: [(sequence: UInt64, flags: UInt8)]] = [:]
    var changeCount = 0
    try transaction.scan(keyspace("changes")) { key, value in
      let value = [UInt8](copying: value)
      changes[String(decoding: value.dropFirst(), as: UTF8.self), default: []].append((number(key), value[0]))
      changeCount += 1
      return true
    }
    let state = try transaction.bytes(Array("state".utf8), in: keyspace("meta"))
    let lowestLastSequence = state?.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } ?? 0
    let lastSequence = max(lowestLastSequence, changes.values.joined().map(\.sequence).max() ?? 0)
    let keyCount = state?.dropFirst(8).prefix(2).reduce(0) { $0 << 8 | Int($1) } ?? 0
    let sharedKeys = try DocumentStore.loadSharedKeys(transaction, keyspace("meta"))
    if sharedKeys.count != keyCount {
      faults.append("\(sharedKeys.count) shared keys, state says \(keyCount)")
    }
    var bodies: Set<UInt64> = []
    var histories: Set<String> = []
    var conflicts: Set<UInt64> = []
    for (name, isDeleted) in [("docs", false), ("deleted", true)] {
      var count = 0
      try transaction.scan(keyspace(name)) { key, value in
        count += 1
        let id = String(copying: key)
        let record = try DocumentRecord(value)
        let tree = RevisionTree()
        try tree.decode(record.tree)
        if let history = record.history {
          histories.insert(id)
          try key.withUnsafeBytes {
            try tree.addHistory(of: $0, history, transaction, includingPruned: true)
          }
          let visible = tree.nodes.filter { $0.generation >= history.lowestGeneration }
          if tree.nodes.count == history.count { faults.append("\(id) has an empty record") }
          if visible.count <= tree.nodes.count - Int(history.count) {
            faults.append("\(id) has blocks, and nothing in them counts")
          }
        }
        let node = tree.nodes[0]
        if node.isDeleted != isDeleted || record.flags.contains(.deleted) != isDeleted {
          faults.append("\(id) is in the wrong keyspace, \(name)")
        }
        if record.flags.contains(.conflicted) != tree.isConflicted { faults.append("\(id): conflicted?") }
        if !node.flags.contains(.hasBody) { faults.append("\(id): the current revision has no body") }
        try record.body.withUnsafeBytes { try validate($0, sharedKeyCount: record.keyCount) }
        if record.keyCount > keyCount { faults.append("\(id) needs more shared keys than there are") }
        if record.sequence > lastSequence { faults.append("\(id) is newer than the last sequence") }
        let entries = changes.removeValue(forKey: id) ?? []
        if entries.map(\.sequence) != [record.sequence] || entries[0].flags & 3 != record.flags.rawValue {
          faults.append("\(id) of \(record.sequence) is in the changes at \(entries)")
        }
        for (index, node) in tree.nodes.enumerated() {
          if node.sequence > record.sequence { faults.append("\(id): a revision newer than the document") }
          if index > 0, node.flags.contains(.hasBody) {
            let isNew = (node.isLeaf ? { conflicts.insert($0) } : { bodies.insert($0) })(node.sequence)
              .inserted
            if !isNew { faults.append("sequence \(node.sequence) has two bodies") }
          }
        }
        return true
      }
      if try transaction.count(of: keyspace(name)) != count { faults.append("the count of \(name) is wrong") }
    }
    if let history = try transaction.keyspace(named: "history") {
      let found = Set(
        try transaction.entries(of: history).map { String(decoding: $0.key.dropLast(9), as: UTF8.self) })
      if found != histories { faults.append("histories of \(found.symmetricDifference(histories))") }
    } else if !histories.isEmpty {
      faults.append("no keyspace of histories")
    }
    if !changes.isEmpty { faults.append("changes of no document: \(changes)") }
    if try transaction.count(of: keyspace("changes")) != changeCount { faults.append("count of changes") }
    for (name, known) in [("bodies", bodies), ("conflicts", conflicts)] {
      var found: Set<UInt64> = []
      try transaction.scan(keyspace(name)) { key, value in
        found.insert(number(key))
        let body = try BodyRecord(value)
        try body.body.withUnsafeBytes { try validate($0, sharedKeyCount: body.keyCount) }
        return true
      }
      let orphans = found.subtracting(known).sorted()
      if !orphans.isEmpty { faults.append("orphans in \(name): \(orphans)") }
      // Bodies of replaced revisions may have been dropped; those of leaves never.
      let missing = known.subtracting(found).sorted()
      if name == "conflicts", !missing.isEmpty { faults.append("missing in \(name): \(missing)") }
      if try transaction.count(of: keyspace(name)) != found.count { faults.append("the count of \(name)") }
    }
    let expirations = try transaction.entries(of: keyspace("expirations")).map { $0.value + $0.key }
    let expiry = try transaction.entries(of: keyspace("expiry")).map(\.key)
    if expirations.sorted(by: { $0.lexicographicallyPrecedes($1) }) != expiry {
      faults.append("expiry and expirations disagree: \(expiry.count) and \(expirations.count)")
    }
    for key in expiry {
      let isThere = try ["docs", "deleted"].contains { name in
        try transaction.bytes(Array(key.dropFirst(8)), in: keyspace(name)) != nil
      }
      if !isThere { faults.append("what is no document expires") }
    }
  }
  return faults
}
