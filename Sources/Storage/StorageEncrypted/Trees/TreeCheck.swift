import CLMDB
import Storage
import StorageLMDB

/// A check of every record of a snapshot, read from the file without the cache.
///
/// A record that decrypts is what was written. So the check only has to test the order of keys, the counts,
/// and whether records are left over.
final class TreeCheck {
  private static let maximumFaults = 100

  private let snapshot: EncryptedReadTransaction
  private let reader: NodeRecordReader
  private var faults: [String] = []
  private var records = 2
  private var name = ""
  private var previous: [UInt8]?
  private var entries = 0
  private var large = 0

  init(_ snapshot: EncryptedReadTransaction) {
    self.snapshot = snapshot
    reader = NodeRecordReader(snapshot.file)
    reader.bypassesCache = true
    reader.begin(snapshot.transaction)
  }

  func run() throws -> [String] {
    do {
      let state = try reader.root()
      if let list = state.list { records += ChunkLayout(count: list.count, payloadBytes: payloadBytes).count }
      let directory = state.table.directory
      if directory.height > 0 {
        name = "of keyspaces"
        try check(directory.root, level: directory.height - 1, upper: nil)
      }
      for item in state.table.items {
        name = item.name
        previous = nil
        entries = 0
        large = 0
        if item.tree.height > 0 {
          try check(item.tree.root, level: item.tree.height - 1, upper: nil)
        }
        if faults.isEmpty, entries != item.tree.count || large != item.tree.large {
          report("says it has \(item.tree.count) entries, but has \(entries)")
        }
      }
    } catch let error as StorageError where error.code == .damaged {
      faults.append(error.message)
    }
    if faults.isEmpty {
      let found = try snapshot.outer.count(of: snapshot.file.records)
      if found != records { faults.append("there are \(found) records, but \(records) are in use") }
    }
    return faults
  }

  private var payloadBytes: Int { snapshot.file.payloadBytes }

  private func report(_ fault: String) {
    if faults.count < Self.maximumFaults { faults.append("keyspace \(name): \(fault)") }
  }

  /// Checks the nodes below a reference. All their keys must be below `upper`.
  private func check(_ reference: Reference, level: Int, upper: [UInt8]?) throws {
    records += 1
    let node: Node
    do { node = try reader.node(reference, level: level) } catch let error as StorageError
      where error.code == .damaged
    { return report(error.message) }
    for index in 0..<node.count {
      if level > 0 {
        let next = index + 1 < node.count ? [UInt8](node.branchKey(index + 1)) : upper
        if index > 0, let previous, !isBefore(previous, [UInt8](node.branchKey(index))) {
          report("record \(reference.number) has wrong separators between its children")
        }
        try check(node.child(index), level: level - 1, upper: next)
        continue
      }
      let key = [UInt8](node.leafKey(index))
      if let previous, !isBefore(previous, key) { report("record \(reference.number) has keys out of order") }
      if let upper, !isBefore(key, upper) { report("record \(reference.number) has keys outside its range") }
      previous = key
      entries += 1
      if case .large(let value, let count) = node.value(index) { try check(large: value, count) }
    }
  }

  private func check(large reference: Reference, _ count: Int) throws {
    large += 1
    records += ChunkLayout(count: count, payloadBytes: payloadBytes).count
    do { _ = try reader.large(reference, count: count) } catch let error as StorageError
      where error.code == .damaged
    { report(error.message) }
  }

  private func isBefore(_ left: [UInt8], _ right: [UInt8]) -> Bool { left.lexicographicallyPrecedes(right) }
}
