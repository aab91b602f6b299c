import Bytes

/// The documents that a replicator couldn't replicate. What a later connection has mended doesn't count.
///
/// It has to be told all statuses and documents, in the order in which the replicator calls its handlers. Not for concurrent
/// use.
package struct ReplicationFailures: Sendable {
  /// The most undone documents that are named. The others are counted.
  static let maximumNamed = 10_000

  private struct Key: Hashable {
    let id: ByteString
    let revision: ByteString
    let isPush: Bool

    init(_ document: ReplicatedDocument) {
      id = ByteString(document.id)
      revision = ByteString(document.revisionID)
      isPush = document.isPush
    }
  }

  private var connection = 0
  /// Those that count as done.
  private var final = 0
  /// Those that are tried again, with the number of the connection that has tried them last.
  private var waiting: [Key: (document: ReplicatedDocument, connection: Int)] = [:]
  private var unnamed = (earlier: 0, present: 0)

  package init() {}

  /// How many documents couldn't be replicated, as far as is known.
  package var count: Int { final + waiting.count + unnamed.earlier + unnamed.present }

  /// Those that the next run tries again, at most 10,000, in the order of their IDs.
  package var undone: [ReplicatedDocument] {
    waiting.values.map(\.document).sorted { ByteString($0.id) < ByteString($1.id) }
  }

  /// Takes note of documents. Returns those that have failed for good.
  package mutating func add(_ documents: [ReplicatedDocument]) -> [ReplicatedDocument] {
    var failed: [ReplicatedDocument] = []
    for document in documents {
      guard document.error != nil else {
        if !waiting.isEmpty { waiting[Key(document)] = nil }
        continue
      }
      let key = Key(document)
      if !document.isUndone {
        final += 1
        waiting[key] = nil
        failed.append(document)
      } else if waiting.count < Self.maximumNamed || waiting[key] != nil {
        waiting[key] = (document, connection)
      } else {
        unnamed.present += 1
      }
    }
    return failed
  }

  /// Takes note of a status.
  package mutating func note(_ status: ReplicatorStatus) {
    switch status.activity {
    case .connecting:
      connection += 1
      unnamed = (unnamed.earlier + unnamed.present, 0)
    // The connection has come to the end of all changes: what it didn't name again isn't undone any more.
    case .idle: settle()
    case .offline, .busy, .stopped: break
    }
  }

  /// A run that isn't continuous has come to its end by itself.
  package mutating func settle() {
    unnamed.earlier = 0
    guard !waiting.isEmpty else { return }
    waiting = waiting.filter { $0.value.connection == connection }
  }
}
