import Bytes
import Fleece

/// The documents whose change the other side has refused as a conflict, and that nothing has followed yet. A checkpoint names
/// them, because it passes their sequences: each run proposes them again until they are resolved. So a conflict is told by each
/// run, and the other changes aren't read again for its sake.
struct OpenConflicts: Sendable, Equatable {
  /// The most documents, and the most bytes of their IDs. A checkpoint doesn't pass the sequences of others.
  static let maximumCount = 1_000
  static let maximumBytes = 64 << 10

  private var documents: Set<ByteString> = []
  private var bytes = 0

  init() {}

  /// Reads what a checkpoint holds.
  init(_ value: JSONValue?) {
    for id in value?.array ?? [] { if let id = id.string { insert(id) } }
  }

  var isEmpty: Bool { documents.isEmpty }
  /// The documents, in the order of their IDs.
  var ids: [String] { documents.sorted().map(\.string) }

  /// Adds a document. Returns false if there is no room.
  @discardableResult
  mutating func insert(_ id: String) -> Bool {
    let key = ByteString(id)
    if documents.contains(key) { return true }
    guard documents.count < Self.maximumCount, bytes + key.bytes.count <= Self.maximumBytes else {
      return false
    }
    documents.insert(key)
    bytes += key.bytes.count
    return true
  }

  mutating func remove(_ id: String) {
    guard !documents.isEmpty, let removed = documents.remove(ByteString(id)) else { return }
    bytes -= removed.bytes.count
  }

  func contains(_ id: String) -> Bool { !documents.isEmpty && documents.contains(ByteString(id)) }

  var json: String {
    (try? JSONValue.array(ids.map { .string($0) }).canonicalJSON()) ?? "[]"
  }
}

/// The documents whose conflicts a start of a replicator has told. It doesn't ask for them again.
struct ToldConflicts: Sendable {
  private static let maximumCount = 100_000
  private var documents: Set<ByteString> = []

  mutating func insert(_ id: String) {
    if documents.count < Self.maximumCount { documents.insert(ByteString(id)) }
  }

  /// Whether a document was told, or may have been: so many are remembered, and no more.
  func contains(_ id: String) -> Bool {
    documents.count >= Self.maximumCount || documents.contains(ByteString(id))
  }
}
