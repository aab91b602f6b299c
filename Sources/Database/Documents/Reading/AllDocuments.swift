/// A selection of documents to enumerate, and their order.
public struct AllDocuments: Sendable {
  /// The kinds of documents to enumerate.
  public enum Mode: Sendable, CaseIterable {
    /// Live documents.
    case live
    /// Live documents and tombstones.
    case includingDeleted
    /// Live documents. Their rows have the conflicting revisions (`AllDocumentsRow.conflictingRevisions`).
    case showConflicts
    /// Documents with more than one live leaf. Their rows have the conflicting revisions.
    case onlyConflicts
  }

  /// The orders of enumeration.
  public enum Order: Sendable, CaseIterable {
    /// By the bytes of the IDs.
    case id
    /// By the sequences of the documents: in the order of their last changes.
    case sequence
  }

  /// The kinds of documents to enumerate.
  public var mode: Mode
  /// The order of the documents. Ignored with `keys`.
  public var order: Order
  /// The first ID in the order of IDs: the highest ID if the order is descending. In the order of sequences, `startID` and
  /// `endID` say just as well which documents are selected.
  public var startID: String?
  /// The last ID in the order of IDs.
  public var endID: String?
  /// Whether a document with the ID `startID` is included.
  public var includesStart: Bool
  /// Whether a document with the ID `endID` is included.
  public var includesEnd: Bool
  /// Only documents whose IDs begin with this text, compared by bytes. Nil or empty for all.
  public var prefix: String?
  /// Enumerates only the documents with these IDs, in this order. `startID`, `endID` and `prefix` are ignored
  /// then. `enumerate` leaves out IDs without a document of the selected kind, also invalid ones.
  /// `enumerateRows` has a row for each.
  public var keys: [String]?
  /// Enumerates from the highest ID or sequence to the lowest (with `keys`: from the last to the first).
  public var isDescending: Bool
  /// The number of documents to skip at the beginning.
  public var skip: Int
  /// The maximum number of documents after the skipped ones.
  public var limit: Int

  /// Creates a selection. By default it is all live documents, ordered by the bytes of their IDs.
  public init(
    _ mode: Mode = .live, from startID: String? = nil, to endID: String? = nil, includesStart: Bool = true,
    includesEnd: Bool = true, prefix: String? = nil, keys: [String]? = nil, by order: Order = .id,
    isDescending: Bool = false, skip: Int = 0, limit: Int = .max
  ) {
    self.mode = mode
    self.order = order
    self.startID = startID
    self.endID = endID
    self.includesStart = includesStart
    self.includesEnd = includesEnd
    self.prefix = prefix
    self.keys = keys
    self.isDescending = isDescending
    self.skip = skip
    self.limit = limit
  }
}
