import SQLiteLibrary

/// The revisions of one document in the source, and which of them are carried over. The arrays are reused for
/// all documents.
struct SourceRevisions {
  struct Row {
    var sequence: Int
    /// The place among the revisions of the document in the source.
    var place: Int
    /// The parent as the source has it, its sequence or its place; nil if there is none.
    var reference: Int?
    /// The row of the parent as the source has it, `none` or `missing`.
    var statedParent = Row.none
    /// The range of the ID in `ids`.
    var id: Range<Int>
    /// The generation; 0 if the ID or the sequence is invalid.
    var generation: UInt64
    var isCurrent: Bool
    var isDeleted: Bool
    var hasBody: Bool

    /// The row of the parent, or -1. Only links that make sense are followed.
    var parent = -1
    var isCarried = false
    var isLeaf = false
    /// The number among the revisions that are carried over, or -1.
    var number = -1
    /// Whether this is a leaf that can't be carried over.
    var isRefused = false

    static let none = -1
    static let missing = -2
  }

  private(set) var ids: [UInt8] = []
  var rows: ContiguousArray<Row> = []

  mutating func removeAll() {
    ids.removeAll(keepingCapacity: true)
    rows.removeAll(keepingCapacity: true)
  }

  /// Adds a revision. `parent` is the sequence of the parent (`linkBySequence`) or its place (`sortAndLink`).
  mutating func add(
    sequence: Int, parent: Int?, id: UnsafeRawBufferPointer, isCurrent: Bool, isDeleted: Bool, hasBody: Bool
  ) {
    let start = ids.count
    ids.append(contentsOf: id)
    rows.append(
      Row(
        sequence: sequence, place: rows.count, reference: parent, id: start..<ids.count,
        generation: sequence > 0 ? Self.generation(id) : 0,
        isCurrent: isCurrent, isDeleted: isDeleted, hasBody: hasBody))
  }

  /// Finds the parents by their sequences. The rows have been added newest first.
  mutating func linkBySequence() {
    for index in rows.indices {
      // 0 is no sequence.
      guard let sequence = rows[index].reference, sequence != 0 else { continue }
      rows[index].statedParent = find(sequence) ?? Row.missing
    }
  }

  /// Sorts the rows newest first, of those with one sequence the one with a body first, and finds the parents by
  /// their places.
  mutating func sortAndLink() {
    func precedes(_ left: Row, _ right: Row) -> Bool {
      if left.sequence != right.sequence { return left.sequence > right.sequence }
      let (hasLeft, hasRight) = (left.hasBody || left.isCurrent, right.hasBody || right.isCurrent)
      return hasLeft != hasRight ? hasLeft : left.place < right.place
    }
    if rows.indices.dropFirst().contains(where: { !precedes(rows[$0 - 1], rows[$0]) }) {
      rows.sort(by: precedes)
    }
    if rows.indices.contains(where: { rows[$0].place != $0 }) {
      var rowOf = ContiguousArray(repeating: Row.missing, count: rows.count)
      for index in rows.indices { rowOf[rows[index].place] = index }
      link { rowOf[$0] }
    } else {
      link { $0 }
    }
  }

  private mutating func link(_ rowOf: (_ place: Int) -> Int) {
    for index in rows.indices {
      guard let place = rows[index].reference else { continue }
      rows[index].statedParent = rows.indices.contains(place) ? rowOf(place) : Row.missing
    }
  }

  func id(_ row: Int) -> String { String(decoding: ids[rows[row].id], as: UTF8.self) }

