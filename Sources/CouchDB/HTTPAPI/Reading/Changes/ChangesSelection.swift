import Documents
import Fleece
import Touchstone
import Views

/// Tells which leaves of documents a selector chooses, in place. Used on one thread, while the snapshot lasts.
struct ChangesSelection {
  /// The fields of documents in the answer; nil for all.
  let fields: [MangoField]?
  private let matcher: MangoMatcher
  private let snapshot: DocumentSnapshot
  private let sharedKeys: SharedKeys
  private let listsAllLeaves: Bool
  private let checkWanted: () throws -> Void

  /// `checkWanted` throws when nobody wants the changes any more.
  init(
    _ selector: MangoSelector, _ fields: [MangoField]?, _ snapshot: DocumentSnapshot, listsAllLeaves: Bool,
    _ checkWanted: @escaping () throws -> Void
  ) throws {
    self.fields = fields
    self.snapshot = snapshot
    self.listsAllLeaves = listsAllLeaves
    self.checkWanted = checkWanted
    sharedKeys = try snapshot.sharedKeys
    matcher = try MangoMatcher(selector)
    matcher.isCancelled = { (try? checkWanted()) == nil }
  }

  /// The IDs of the chosen leaves, the current revision first. Others are only looked at if all leaves are listed.
  func revisions(of document: DocumentView) throws -> [String] {
    var chosen: [String] = []
    if try passes(document) { chosen.append(try document.revisionID().description) }
    guard listsAllLeaves else { return chosen }
    try snapshot.forEachOtherLeaf(of: document) { revision, isDeleted, body in
      let passes: Bool
      if matcher.needsBodyAlone {
        passes = try matcher.matches(id: document.idBytes, body, sharedKeys)
      } else {
        passes = try matches(
          ScriptedRevision(
            id: document.idBytes, revision, isDeleted: isDeleted, body, sharedKeys: sharedKeys))
      }
      try checkMatch()
      if passes { chosen.append(revision.description) }
    }
    return chosen
  }

  private func passes(_ document: DocumentView) throws -> Bool {
    let passes: Bool
    if matcher.needsBodyAlone {
      passes = try matcher.matches(id: document.idBytes, document.body, sharedKeys)
    } else {
      var conflicts: [RevisionID] = []
      // As in CouchDB, the conflicts are seen unless each of them is asked for.
      if !listsAllLeaves {
        try snapshot.forEachOtherLeaf(of: document) { revision, isDeleted, _ in
          if !isDeleted { conflicts.append(revision) }
        }
      }
      passes = try matches(ScriptedRevision(document, conflicts: conflicts, sharedKeys: sharedKeys))
    }
    try checkMatch()
    return passes
  }

  private func matches(_ revision: ScriptedRevision) throws -> Bool {
    matcher.matches(try revision.json.withUnsafeBytes { try JSONValue(json: $0) })
  }

  /// What ended because nobody waits means nothing.
  private func checkMatch() throws {
    if matcher.wasCancelled { try checkWanted() }
  }
}
