import Blobs
import Bytes
import Fleece

/// A body on its way between databases.
package enum SyncBody: Sendable {
  /// A JSON object in UTF-8.
  case json([UInt8])
  /// A Fleece object, with the shared keys of the database that it comes from.
  case fleece([UInt8], SharedKeys)

  /// The size in bytes, for limits.
  package var byteCount: Int {
    switch self {
    case .json(let bytes): bytes.count
    case .fleece(let bytes, _): bytes.count
    }
  }

  /// Whether the body may name a blob. It names none if this is false.
  package var mightNameBlob: Bool {
    switch self {
    case .json(let bytes): bytes.withUnsafeBytes { mayNameBlob($0) }
    case .fleece(let bytes, _): bytes.withUnsafeBytes { mayNameBlob($0) }
    }
  }

  /// Returns the body as JSON in UTF-8. Fleece has its keys in the order of their bytes if it is `canonical`, and in any
  /// order otherwise. Throws `damaged` for Fleece that can't be read.
  package func json(canonical: Bool = true) throws -> [UInt8] {
    switch self {
    case .json(let bytes): return bytes
    case .fleece(let bytes, let sharedKeys):
      var json: [UInt8] = []
      try bytes.withUnsafeBytes { bytes in
        guard let root = FleeceReader.root(of: bytes) else { throw DocumentRecord.damaged }
        try undamaged { () throws(FleeceError) in
          try root.writeJSON(sharedKeys: sharedKeys, canonical: canonical, into: &json)
        }
      }
      return json
    }
  }

  /// Returns the body as a value. Throws `invalidBody` for JSON and `damaged` for Fleece that can't be read.
  package func value() throws -> JSONValue {
    switch self {
    case .json(let bytes): return try DocumentBody.json(bytes).value()
    case .fleece(let bytes, let sharedKeys):
      return try bytes.withUnsafeBytes { bytes in
        guard let root = FleeceReader.root(of: bytes) else { throw DocumentRecord.damaged }
        return try undamaged { () throws(FleeceError) in try root.jsonValue(sharedKeys: sharedKeys) }
      }
    }
  }
}

/// A revision on its way between databases, with its history.
package struct SyncRevision: Sendable {
  /// The document's ID, up to 480 bytes.
  package var id: String
  /// The revision's own ID and those of its ancestors, newest first. It isn't empty.
  package var history: [String]
  /// Whether it is a tombstone.
  package var isDeleted: Bool
  /// Its body.
  package var body: SyncBody
  /// The revision that it takes the place of if that is current, although it doesn't descend from it: a conflict between
  /// both was resolved where this one comes from.
  package var replaces: String?

  /// Creates a revision. See the properties.
  package init(id: String, history: [String], isDeleted: Bool, body: SyncBody) {
    self.id = id
    self.history = history
    self.isDeleted = isDeleted
    self.body = body
  }

  /// The revision's own ID; empty if the history is.
  package var revision: String { history.first ?? "" }
}

/// A change as sync reads it, with what it needs to offer the document to a peer.
package struct SyncChange: Sendable {
  /// The sequence of the document's latest change.
  package let sequence: UInt64
  /// The document's ID.
  package let id: String
  /// The ID of the current revision.
  package let revision: String
  /// Whether the current revision is a tombstone.
  package let isDeleted: Bool
  /// The revision that is known to be current on the peer, nil if none is known.
  package var known: String?
  /// The size of the body in bytes, as it is stored.
  package let bodyBytes: Int
  /// The other leaves, if they were asked for: branches that lost, and tombstones.
  package var otherLeaves: [SyncLeaf] = []
}

/// A leaf of a document.
package struct SyncLeaf: Sendable, Equatable {
  /// The revision's ID.
  package let revision: String
  /// Whether it is a tombstone.
  package let isDeleted: Bool
}

/// What became of a revision that sync wanted to read.
package enum SyncReading: Sendable {
  /// The revision with its history and its body.
  case revision(SyncRevision)
  /// The document exists, but this revision's body isn't stored any more.
  case obsolete
  /// There is no such document.
  case missing
}

/// A revision that sync wants to read.
package struct SyncWanted: Sendable {
  /// The document's ID.
  package let id: String
  /// The revision's ID.
  package let revision: String
  /// Revisions that the peer has. The history ends with the first of them, or has it at least (`isWhole`).
  package let ancestors: [String]
  /// The most ancestors in the history.
  package let maximumHistory: Int
  /// The revision that is known to be current on the peer. Where it was an ancestor that has been pruned here, the history
  /// ends with it all the same, after a gap.
  package let known: String?
  /// Whether the history goes on behind what the peer has, as far as the maximum.
  package let isWhole: Bool

  /// Creates a request. See the properties.
  package init(
    id: String, revision: String, ancestors: [String], maximumHistory: Int, known: String? = nil,
    isWhole: Bool = false
  ) {
    self.id = id
    self.revision = revision
    self.ancestors = ancestors
    self.maximumHistory = maximumHistory
    self.known = known
    self.isWhole = isWhole
  }
}

/// A blob that a body names and that isn't stored.
package struct MissingBlob: Sendable, Hashable {
  /// The digest.
  package let digest: BlobDigest
  /// The length of its stored bytes, if the body says it.
  package let length: UInt64?
  /// The media type, if the body says it.
  package let contentType: String?

  /// Creates one. See the properties.
  package init(_ digest: BlobDigest, length: UInt64? = nil, contentType: String? = nil) {
    self.digest = digest
    self.length = length
    self.contentType = contentType
  }
}

/// What a database knows of a revision that a peer offers.
package enum SyncKnowledge: Sendable, Equatable {
  /// What a known revision is to the current one.
  package enum Relation: Sendable {
    /// It is the current one.
    case current
    /// The current one descends from it.
    case ancestor
    /// The current one doesn't descend from it: it lost here.
    case aside
  }

  /// It is stored, or was.
  case known(Relation)
  /// It isn't. These are up to ten stored revisions of lower generations with bodies, newest first, which may be its
  /// ancestors.
  case missing(possibleAncestors: [String])
  /// The document's ID or the revision's can't be stored.
  case invalid
}

/// What applying a revision did.
package enum SyncOutcome: Sendable {
  /// It was added.
  case added
  /// It was known already.
  case known
  /// It doesn't descend from the current revision, and nothing has changed.
  case conflict
  /// It was refused, and nothing has changed.
  case refused(any Error)
}

/// What happens to a revision that doesn't descend from the current one.
package enum SyncConflictRule: Sendable {
  /// It is added as another branch.
  case allow
  /// Nothing changes, and the outcome is `conflict`.
  case report
  /// As `report`, unless the current revision is a tombstone: then it is added.
  case reportUnlessDeleted
  /// As `report`, unless the document is deleted and the revision makes it anew, with a history from the first generation of which
  /// nothing is known, or goes on from another tombstone.
  case reportUnlessNew
}

/// The current revision of a document.
package struct CurrentRevision: Sendable {
  package let revision: String
  /// Whether it is a tombstone.
  package let isDeleted: Bool
  /// Whether the document has more leaves, tombstones among them.
  package let hasOtherLeaves: Bool
}
