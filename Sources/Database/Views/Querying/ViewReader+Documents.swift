import Bytes
import Storage

// Reductions of some documents' rows. Partial reductions are of all documents, so each row is read.

extension ViewReader {
  /// Does what `forEachGroup` does, for the rows of documents whose IDs begin with `prefix`. A group without such rows isn't there.
  func forEachGroup(
    _ selection: ViewSelection, _ grouping: ViewSelection.Grouping, of prefix: [UInt8],
    _ body: (_ key: [UInt8], _ result: Result<[UInt8], any Error>) throws -> Bool
  ) throws {
    var skip = selection.skip
    var left = selection.limit ?? .max
    let ranges = try selection.ranges(encoder)
    let level: Int
    switch grouping {
    case .all:
      guard skip == 0, let result = try reduce(ranges, of: prefix)?.result else { return }
      _ = try body(Array("null".utf8), result)
      return
    case .level(let items): level = items
    case .keys: level = .max
    }
    // Without a reducer, groups are only told apart.
    let counting = tables.tree(nil, readsPartials: false, in: snapshot)
    for range in ranges {
      let groups = try counting.groups(
        range, level: level, descending: selection.isDescending, in: transaction)
      while let group = try groups.next() {
        guard let (firstKey, result) = try reduce([group.rows], of: prefix) else { continue }
        if skip > 0 {
          skip -= 1
          continue
        }
        let key = level == .max ? firstKey : KeyText.firstItems(level, of: firstKey.span.bytes)
        left -= 1
        guard try body(key, result), left > 0 else { return }
      }
    }
  }

  /// The reduction of the rows of some documents, and the key of the first one; nil if there are none.
  private func reduce(_ ranges: [KeyRange], of prefix: [UInt8]) throws -> (
    key: [UInt8], result: Result<[UInt8], any Error>
  )? {
    let reduction = try reducer?.makeReduction()
    var first: [UInt8]?
    do {
      for range in ranges {
        try tables.rows.scan(range, order: .ascending, in: transaction) { key, value in
          let row = try StoredRow(key, value)
          guard row.isOfDocument(prefix) else { return true }
          if first == nil { first = [UInt8](copying: row.keyJSON) }
          try reduction?.add(row, expanding: tree.expanding)
          return true
        }
      }
      guard let first else { return nil }
      var json: [UInt8] = []
      try reduction?.result(to: &json)
      return (first, .success(json))
    } catch let error as ViewReduceError {
      return (first ?? Array("null".utf8), .failure(error))
    }
  }
}

extension StoredRow {
  /// Whether the ID of its document begins with these bytes.
  borrowing func isOfDocument(_ prefix: [UInt8]) -> Bool {
    var id: [UInt8] = []
    StoredRow.unescape(escapedID, into: &id)
    return id.starts(with: prefix)
  }
}
