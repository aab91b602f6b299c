/// What a fuzz target does with a revision tree.
package enum RevisionTreeFuzzing {
  /// Reads a tree, and checks that what it says lies within it.
  package static func test(_ body: UnsafeRawBufferPointer) {
    var revisions = StoredRevisions()
    guard revisions.read(body, sequence: 1) == nil else { return }
    var text: [UInt8] = []
    for revision in revisions.list {
      precondition(revision.parent >= -1 && revision.parent < revisions.list.count, "a parent")
      precondition(revision.id.upperBound <= body.count && revision.body.upperBound <= body.count, "a range")
      StoredRevisions.append(UnsafeRawBufferPointer(rebasing: body[revision.id]), to: &text)
    }
  }
}
