import Bytes
import Documents
import Fleece
import HTTP
import Network
import Replication
import ReplicationNetwork
import Storage
import Transport

/// A request for some revisions: `_bulk_get`, or a document with `open_revs` for a server that hasn't that, whose attachments
/// then come with it (`MixedAnswer`). What arrives is handed over while the rest comes.
final class DocumentFetch: HTTPAnswerSink, @unchecked Sendable {
  /// The most bytes of a document with all that the answer says of it.
  static let maximumItemBytes = 64 << 20

  private let pull: HTTPPull
  private let isBulk: Bool
  private let task = Lock((task: (any HTTPTask)?.none, isReady: false, hasEnded: false))

  // Used before the request is sent, and then by one call at a time.
  private var waiting: [WantedRevision?]
  private var places: [ByteString: [Int]] = [:]
  private var head = HTTPAnswerHead(status: 0)
  private var cutter: ElementCutter
  private var mixed: MixedAnswer?
  private var failure: ReplicationError?
  private var errorText: [UInt8] = []
  private var arrived: [ArrivedRevision] = []
  private var arrivedBytes = 0
  private var newBytes = 0

  init(_ pull: HTTPPull, _ wanted: [WantedRevision], isBulk: Bool) {
    self.pull = pull
    self.isBulk = isBulk
    waiting = wanted
    cutter = ElementCutter(name: isBulk ? "results" : nil, maximumItemBytes: Self.maximumItemBytes)
    for (place, item) in wanted.enumerated() { places[ByteString(item.change.id), default: []].append(place) }
  }

  func begin() {
    let items = waiting.compactMap(\.self)
    let request =
      isBulk
      ? DocumentQuery.bulk(items, pull.requester)
      : DocumentQuery.single(items[0], pull.requester, withAttachments: pull.arrivals == nil)
    guard let request else {
      fail(ReplicationError(.http, 414, "the document's ID is too long for a URL"))
      return
    }
    let started =
      isBulk
      ? pull.requester.send(request, into: self)
      : LaneSink.send(request, by: pull.requester, into: self, on: pull.attachments.disk)
    let isReady = task.withLock { task in
      if !task.hasEnded { task.task = started }
      return task.isReady
    }
    // What it waited for was there before it was known how to go on.
    if isReady { started?.resume() }
  }

  func resume() {
    let task = task.withLock { task in
      task.isReady = task.task == nil
      return task.task
    }
    task?.resume()
  }

  func cancel() { task.withLock { $0.task }?.cancel() }

  // MARK: The answer

  func begin(_ head: HTTPAnswerHead) {
    self.head = head
    // Sync Gateway gives several parts to _bulk_get too, without attachments.
    let type = HTTPMediaType(head.headers.first("content-type") ?? "")
    guard head.status == 200, type.name == "multipart/mixed" else { return }
    do {
      mixed = try MixedAnswer(
        boundary: type[parameter: "boundary"] ?? "", maximumTextBytes: Self.maximumItemBytes
      ) { [pull, isBulk] in
        // Only the other requests are answered on a thread that may wait for the disk.
        guard !isBulk else { throw ReplicationError.malformed("attachments come that weren't asked for") }
        return try pull.attachments.makeWriter()
      }
    } catch { failure = ReplicationError(error) }
  }

  func receive(_ bytes: UnsafeRawBufferPointer) throws -> Bool {
    guard head.status == 200 else {
      errorText.appendErrorText(bytes)
      return true
    }
    newBytes = 0
    do {
      if let failure { throw failure }
      if let mixed { try mixed.take(bytes) { try take($0) } } else { try cutter.take(bytes) { try take($0) } }
    } catch {
      failure = ReplicationError(error)
      throw TransportClose.malformed(error)
    }
    // What is whole doesn't wait for the rest of a slow answer.
    if newBytes > 0 { flush() }
    return newBytes == 0 || pull.load(newBytes, self)
  }

  private func take(_ text: UnsafeRawBufferPointer) throws {
    var scanner = JSONScanner(text, nil, invalid: WireDocument.invalid)
    guard isBulk else { return try takeResult(&scanner, text, nil) }
    var id: String?
    var documents: Range<Int>?
    try scanner.object { scanner, member in
      let value = try scanner.value()
      if member.name.count == 2, text[member.name.lowerBound] == UInt8(ascii: "i") {
        id = try? WireDocument.string(value, text)
      } else if member.name.count == 4, text[member.name.lowerBound] == UInt8(ascii: "d") {
        documents = value
      }
    }
    guard let documents else { throw WireDocument.invalid }
    var list = JSONScanner(text, documents, invalid: WireDocument.invalid)
    try list.array { try takeResult(&$0, text, id) }
  }

  /// Takes a part of an answer of several parts.
  private func take(_ item: MixedAnswer.Item) throws {
    try item.text.withUnsafeBytes { text in
      if !item.isError, let document = try? WireDocument(text, 0..<text.count) {
        return take(document, text.count, stored: item.stored)
      }
      var value = try WireDocument.value(0..<text.count, text).object ?? [:]
      guard item.isError || value["missing"] != nil || value["error"] != nil else {
        throw WireDocument.invalid
      }
      if let revision = value["missing"] { value["rev"] = revision }
      if value["error"]?.string == nil { value["error"] = "not_found" }
      takeFailure(.object(value), isBulk ? nil : waiting.first??.change.id)
    }
  }

