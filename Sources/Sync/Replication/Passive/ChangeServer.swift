import Bytes
import Documents
import Storage
import Touchstone

/// Serves the changes of a database to one sink: offers them in order, and sends the revisions that are wanted.
///
/// What is in flight is bounded: lists without an answer, revisions and bytes that aren't stored yet. It works on one
/// thread of its own, which waits for no peer.
package final class ChangeServer: @unchecked Sendable {
  /// The most changes of a list.
  package static let maximumListCount = 200
  /// The most lists without an answer.
  static let listsInFlight = 8
  /// The most revisions that are offered, read or sent, and not stored yet.
  static let revisionsInFlight = 4_000
  /// The most documents that are looked up by their IDs.
  static let fewDocuments = 1_000

  private let database: Database
  private let echoes: EchoRanges
  private let request: PullRequest
  private let filter: ReplicationFilter?
  private let sink: any PullSink
  private let listCount: Int
  private let onError: @Sendable (ReplicationError) -> Void
  private let lane: JobLane
  private let isStopped = Lock(false)

  // Used on the worker's thread only.
  private var next: UInt64
  private let documentIDs: Set<ByteString>?
  private var skipsTombstones: Bool
  private var hasCaughtUp = false
  /// The last sequence that a one-shot request gets: writers can't keep it running.
  private var end: UInt64?
  private var lists = 0
  private var revisions = 0
  private var bytes = 0
  private var wanted: [(change: OfferedChange, ancestors: [String], maximumHistory: Int)] = []
  private var head = 0
  private var observer: ChangeObserver?
  private var few: [SyncChange]?
  /// Whether commits came since the last look at the changes.
  private let hasNews = Lock(true)

  /// Makes a server that offers at most `listCount` changes in a list. It does nothing until `start()`. Throws HTTP 403 if the
  /// database gives no revisions, and LiteCore 19 if it hasn't the filter that the request names.
  package init(
    _ responder: PassiveResponder, _ request: PullRequest, _ sink: any PullSink,
    listCount: Int = ChangeServer.maximumListCount, on pool: Workers? = nil,
    onError: @escaping @Sendable (ReplicationError) -> Void
  ) throws {
    try responder.checkGivesRevisions()
    filter = try responder.filter(of: request)
    lane = JobLane(on: pool)
    database = responder.database
    echoes = responder.echoes
    self.request = request
    self.sink = sink
    self.listCount = listCount
    self.onError = onError
    next = request.since.flatMap { UInt64($0.json) } ?? 0
    skipsTombstones = request.skipsTombstones
    documentIDs = request.documentIDs.map { Set($0.map { ByteString($0) }) }
  }

  /// Begins. With a continuous request it goes on until it is stopped.
  package func start() {
    enqueue { server in
      if server.request.isContinuous {
        server.observer = try server.database.observeForReplication { [weak server] in
          guard let server else { return }
          let isFirst = server.hasNews.withLock { hasNews in
            defer { hasNews = true }
            return !hasNews
          }
          if isFirst { server.enqueue { try $0.offer() } }
        }
      }
      try server.offer()
    }
  }

  /// Ends it. The sink gets nothing more, except for a call that has begun.
  package func stop() {
    isStopped.withLock { $0 = true }
    lane.enqueue { [self] in
      observer?.cancel()
      observer = nil
      wanted = []
      head = 0
    }
  }

  private func enqueue(_ step: @escaping @Sendable (ChangeServer) throws -> Void) {
    lane.enqueue { [self] in
      guard !isStopped.withLock({ $0 }) else { return }
      do { try step(self) } catch {
        let wasStopped = isStopped.withLock { stopped in
          defer { stopped = true }
          return stopped
        }
        observer?.cancel()
        if !wasStopped { onError(ReplicationError(error)) }
      }
    }
  }

  /// Offers the next changes, as many as may be in flight.
  private func offer() throws {
    while lists < Self.listsInFlight, revisions < Self.revisionsInFlight, !isStopped.withLock({ $0 }) {
      hasNews.withLock { $0 = false }
      let begin = next
      let (changes, reached) = try database.replicating { store in
        let last = try end ?? store.lastSequence
        if !request.isContinuous { end = last }
        if let few = try fewChanges(store, upTo: last) {
          let next = few.filter { $0.sequence > begin }.prefix(listCount)
          return (Array(next), next.count == listCount ? next.last?.sequence ?? last : last)
        }
        return try store.syncChanges(after: begin, upTo: last, limit: listCount)
      }
      next = max(next, reached)
      let isEnd = changes.count < listCount
      let wanted = changes.filter { change in
        !(skipsTombstones && change.isDeleted) && documentIDs?.contains(ByteString(change.id)) ?? true
          && !(request.takesReachedSequence && echoes.contains(change.sequence))
      }
      let chosen = try filter.map { try choose(wanted, $0) } ?? wanted
      let offered = chosen.map { change in
        OfferedChange(
          sequence: RemoteSequence(json: "\(change.sequence)"), id: change.id, revision: change.revision,
          isDeleted: change.isDeleted, bodyBytes: change.bodyBytes)
      }
      if !offered.isEmpty {
        lists += 1
        revisions += offered.count
        sink.offered(offered) { [weak self] answers in self?.enqueue { try $0.take(answers, for: offered) } }
      }
      if isEnd {
        // Tombstones that were left out come with the next pull, as from Couchbase Lite.
        let reached = skipsTombstones || next == 0 ? nil : RemoteSequence(json: "\(next)")
        skipsTombstones = false
        if !hasCaughtUp || !offered.isEmpty {
          hasCaughtUp = true
          sink.caughtUp(at: reached)
        }
        if !hasNews.withLock({ $0 }) { return }
        if !request.isContinuous { return }
      }
    }
  }

  /// The changes whose revisions pass. It ends when the client has gone: a filter may take its time for each revision.
  private func choose(_ changes: [SyncChange], _ passes: @escaping ReplicationFilter) throws -> [SyncChange] {
    try database.choose(changes, bytesTogether: SendingLimits().bytesTogether) { [isStopped] revision in
      guard !isStopped.withLock({ $0 }) else { throw CancellationError() }
      return try passes(revision)
    }
  }

  /// The changes that a one-shot request for few documents gets: they are looked up, so that not all changes are read. Nil for another
  /// request.
  private func fewChanges(_ store: DocumentStore, upTo last: UInt64) throws -> [SyncChange]? {
    if let few { return few }
    guard !request.isContinuous, let documentIDs, documentIDs.count <= Self.fewDocuments else { return nil }
    let found = try documentIDs.compactMap { id in
      id.bytes.withUnsafeBytes({ DocumentID.isStorable($0) })
        ? try store.syncChange(of: id.string, remote: nil) : nil
    }
    let changes = found.filter { $0.sequence <= last }.sorted { $0.sequence < $1.sequence }
    few = changes
    return changes
  }

  private func take(_ answers: OfferAnswers, for changes: [OfferedChange]) throws {
    lists -= 1
    for (index, change) in changes.enumerated() {
      if index < answers.answers.count, case .wanted(let ancestors) = answers.answers[index] {
        wanted.append((change, ancestors, answers.maximumHistory))
      } else {
        revisions -= 1
      }
    }
    try send()
    try goOn()
  }

  /// Sends revisions that are wanted, as many as may be in flight.
  private func send() throws {
    while head < wanted.count, !isStopped.withLock({ $0 }) {
      let limits = sink.sendingLimits
      guard bytes < limits.bytesInFlight else { return }
      var end = head
      var size = 0
      while end < wanted.count, end - head < listCount, size < limits.bytesTogether {
        size += wanted[end].change.bodyBytes
        end += 1
      }
      let part = Array(wanted[head..<end])
      head = end
      if head == wanted.count {
        wanted.removeAll(keepingCapacity: true)
        head = 0
      }
      let readings = try database.replicating { store in
        try store.syncRevisions(
          part.map {
            SyncWanted(
              id: $0.change.id, revision: $0.change.revision, ancestors: $0.ancestors,
              maximumHistory: $0.maximumHistory)
          })
      }
      var sent: [IncomingRevision] = []
      var unavailable: [UnavailableRevision] = []
      var sentBytes = 0
      for (wanted, reading) in zip(part, readings) {
        func isUnavailable(_ code: Int) {
          unavailable.append(
            UnavailableRevision(
              id: wanted.change.id, revision: wanted.change.revision, sequence: wanted.change.sequence,
              code: code
            ))
        }
        switch reading {
        case .revision(let revision):
          sentBytes += revision.body.byteCount
          var incoming = IncomingRevision(revision, sequence: wanted.change.sequence)
          incoming.deltaSources = wanted.ancestors
          sent.append(incoming)
        case .obsolete:
          guard request.takesReplacements, let replacement = try replacement(of: wanted) else {
            isUnavailable(410)
            continue
          }
          sentBytes += replacement.revision.body.byteCount
          sent.append(replacement)
        case .missing: isUnavailable(404)
        }
      }
      revisions -= unavailable.count
      bytes += sentBytes
      if !unavailable.isEmpty { sink.unavailable(unavailable) }
      guard !sent.isEmpty else { continue }
      let (count, size2) = (sent.count, sentBytes)
      sink.received(sent) { [weak self] _ in
        self?.enqueue { server in
          server.revisions -= count
          server.bytes -= size2
          try server.send()
          try server.goOn()
        }
      }
    }
  }

  /// The current revision of a document in the place of one that isn't stored any more.
  private func replacement(of wanted: (change: OfferedChange, ancestors: [String], maximumHistory: Int))
    throws
    -> IncomingRevision?
  {
    let reading = try database.replicating { store -> SyncReading in
      guard let change = try store.syncChange(of: wanted.change.id, remote: nil) else { return .missing }
      let current = SyncWanted(
        id: change.id, revision: change.revision, ancestors: wanted.ancestors + [wanted.change.revision],
        maximumHistory: wanted.maximumHistory)
      return try store.syncRevisions([current])[0]
    }
    guard case .revision(let revision) = reading, try filter?(FilteredRevision(revision)) ?? true else {
      return nil
    }
    return IncomingRevision(revision, sequence: wanted.change.sequence, replaces: wanted.change.revision)
  }

  private func goOn() throws {
    if !hasCaughtUp || request.isContinuous { try offer() }
  }
}
