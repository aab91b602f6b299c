import Bytes
import Documents
import Fleece
import Network
import Replication
import Storage

/// A revision that is wanted.
struct WantedRevision: Sendable {
  let change: OfferedChange
  /// Stored revisions here that may be its ancestors.
  let ancestors: [String]
  let maximumHistory: Int
  /// How often it was asked for in vain.
  var attempts = 0
  /// Whether it is asked for by itself from now on.
  var isAlone = false
}

/// Fetches the changes of a database, offers them, and fetches the revisions that are wanted.
///
/// Its state belongs to one lane. What is in flight is bounded: lists without an answer, requests, and bytes that aren't
/// stored yet. When there are too many of these, the server has to wait.
final class HTTPPull: @unchecked Sendable {
  /// The most changes of a list, and of an answer.
  static let listCount = 250
  static let pageCount = 1_000
  static let listsInFlight = 8
  /// The most requests for documents at a time, and the most documents of one.
  static let fetchesInFlight = 4
  static let documentsTogether = 250
  /// The most bytes of bodies that aren't stored yet.
  static let bytesInFlight = 8 << 20
  /// Bodies are handed over together up to this many, and to this many bytes.
  static let revisionsTogether = 100
  static let bytesTogether = 512 << 10
  /// Milliseconds between signs of life of a feed that waits.
  static let heartbeat = 30_000

  private weak var peer: HTTPPeer?
  let requester: DatabaseRequester
  let sink: any PullSink
  /// Takes the revisions in place of the sink.
  let arrivals: (any ArrivalSink)?
  let attachments: AttachmentPull
  private let request: PullRequest
  private let done: Completion<Void>
  private let lane = JobLane()
  private let isStopped = Lock(false)
  /// Bytes that aren't stored yet, and the requests that wait for them.
  private let load = Lock((bytes: 0, waiting: [DocumentFetch]()))

  // Used on the lane only.
  private var since: String
  private var isFetchingChanges = false
  private var isAtEnd = false
  private var rows: [OfferedChange] = []
  private var head = 0
  private var lists = 0
  private var reached: String?
  private var wanted: [WantedRevision] = []
  private var fetches = 0
  /// Whether the server has `_bulk_get`.
  private var hasBulkGet = true

  init(
    _ peer: HTTPPeer, _ request: PullRequest, _ sink: any PullSink, _ arrivals: (any ArrivalSink)?,
    _ done: @escaping Completion<Void>
  ) {
    self.peer = peer
    requester = peer.requester
    self.request = request
    self.sink = sink
    self.arrivals = arrivals
    self.done = done
    since = request.since?.json ?? "0"
    attachments = AttachmentPull(peer)
  }

  func start() { enqueue { $0.step() } }

  func stop() {
    isStopped.withLock { $0 = true }
    for fetch in load.withLock({ load in
      defer { load.waiting = [] }
      return load.waiting
    }) { fetch.cancel() }
  }

  func enqueue(_ body: @escaping @Sendable (HTTPPull) -> Void) {
    lane.enqueue { [weak self] in
      guard let self, !self.isStopped.withLock({ $0 }) else { return }
      body(self)
    }
  }

  /// The pull can't go on.
  func fail(_ error: ReplicationError) {
    guard !isStopped.withLock({ $0 }) else { return }
    stop()
    done(.failure(error))
  }

  /// Does what can be done now.
  private func step() {
    lane.assertCurrent()
    offer()
    fetchDocuments()
    fetchChanges()
  }

  // MARK: Changes

  private func fetchChanges() {
    let isEnough = rows.count - head >= Self.pageCount || wanted.count >= Self.pageCount
    guard !isFetchingChanges, !isEnough, request.isContinuous || !isAtEnd else { return }
    isFetchingChanges = true
    let page = ChangesPage(request, since: since, waits: isAtEnd, requester)
    page.fetch { [weak self] result in
      self?.enqueue { pull in
        pull.isFetchingChanges = false
        switch result {
        case .failure(let error): pull.fail(error)
        case .success(let page): pull.take(page)
        }
      }
    }
  }

  private func take(_ page: ChangesPage.Answer) {
    lane.assertCurrent()
    if head > 0 {
      rows.removeFirst(head)
      head = 0
    }
    // Plain numbers that go back are those of another database. Other sequences have a mark of theirs.
    if let before = UInt64(since), let now = UInt64(page.last), now < before { return fail(.replaced) }
    rows += page.changes
    since = page.last
    if page.isLast {
      isAtEnd = true
      reached = page.last
    }
    step()
  }

  private func offer() {
    while lists < Self.listsInFlight, head < rows.count {
      let list = Array(rows[head..<min(head + Self.listCount, rows.count)])
      head += list.count
      lists += 1
      sink.offered(list) { [weak self] answers in self?.enqueue { $0.take(answers, for: list) } }
    }
    if head == rows.count, let last = reached {
      reached = nil
      sink.caughtUp(at: last == "0" ? nil : RemoteSequence(json: last))
    }
  }