  /// Takes `{"ok": document}`, `{"error": …}` or `{"missing": revision}`.
  private func takeResult(_ scanner: inout JSONScanner, _ text: UnsafeRawBufferPointer, _ id: String?) throws
  {
    try scanner.object { scanner, member in
      let value = try scanner.value()
      let name = text[member.name]
      if name.elementsEqual("ok".utf8) {
        guard text[value.lowerBound] == UInt8(ascii: "{") else { return }
        take(try WireDocument(text, value), text.count)
      } else if name.elementsEqual("error".utf8) {
        takeFailure(try WireDocument.value(value, text), id)
      } else if name.elementsEqual("missing".utf8) {
        let missing: JSONObject = ["rev": try WireDocument.value(value, text), "error": "not_found"]
        takeFailure(.object(missing), waiting.first??.change.id)
      }
    }
  }

  private func take(_ document: WireDocument, _ bytes: Int, stored: JSONObject = [:]) {
    guard let places = places[ByteString(document.id)] else { return }
    // The one that was asked for, or one that has taken its place.
    let place =
      places.first { waiting[$0]?.change.revision.hasSameBytes(as: document.revision) ?? false }
      ?? places.first { place in
        guard let asked = waiting[place]?.change.revision else { return false }
        return document.history.contains { $0.hasSameBytes(as: asked) }
      }
    guard let place, let item = waiting[place] else { return }
    waiting[place] = nil
    arrived.append(ArrivedRevision(wanted: item, document: document, bytes: bytes, stored: stored))
    arrivedBytes += bytes
    newBytes += bytes
    if arrived.count >= HTTPPull.revisionsTogether || arrivedBytes >= HTTPPull.bytesTogether { flush() }
  }

  private func takeFailure(_ value: JSONValue, _ id: String?) {
    guard let id = value["id"].string ?? id, let places = places[ByteString(id)] else { return }
    let revision = value["rev"].string
    let place =
      places.first { place in
        revision.map { waiting[place]?.change.revision.hasSameBytes(as: $0) ?? false } ?? false
      }
      ?? (places.count == 1 ? places[0] : nil)
    guard let place, let item = waiting[place] else { return }
    waiting[place] = nil
    tell(item, .document(value))
  }

  private func tell(_ item: WantedRevision, _ error: ReplicationError) {
    let change = item.change
    if [401, 403, 404, 410].contains(error.code), error.domain == .http {
      pull.sink.unavailable([
        UnavailableRevision(
          id: change.id, revision: change.revision, sequence: change.sequence, code: error.code)
      ])
    } else {
      pull.sink.unreadable(change.id, change.revision, error)
    }
  }

  private func flush() {
    guard !arrived.isEmpty else { return }
    pull.deliver(arrived)
    arrived = []
    arrivedBytes = 0
  }

  // MARK: The end

  /// Whether a server answers so that has no `_bulk_get`, or no such large one: documents are asked for one by one then. 1.x of
  /// CouchDB takes it for a document's ID that may not be.
  private static func lacksBulkGet(_ status: Int) -> Bool {
    [500, 501].contains(status) || 400..<500 ~= status && ![401, 403, 407, 408, 429].contains(status)
  }

  func end(_ error: TransportClose?) {
    task.withLock { task in
      task.task = nil
      task.hasEnded = true
    }
    flush()
    if let failure { return retry(failure) }
    if let error { return retry(ReplicationError(end: error)) }
    guard head.status == 200 else {
      let error = ReplicationError.ofDocument(head, errorText, "reading documents")
      if isBulk, Self.lacksBulkGet(head.status) {
        return pull.ended(waiting.compactMap(\.self), hasNoBulkGet: true)
      }
      // The whole database is closed for this user.
      if error.code == 401 { return pull.fail(error) }
      guard [403, 404, 410].contains(error.code), !isBulk else { return retry(error) }
      if let item = waiting[0] { tell(item, error) }
      return pull.ended([], hasNoBulkGet: false)
    }
    do { if let mixed { try mixed.finish() } else { _ = try cutter.finish() } } catch {
      let failure = ReplicationError(error)
      self.failure = failure
      return retry(failure)
    }
    // What the answer has left out is asked for by itself, once.
    var rest: [WantedRevision] = []
    for item in waiting.compactMap(\.self) {
      if isBulk {
        rest.append(Self.again(item, isAlone: true))
      } else {
        tell(item, ReplicationError(.http, 404, "it isn't there"))
      }
    }
    pull.ended(rest, hasNoBulkGet: false)
  }

  private static func again(_ item: WantedRevision, isAlone: Bool) -> WantedRevision {
    var item = item
    item.attempts += 1
    item.isAlone = item.isAlone || isAlone
    return item
  }

  /// Asks for what hasn't come once more, if that may help.
  private func retry(_ error: ReplicationError) {
    // In the end a document that breaks the answer for all of them is asked for by itself. A server that has too many requests
    // isn't helped by more.
    let isBusy = error.domain == .http && error.code == 429
    let rest = waiting.compactMap(\.self).map { item in
      Self.again(item, isAlone: !isBusy && item.attempts + 2 >= DatabaseRequester.attempts)
    }
    let attempts = rest.map(\.attempts).max() ?? 0
    guard pull.requester.mayRepeat(error, after: attempts) else { return fail(error) }
    let pull = pull
    pull.requester.afterPause(attempts, error) { pull.ended(rest, hasNoBulkGet: false) }
  }

  private func fail(_ error: ReplicationError) {
    // One document can't be read. The others don't wait for it.
    if isBulk, failure != nil {
      let rest = waiting.compactMap(\.self).map { Self.again($0, isAlone: true) }
      return pull.ended(rest, hasNoBulkGet: false)
    }
    // One document can't be had; or nothing can.
    if !isBulk, error.domain == .http || error.domain == .network && !error.isTransient, let item = waiting[0]
    {
      tell(item, error)
      pull.ended([], hasNoBulkGet: false)
    } else {
      pull.fail(error)
    }
  }
}
