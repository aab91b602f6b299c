/// A selection of documents to enumerate, and their order.
public struct AllDocuments: Sendable {
  /// The kinds of documents to enumerate.
  public enum Mode: Sendable, CaseIterable {
    /// Live documents.
    case live
    /// Live documents and tombstones.
    case includingDeleted
    /// Documents with more than one live leaf.
    case onlyConflicts
  }

  /// The kinds of documents to enumerate.
  public var mode: Mode
  /// The first ID in the order of enumeration: the highest ID if the order is descending.
  public var startID: String?
  /// The last ID in the order of enumeration.
  public var endID: String?
  /// Whether a document with the ID `startID` is included.
  public var includesStart: Bool
  /// Whether a document with the ID `endID` is included.
  public var includesEnd: Bool
  /// Enumerates only the documents with these IDs, in this order. `startID` and `endID` are ignored then. IDs
  /// without a document of the selected kind are left out.
  public var keys: [String]?
  /// Enumerates from the highest ID to the lowest (with `keys`: from the last to the first).
  public var isDescending: Bool
  /// The number of documents to skip at the beginning.
  public var skip: Int
  /// The maximum number of documents after the skipped ones.
  public var limit: Int

  /// Creates a selection. By default it is all live documents, ordered by the bytes of their IDs.
  public init(
    _ mode: Mode = .live, from startID: String? = nil, to endID: String? = nil, includesStart: Bool = true,
    includesEnd: Bool = true, keys: [String]? = nil, isDescending: Bool = false, skip: Int = 0,
    limit: Int = .max
  ) {
    self.mode = mode
    self.startID = startID
    self.endID = endID
    self.includesStart = includesStart
    self.includesEnd = includesEnd
    self.keys = keys
    self.isDescending = isDescending
    self.skip = skip
    self.limit = limit
  }
}