  private func take(_ answers: OfferAnswers, for changes: [OfferedChange]) {
    lane.assertCurrent()
    lists -= 1
    for (change, answer) in zip(changes, answers.answers) {
      guard case .wanted(let ancestors) = answer else { continue }
      wanted.append(
        WantedRevision(change: change, ancestors: ancestors, maximumHistory: max(1, answers.maximumHistory)))
    }
    step()
  }

  // MARK: Documents

  private func fetchDocuments() {
    while !wanted.isEmpty, fetches < (hasBulkGet ? Self.fetchesInFlight : 2 * Self.fetchesInFlight) {
      let isBulk = hasBulkGet && !wanted[0].isAlone
      let count = isBulk ? min(Self.documentsTogether, wanted.prefix { !$0.isAlone }.count) : 1
      let part = Array(wanted[..<count])
      wanted.removeFirst(count)
      fetches += 1
      DocumentFetch(self, part, isBulk: isBulk).begin()
    }
  }

  /// A request has ended. `rest` are the revisions that it hasn't brought.
  func ended(_ rest: [WantedRevision], hasNoBulkGet: Bool) {
    enqueue { pull in
      pull.fetches -= 1
      if hasNoBulkGet { pull.hasBulkGet = false }
      pull.wanted = rest + pull.wanted
      pull.step()
    }
  }

  /// Hands over revisions. Their attachments come first.
  func deliver(_ arrived: [ArrivedRevision]) {
    enqueue { pull in
      if let arrivals = pull.arrivals {
        return arrivals.arrived(arrived) { [weak pull] in pull?.unload($0) }
      }
      var plain: [IncomingRevision] = []
      var bytes = 0
      for item in arrived {
        guard item.document.attachments != nil else {
          do {
            let body = try item.document.body(nil)
            bytes += item.bytes
            plain.append(item.incoming(body))
          } catch { pull.unreadable(item, ReplicationError(error)) }
          continue
        }
        pull.attachments.prepare(item) { [weak pull] result in
          pull?.enqueue { pull in
            switch result {
            case .success(let body): pull.hand([item.incoming(body)], item.bytes, item.blobs)
            case .failure(let error) where [403, 404, 410].contains(error.code) && error.domain == .http:
              pull.unload(item.bytes)
              pull.sink.unavailable([
                UnavailableRevision(
                  id: item.wanted.change.id, revision: item.wanted.change.revision,
                  sequence: item.wanted.change.sequence, code: error.code)
              ])
            case .failure(let error): pull.unreadable(item, error)
            }
          }
        }
      }
      if !plain.isEmpty { pull.hand(plain, bytes, []) }
    }
  }

  private func unreadable(_ item: ArrivedRevision, _ error: ReplicationError) {
    unload(item.bytes)
    sink.unreadable(item.wanted.change.id, item.wanted.change.revision, error)
  }

  private func hand(_ revisions: [IncomingRevision], _ bytes: Int, _ blobs: BlobNames) {
    sink.received(revisions) { [weak self] _ in
      self?.attachments.forget(blobs)
      self?.unload(bytes)
    }
  }

  // MARK: Memory

  /// Counts bytes that have come. Returns false if the fetch has to wait until `unload`.
  func load(_ bytes: Int, _ fetch: DocumentFetch) -> Bool {
    load.withLock { load in
      load.bytes += bytes
      guard load.bytes > Self.bytesInFlight else { return true }
      if !load.waiting.contains(where: { $0 === fetch }) { load.waiting.append(fetch) }
      return false
    }
  }

  private func unload(_ bytes: Int) {
    let waiting = load.withLock { load in
      load.bytes -= bytes
      guard load.bytes <= Self.bytesInFlight / 2 else { return [DocumentFetch]() }
      defer { load.waiting = [] }
      return load.waiting
    }
    for fetch in waiting { fetch.resume() }
  }
}

/// A revision that has come, and what it was asked for by.
struct ArrivedRevision: Sendable {
  let wanted: WantedRevision
  let document: WireDocument
  let bytes: Int
  /// What a document here says of the attachments that have come with it.
  var stored: JSONObject = [:]
  var blobs: BlobNames { document.attachments == nil ? [] : BlobNames(document) }

  func incoming(_ body: [UInt8]) -> IncomingRevision {
    var revision = SyncRevision(
      id: document.id, history: document.shortHistory(wanted.ancestors, wanted.maximumHistory),
      isDeleted: document.isDeleted, body: .json(body))
    revision.replaces = nil
    let asked = wanted.change.revision
    return IncomingRevision(
      revision, sequence: wanted.change.sequence,
      replaces: asked.hasSameBytes(as: document.revision) ? nil : asked)
  }
}