  @inline(__always)
  func withID<Result>(_ row: Int, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    let range = rows[row].id
    return try ids.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[range])) }
  }

  /// Returns the generation of an ID that can be stored (`RevisionID`), otherwise 0.
  private static func generation(_ id: UnsafeRawBufferPointer) -> UInt64 {
    var generation: UInt64 = 0
    var index = 0
    while index < id.count, id[index] != UInt8(ascii: "-") {
      let digit = id[index] &- 0x30
      guard digit < 10, index < 18, index > 0 || digit > 0 else { return 0 }
      generation = generation * 10 + UInt64(digit)
      index += 1
    }
    let suffix = id.count - index - 1
    guard index > 0, suffix > 0, suffix <= 250 else { return 0 }
    while index + 1 < id.count {
      index += 1
      guard id[index] > 0x20, id[index] < 0x7F else { return 0 }
    }
    return generation
  }

  // MARK: Selection

  /// Links parents and chooses what is carried over: leaves and their ancestors. Leaves with `isRefused` are
  /// left out. `report` is called for each fault.
  ///
  /// The leaves are the revisions that 1.x marks as current. If none is marked, they are the revisions
  /// without descendants. A replaced revision without a descendant leaf isn't carried over: it couldn't be
  /// seen in 1.x either.
  mutating func choose(_ report: (Int, UpgradeIssue.Kind, String) throws -> Void) rethrows {
    if rows.count == 1 {
      try chooseOnly(report)
    } else {
      try link(report)
      try mark(report)
    }
  }

  private mutating func chooseOnly(_ report: (Int, UpgradeIssue.Kind, String) throws -> Void) rethrows {
    let row = rows[0]
    guard row.generation > 0 else { return try report(0, .invalidRevisionID, Self.invalidID) }
    guard !row.isRefused else { return }
    if row.statedParent != Row.none { try report(0, .brokenParent, "its parent doesn't exist") }
    rows[0].isCarried = true
    rows[0].isLeaf = true
    rows[0].number = 0
  }

  private static let invalidID = "the revision ID or the sequence is invalid"

  private mutating func link(_ report: (Int, UpgradeIssue.Kind, String) throws -> Void) rethrows {
    for index in rows.indices {
      rows[index].parent = -1
      rows[index].isCarried = false
      rows[index].isLeaf = false
      rows[index].number = -1
    }
    let doubles = duplicates()
    for index in rows.indices {
      guard rows[index].generation > 0 else {
        try report(index, .invalidRevisionID, Self.invalidID)
        continue
      }
      if doubles.contains(index) {
        try report(index, .invalidRevisionID, "another revision of the document has this ID")
        rows[index].generation = 0
      }
    }
    for index in rows.indices where rows[index].generation > 0 {
      let parent = rows[index].statedParent
      guard parent != Row.none else { continue }
      guard parent >= 0 else {
        try report(index, .brokenParent, "its parent doesn't exist")
        continue
      }
      guard rows[parent].generation > 0 else {
        try report(index, .brokenParent, "its parent can't be carried over")
        continue
      }
      guard rows[parent].generation < rows[index].generation else {
        try report(index, .brokenParent, "its parent, \(id(parent)), isn't older")
        continue
      }
      rows[index].parent = parent
    }
  }

  private mutating func mark(_ report: (Int, UpgradeIssue.Kind, String) throws -> Void) rethrows {
    if rows.contains(where: { $0.isCurrent }) {
      for index in rows.indices where rows[index].isCurrent { carry(index) }
    } else {
      var isParent = ContiguousArray(repeating: false, count: rows.count)
      for row in rows where row.parent >= 0 { isParent[row.parent] = true }
      for index in rows.indices where !isParent[index] { carry(index) }
    }
    for index in rows.indices where rows[index].isCarried { rows[index].isLeaf = true }
    for row in rows where row.isCarried && row.parent >= 0 { rows[row.parent].isLeaf = false }
    var number = 0
    for index in rows.indices {
      if rows[index].isCarried {
        rows[index].number = number
        number += 1
      } else if rows[index].generation > 0, !rows[index].isRefused {
        try report(
          index, .detachedRevision,
          "it was replaced, but none of the leaves that are carried over descends from it")
      }
    }
  }

  private mutating func carry(_ leaf: Int) {
    var index = leaf
    guard rows[index].generation > 0, !rows[index].isRefused else { return }
    // Generations decrease, so the loop ends.
    while index >= 0, !rows[index].isCarried {
      rows[index].isCarried = true
      index = rows[index].parent
    }
  }

  /// Returns the first row of a sequence. Sequences descend. If several rows have it, the one with a body is
  /// first.
  func find(_ sequence: Int) -> Int? {
    var low = 0
    var high = rows.count
    while low < high {
      let middle = (low + high) / 2
      if rows[middle].sequence > sequence { low = middle + 1 } else { high = middle }
    }
    return low < rows.count && rows[low].sequence == sequence ? low : nil
  }

  /// Returns the rows that have the same ID as an earlier row.
  private func duplicates() -> Set<Int> {
    var found: Set<Int> = []
    ids.withUnsafeBytes { bytes in
      func isSame(_ a: Int, _ b: Int) -> Bool {
        rows[a].id.count == rows[b].id.count && bytes[rows[a].id].elementsEqual(bytes[rows[b].id])
      }
      guard rows.count > 64 else {
        for index in rows.indices where rows[index].generation > 0 {
          for other in 0..<index
          where rows[other].generation == rows[index].generation && isSame(other, index) {
            found.insert(index)
          }
        }
        return
      }
      var first: Set<[UInt8]> = []
      for index in rows.indices where !first.insert(Array(bytes[rows[index].id])).inserted {
        found.insert(index)
      }
    }
    return found
  }
}
