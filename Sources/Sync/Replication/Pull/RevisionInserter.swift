import Blobs
import Documents
import Fleece
import Storage
import Touchstone

/// Stores revisions that arrive, on a thread of its own: fetches their blobs first, stores many in one transaction, and
/// resolves conflicts, or reports them. A revision whose parent isn't here is settled by `DocumentWriter.apply`
/// (`Documents/Sync/DocumentWriter+ForeignHistory.swift`).
package final class RevisionInserter: @unchecked Sendable {
  /// What became of a revision that wasn't refused.
  package enum Inserted: Sendable {
    /// It was left out by the filter, or known.
    case nothing
    case added
    /// It was added, and so was what its conflict was resolved to.
    case resolved
  }

  /// The result of a revision.
  package typealias InsertResult = Result<Inserted, ReplicationError>

  /// A part of revisions with their results.
  private final class Part: Sendable {
    let revisions: [IncomingRevision]
    let bytes: Int
    private let done: @Sendable ([InsertResult]) -> Void
    private let state: Lock<(results: [InsertResult?], left: Int)>

    init(_ revisions: [IncomingRevision], _ done: @escaping @Sendable ([InsertResult]) -> Void) {
      self.revisions = revisions
      bytes = revisions.reduce(0) { $0 + $1.revision.body.byteCount }
      self.done = done
      state = Lock(([InsertResult?](repeating: nil, count: revisions.count), revisions.count))
    }

    func end(_ index: Int, _ result: InsertResult) {
      let all = state.withLock { state -> [InsertResult]? in
        guard state.results[index] == nil else { return nil }
        state.results[index] = result
        state.left -= 1
        return state.left == 0 ? state.results.compactMap { $0 } : nil
      }
      if let all { done(all) }
    }
  }

  /// A revision of a part.
  private struct Item: Sendable {
    let part: Part
    let index: Int
    /// How often blobs were fetched for it.
    var fetches = 0
    var incoming: IncomingRevision { part.revisions[index] }
    var revision: SyncRevision { incoming.revision }
    func end(_ result: InsertResult) { part.end(index, result) }
  }

  /// The most revisions of a transaction, and about the most bytes.
  static let revisionsTogether = 2_000
  static let bytesTogether = 8 << 20
  /// The most blobs that are fetched at a time.
  static let fetchesInFlight = 8
  /// How often a conflict is resolved again because the document has changed meanwhile, and blobs are fetched again because
  /// they were removed.
  static let attempts = 20

  private let database: Database
  private let filter: ReplicationFilter?
  /// Resolves conflicts with what is the current revision on this remote; nil: they are reported.
  private let resolver: (resolve: ReplicationConflictResolver, remote: UInt32)?
  /// The order in which a pull of current revisions has asked for them.
  private let order: PullOrder?
  /// Whether a pull purges documents that the user can't read any more; nil if this isn't a pull.
  private let purgesOnLostAccess: Bool?
  private let fetchBlob: FetchBlob
  private let insert: Insert
  private let lane: JobLane
  private let waiting = Lock<[Part]>([])

  // Used on the worker's thread only.
  private var fetches: [(blob: MissingBlob, documentID: String)] = []
  private var waiters: [BlobDigest: [@Sendable (ReplicationError?) -> Void]] = [:]
  private var fetching = 0

  /// Fetches a blob from where the revisions come from, as `Peer.fetchBlob`.
  package typealias FetchBlob =
    @Sendable (MissingBlob, _ documentID: String, BlobWriter, @escaping Completion<Void>) -> Void
  /// Stores revisions in one transaction.
  package typealias Insert = @Sendable ([IncomingRevision]) throws -> [SyncOutcome]

  /// Stores what a replicator pulls.
  init(_ configuration: ReplicatorConfiguration, _ peer: any Peer, remote: UInt32, _ order: PullOrder) {
    // Where all leaves go both ways, another branch of the peer is a conflict there too.
    self.order = peer.exchangesLeaves ? nil : order
    purgesOnLostAccess = configuration.purgesOnLostAccess
    lane = JobLane()
    database = configuration.database
    filter = configuration.pullFilter
    resolver = (configuration.conflictResolver, remote)
    fetchBlob = { [weak peer] blob, id, writer, done in
      guard let peer else { return done(.failure(.cancelled)) }
      peer.fetchBlob(blob, of: id, into: writer, done)
    }
    let rule = LeafRule(configuration, peer)
    insert = { [database] revisions in
      try database.replicatingChanges { try rule.apply(revisions.map(\.revision), to: $0, remote: remote) }
    }
  }

  /// Stores what a replicator of the other side pushes. Conflicts are refused with HTTP 409.
  package init(_ responder: PassiveResponder, on pool: Workers? = nil, fetchBlob: @escaping FetchBlob) {
    order = nil
    purgesOnLostAccess = nil
    lane = JobLane(on: pool)
    database = responder.database
    filter = nil
    resolver = nil
    self.fetchBlob = fetchBlob
    insert = { try responder.apply($0.map { ($0.revision, $0.allowsNoConflict) }) }
  }

  package func store(_ revisions: [IncomingRevision], _ done: @escaping @Sendable ([InsertResult]) -> Void) {
    guard !revisions.isEmpty else { return done([]) }
    waiting.withLock { $0.append(Part(revisions, done)) }
    lane.enqueue { [self] in storeWaiting() }
  }

  private func storeWaiting() {
    let parts = waiting.withLock { waiting in
      var (count, bytes, parts) = (0, 0, 0)
      while parts < waiting.count, count < Self.revisionsTogether, bytes < Self.bytesTogether {
        count += waiting[parts].revisions.count
        bytes += waiting[parts].bytes
        parts += 1
      }
      return waiting.takeFirst(parts)
    }
    var ready: [Item] = []
    for part in parts {
      for index in part.revisions.indices {
        let item = Item(part: part, index: index)
        do {
          if item.incoming.isAccessLost, let purgesOnLostAccess {
            if purgesOnLostAccess {
              try database.replicatingChanges { try $0.purgeIfStored(item.revision.id) }
            }
            item.end(.success(.nothing))
            continue
          }
          guard try passes(item.revision) else {
            item.end(.success(.nothing))
            continue
          }
          let missing = try database.replicating { try $0.missingBlobs(of: item.revision.body) }
          if missing.isEmpty { ready.append(item) } else { fetch(missing, for: item) }
        } catch { item.end(.failure(.refused(error))) }
      }
    }
    apply(ready)
  }

  private func passes(_ revision: SyncRevision) throws -> Bool {
    guard let filter else { return true }
    return try filter(FilteredRevision(revision))
  }

  private func apply(_ items: [Item]) {
    guard !items.isEmpty else { return }
    do {
      let outcomes = try insert(items.map(\.incoming))
      for (item, outcome) in zip(items, outcomes) {
        switch outcome {
        case .added: item.end(.success(.added))
        case .known: item.end(.success(.nothing))
        case .conflict: resolver == nil ? item.end(.failure(.conflictsHere)) : resolve(item)
        case .refused(let error as DocumentError) where error.code == .missingBlob:
          fetchAgain(item)
        case .refused(let error): item.end(.failure(.refused(error)))
        }
      }
    } catch {
      for item in items { item.end(.failure(ReplicationError(error))) }
    }
  }

  // MARK: Blobs

  /// Fetches blobs one after the other, and then stores the revision.
  private func fetch(_ blobs: [MissingBlob], for item: Item) {
    var item = item
    item.fetches += 1
    fetch(blobs[...], item)
  }

  /// Fetches what a compaction has removed since the revision was looked at, or while other blobs of it came.
  private func fetchAgain(_ item: Item) {
    guard item.fetches < Self.attempts else {
      return item.end(
        .failure(
          ReplicationError(
            .touchstone, ErrorKind.busy.rawValue,
            "blobs of the document were removed \(item.fetches) times before it was stored")))
    }
    do {
      fetch(try database.replicating { try $0.missingBlobs(of: item.revision.body) }, for: item)
    } catch { item.end(.failure(.refused(error))) }
  }

  private func fetch(_ blobs: ArraySlice<MissingBlob>, _ item: Item) {
    guard let blob = blobs.first else { return apply([item]) }
    let isNew = waiters[blob.digest] == nil
    waiters[blob.digest, default: []].append { [self] error in
      if let error { item.end(.failure(error)) } else { fetch(blobs.dropFirst(), item) }
    }
    guard isNew else { return }
    fetches.append((blob, item.revision.id))
    fetchNext()
  }

  private func fetchNext() {
    while fetching < Self.fetchesInFlight, !fetches.isEmpty {
      let (blob, id) = fetches.removeFirst()
      let digest = blob.digest
      let writer: BlobWriter
      do {
        writer = try database.replicatingChanges { try $0.requiredBlobs.makeWriter() }
      } catch {
        fetched(digest, ReplicationError(error))
        continue
      }
      fetching += 1
      let given = GivenWriter(writer: writer)
      fetchBlob(blob, id, writer) { [self] result in
        self.lane.enqueue {
          self.fetching -= 1
          var error: ReplicationError?
          switch result {
          case .failure(let failure): error = failure
          case .success:
            do { try self.finish(given.writer, digest) } catch let failure {
              error = ReplicationError(failure)
            }
          }
          self.fetched(digest, error)
          self.fetchNext()
        }
      }
    }
  }

  private struct GivenWriter: @unchecked Sendable { let writer: BlobWriter }

  private func finish(_ writer: BlobWriter, _ digest: BlobDigest) throws {
    try database.replicatingChanges { store in
      let stored = try writer.finish()
      guard stored.digest == digest else {
        try store.requiredBlobs.discard(stored)
        throw ReplicationError.wrongBlob(
          "the peer sent a blob with the digest \(stored.digest) in the place of \(digest)")
      }
    }
  }

  private func fetched(_ digest: BlobDigest, _ error: ReplicationError?) {
    for waiter in waiters.removeValue(forKey: digest) ?? [] { waiter(error) }
  }

  // MARK: Conflicts

  private func resolve(_ item: Item) {
    do {
      let revision = item.revision
      let pulled = PulledRevision(
        id: revision.id, history: revision.history, isDeleted: revision.isDeleted,
        body: .value(try revision.body.value()))
      resolve(item, pulled, attempt: 0)
    } catch { item.end(.failure(.refused(error))) }
  }

  private func resolve(_ item: Item, _ pulled: PulledRevision, attempt: Int) {
    guard attempt < Self.attempts else {
      return item.end(
        .failure(
          ReplicationError(
            .touchstone, ErrorKind.busy.rawValue,
            "the document was changed \(attempt) times while its conflict was resolved")))
    }
    guard let (resolver, remote) = resolver else { return item.end(.failure(.conflictsHere)) }
    do {
      let (met, known) = try database.replicating { store in
        (try store.meet(pulled), try store.syncChange(of: pulled.id, remote: remote)?.known)
      }
      guard let conflict = met.conflict else {
        return try write(item, pulled, met, .resolved(.remote), remote, attempt)
      }
      if let order, let known, known.hasSameBytes(as: conflict.local.id.description),
        !(conflict.local.isDeleted && conflict.remote.isDeleted)
      {
        // Nothing was changed here since the peer had the same, so the peer has gone over to another branch: the one here was deleted
        // there, or purged. That is no conflict.
        guard order.isNewest(pulled.id, item.incoming.asked) else { return item.end(.success(.nothing)) }
        return try write(item, pulled, met, .resolved(.remote), remote, attempt, hadConflict: false)
      }
      if conflict.isOfSameContent {
        return try write(item, pulled, met, .sameContent, remote, attempt)
      }
      switch resolver {
      case .standard:
        try write(
          item, pulled, met, .resolved(DefaultConflictResolver().resolve(conflict)), remote, attempt)
      case .custom(let resolver):
        try write(item, pulled, met, .resolved(resolver.resolve(conflict)), remote, attempt)
      case .asynchronous(let resolve):
        Task { [self] in
          do {
            let resolution = try await resolve(conflict)
            lane.enqueue { [self] in
              do { try write(item, pulled, met, .resolved(resolution), remote, attempt) } catch {
                item.end(.failure(.refused(error)))
              }
            }
          } catch { item.end(.failure(.refused(error))) }
        }
      }
    } catch { item.end(.failure(.refused(error))) }
  }

  private func write(
    _ item: Item, _ pulled: PulledRevision, _ met: DocumentStore.MetRevision,
    _ resolution: DocumentStore.SyncResolution, _ remote: UInt32,
    _ attempt: Int, hadConflict: Bool = true
  ) throws {
    let applied = try database.replicatingChanges { try $0.apply(pulled, met, resolution, remote: remote) }
    if let applied {
      item.end(.success(!applied ? .nothing : hadConflict ? .resolved : .added))
    } else {
      resolve(item, pulled, attempt: attempt + 1)
    }
  }
}

extension Conflict {
  /// Whether both sides say the same: two deletions, or equal bodies.
  fileprivate var isOfSameContent: Bool {
    if local.isDeleted != remote.isDeleted { return false }
    return local.isDeleted || local.body == remote.body
  }
}
