import Fleece

extension DocumentSnapshot {
  /// Calls `body` with the bodies of at most `limit` live documents, until it returns false. Of more, they are spread evenly over the order
  /// of the last changes.
  package func forEachSampledBody(upTo limit: Int, _ body: (JSONValue) throws -> Bool) throws {
    guard try documentCount > limit else {
      return try forEachDocument { try body(try $0.document().value()) }
    }
    let stride = Double(try lastSequence) / Double(limit)
    var last: UInt64 = 0
    var goesOn = true
    for part in 0..<limit where goesOn {
      let end = UInt64(stride * Double(part + 1))
      try forEachChange(since: max(last, UInt64(stride * Double(part)))) { change in
        guard change.sequence <= end || part == limit - 1 else { return false }
        last = change.sequence
        guard !change.isDeleted, let document = try document(change.documentID) else { return true }
        goesOn = try body(try document.value())
        return false
      }
    }
  }
}
