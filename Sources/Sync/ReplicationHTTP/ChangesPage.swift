import Fleece
import HTTP
import Network
import Replication
import ReplicationNetwork
import Transport

#if canImport(Glibc)
  import Glibc
#endif

/// A request for changes, and what it brings.
struct ChangesPage {
  struct Answer: Sendable {
    var changes: [OfferedChange] = []
    /// The sequence that was reached, as JSON.
    var last: String
    /// Whether there are no more changes now.
    var isLast = false
  }

  /// The most bytes of a change.
  static let maximumItemBytes = 4 << 20
  /// The most leaves of all changes of an answer.
  static let maximumLeaves = 100_000

  private let request: HTTPClientRequest?
  private let requester: DatabaseRequester
  private let since: String

  /// `waits`: for changes that come later.
  init(_ pull: PullRequest, since: String, waits: Bool, _ requester: DatabaseRequester) {
    self.requester = requester
    self.since = since
    var query = [
      ("style", pull.onlyWinners ? "main_only" : "all_docs"), ("feed", waits ? "longpoll" : "normal"),
      ("since", Self.text(since)),
      ("limit", String(HTTPPull.pageCount)),
    ]
    if waits { query.append(("heartbeat", String(HTTPPull.heartbeat))) }
    var body: JSONObject?
    if let selector = pull.selector {
      query.append(("filter", "_selector"))
      body = ["selector": selector]
    } else if let ids = pull.documentIDs, pull.filter == nil {
      query.append(("filter", "_doc_ids"))
      body = ["doc_ids": .array(ids.map { .string($0) })]
    } else if let filter = pull.filter {
      query.append(("filter", filter))
      for (name, value) in pull.filterParameters.sorted(by: { $0.key < $1.key }) {
        query.append((HTTPDatabaseURL.escaped(name), value.string ?? (try? value.canonicalJSON()) ?? ""))
      }
    }
    let json = body.map { (try? JSONValue.object($0).jsonText()) ?? [] }
    var request = requester.request(json == nil ? "GET" : "POST", "_changes", query, json: json)
    // A filter may run for a long time before it lets something through.
    request?.idleTimeout = waits ? Double(HTTPPull.heartbeat) / 1_000 * 3 : query.count > 4 ? 600 : nil
    self.request = request
  }

  private static func text(_ sequence: String) -> String {
    let value =
      sequence.utf8.withContiguousStorageIfAvailable { try? JSONValue(json: UnsafeRawBufferPointer($0)) }
      ?? nil
    return value?.string ?? sequence
  }

  /// Fetches the answer, with some more tries if the connection breaks off.
  func fetch(_ attempt: Int = 1, _ done: @escaping Completion<Answer>) {
    guard let request else {
      return done(.failure(ReplicationError(.http, 414, "the filter is too long for a URL")))
    }
    let sink = Sink(since) { result, mayRepeat in
      guard case .failure(let error) = result, mayRepeat, requester.mayRepeat(error, after: attempt) else {
        return done(result)
      }
      requester.afterPause(attempt, error) { fetch(attempt + 1, done) }
    }
    if requester.send(request, into: sink) == nil, requester.isClosed { done(.failure(.connectionEnded)) }
  }

  /// Reads an answer while it comes.
  private final class Sink: HTTPAnswerSink, @unchecked Sendable {
    // Used on the client's thread only.
    private var head = HTTPAnswerHead(status: 0)
    private var cutter = ElementCutter(name: "results", maximumItemBytes: ChangesPage.maximumItemBytes)
    private var errorText: [UInt8] = []
    private let since: String
    private var answer: Answer
    private var rows = 0
    private var isUnreadable = false
    private let done: @Sendable (Result<Answer, ReplicationError>, _ mayRepeat: Bool) -> Void

    init(
      _ since: String,
      _ done: @escaping @Sendable (Result<Answer, ReplicationError>, _ mayRepeat: Bool) -> Void
    ) {
      self.since = since
      answer = Answer(last: since)
      self.done = done
    }

    func begin(_ head: HTTPAnswerHead) { self.head = head }

    func receive(_ bytes: UnsafeRawBufferPointer) throws -> Bool {
      guard head.status == 200 else {
        errorText.appendErrorText(bytes)
        return true
      }
      do { try cutter.take(bytes) { try take($0) } } catch {
        isUnreadable = true
        throw TransportClose.malformed(error)
      }
      return true
    }

    private func take(_ bytes: UnsafeRawBufferPointer) throws {
      guard let row = try? JSONValue(json: bytes), let id = row["id"].string,
        let changes = row["changes"].array,
        let sequence = try? row["seq"].canonicalJSON()
      else { throw ReplicationError.malformed("a change can't be read") }
      rows += 1
      guard rows <= HTTPPull.pageCount * 2, answer.changes.count + changes.count <= ChangesPage.maximumLeaves
      else {
        throw ReplicationError.malformed("an answer has more changes than were asked for")
      }
      let isDeleted = row["deleted"].bool ?? false
      for (index, change) in changes.enumerated() {
        guard let revision = change["rev"].string else {
          throw ReplicationError.malformed("a change without a revision")
        }
        // The checkpoint doesn't pass the document before all its leaves are stored.
        let isLast = index == changes.count - 1
        answer.changes.append(
          OfferedChange(
            sequence: RemoteSequence(json: isLast && sequence != "null" ? sequence : answer.last), id: id,
            revision: revision, isDeleted: isDeleted))
      }
      if sequence != "null" { answer.last = sequence }
    }

    func end(_ error: TransportClose?) {
      if let error {
        // CouchDB breaks an answer off so when the database is deleted: another answer follows between the chunks. The next
        // connection sees what is there now.
        let isUnknown = error.domain == .network && error.code == NetworkCode.unknown.rawValue
        let isBrokenOff = head.status == 200 && !isUnreadable && isUnknown
        return done(.failure(isBrokenOff ? .feedBroken : ReplicationError(end: error)), !isBrokenOff)
      }
      guard head.status == 200 else {
        return done(
          .failure(
            .answer(head, errorText.withUnsafeBytes { try? JSONValue(json: $0) }, "reading the changes")),
          true)
      }
      do {
        let rest = try cutter.finish()
        if !rest["last_seq"].isNull, let last = try? rest["last_seq"].canonicalJSON() { answer.last = last }
        // A server that gives fewer than were asked for, and says that there are more, has them.
        let hasMore = rows > 0 && answer.last != since && rest["pending"].int ?? 0 > 0
        answer.isLast = rows < HTTPPull.pageCount && !hasMore
        done(.success(answer), true)
      } catch { done(.failure(ReplicationError(error)), true) }
    }
  }
}

extension TransportClose {
  /// What came can't be read.
  static func malformed(_ error: any Error) -> TransportClose {
    if let error = error as? TransportClose { return error }
    let reason = (error as? ReplicationError)?.message ?? "\(error)"
    return TransportClose(
      domain: .network, code: NetworkCode.unknown.rawValue, reason: reason, isTransient: false)
  }
}

extension ReplicationError {
  static let feedBroken = ReplicationError(.posix, Int(ECONNRESET), "the feed of changes has broken off")
}
