/// Which documents to enumerate, and in which order.
public struct AllDocuments: Sendable {
  /// What kinds of documents there are to be.
  public enum Mode: Sendable, CaseIterable {
    /// Live documents.
    case live
    /// Live documents and tombstones.
    case includingDeleted
    /// Documents with more than one live leaf.
    case onlyConflicts
  }

  /// What kinds of documents.
  public var mode: Mode
  /// The ID to begin with, by the order of enumeration: the highest one when it is descending.
  public var startID: String?
  /// The ID to end with.
  public var endID: String?
  /// Whether the start itself is in, when there is such a document.
  public var includesStart: Bool
  /// Whether the end itself is in, when there is such a document.
  public var includesEnd: Bool
  /// Only the documents of these IDs, in this order; start and end don't count then. An ID without such a document
  /// is left out.
  public var keys: [String]?
  /// From the highest ID to the lowest (with `keys`: from the last to the first).
  public var isDescending: Bool
  /// How many to leave out at the beginning.
  public var skip: Int
  /// How many at most after those.
  public var limit: Int

  /// By default all live documents in the order of their IDs (by bytes).
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
