import Bytes
import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationHTTP

/// Records the sequence of a relay, as a server does.
private final class Recorder: RelayRecorder {
  private let last = Lock<RemoteSequence?>(nil)

  func agree(source: JSONObject?, target: JSONObject?) -> RemoteSequence? {
    guard let source = source?["at"]?.string, let target = target?["at"]?.string, source == target else {
      return nil
    }
    last.withLock { $0 = RemoteSequence(json: source) }
    return RemoteSequence(json: source)
  }

  func record(at sequence: RemoteSequence?) -> JSONObject? {
    guard let sequence, last.withLock({ $0 != sequence }) else { return nil }
    last.withLock { $0 = sequence }
    return ["at": .string(sequence.json)]
  }
}

/// Runs a relay until it has stopped.
@discardableResult
private func relay(
  _ source: String, _ target: String, sourceLocation: SourceLocation = #_sourceLocation,
  _ change: (inout RelayConfiguration) -> Void = { _ in }
) throws -> Outcome {
  var configuration = RelayConfiguration(from: try .httpURL(source), to: try .httpURL(target))
  configuration.checkpointName = "relay"
  configuration.maximumRetries = 0
  configuration.sourceConnection.firstPause = 0.001
  configuration.targetConnection.firstPause = 0.001
  change(&configuration)
  let relay = Relay(configuration)
  let recorder = Recorder()
  relay.recorder = recorder
  let documents = Lock<[ReplicatedDocument]>([])
  let stopped = CountingSemaphore()
  let tokens = [
    relay.observeDocuments { new in documents.withLock { $0 += new } },
    relay.observeStatus { if $0.activity == .stopped { stopped.signal() } },
  ]
  relay.start()
  if !stopped.wait(seconds: 120) {
    Issue.record("the relay doesn't stop: \(relay.status)", sourceLocation: sourceLocation)
    relay.stop()
  }
  for token in tokens { token.cancel() }
  return withExtendedLifetime(recorder) {
    Outcome(status: relay.status, documents: documents.withLock { $0 })
  }
}

extension CouchServer {
  fileprivate var url: String { server.url + model.name }
}

@Suite("Replication between two other servers") struct RelayTests {
  private let databases = TestDatabases()

  /// Bytes that gzip doesn't make shorter.
  private static let noise: [UInt8] = {
    var random = SeededGenerator(seed: 7)
    return (0..<1_000_000).map { _ in UInt8(random.below(256)) }
  }()

  private static func large(_ count: Int) -> [UInt8] { Array(noise.prefix(count)) }

  /// Documents with conflicts, tombstones, long histories, a design document, and attachments: some of them
  /// shorter than what is kept in memory, others longer.
  private func fill(_ model: CouchModel) throws {
    func add(
      _ id: String, _ history: [String], isDeleted: Bool = false, _ body: JSONObject = ["n": 1],
      _ attachments: [CouchModel.Attachment] = []
    ) {
      model.add(id, .init(history: history, isDeleted: isDeleted, body: body, attachments: attachments))
    }
    for number in 0..<40 { add("doc\(number)", ["1-aa\(number)"], isDeleted: number == 5) }
    for suffix in ["b", "c"] { add("doc1", ["2-\(suffix)", "1-aa1"]) }
    add("doc2", ["3-d", "2-c", "1-aa2"], isDeleted: true, ["kept": "in a tombstone"])
    add(
      "long", (1...30).reversed().map { "\($0)-\(String($0, radix: 16))" }, ["deep": [1, [2, ["x": .null]]]])
    add("_design/d", ["1-dd"], ["views": ["v": ["map": "function (doc) { emit(doc.n); }"]]])
    add("blob like", ["1-a"], ["photo": ["@type": "blob", "digest": "sha1-Kq5sNclPz7QV2+lfQIuc6R7oRu0="]])
    let text = Array(String(repeating: "compressible ", count: 500).utf8)
    let compressed = CouchModel.Attachment(
      name: "text", contentType: "text/plain", revpos: 1, bytes: try Gzip.encoded(text), length: text.count,
      isCompressed: true)
    add(
      "attached", ["1-a"], [:],
      [
        attachment("b", [1, 2, 3]), attachment("a/ü", []), compressed,
        attachment("large", Self.large(1_000_000)),
      ])
    add("attached", ["2-b", "1-a"], [:], [attachment("b", [1, 2, 3]), attachment("new", [4], revpos: 2)])
    add("attached", ["2-c", "1-a"], isDeleted: true, [:], [attachment("b", [1, 2, 3])])
    for number in 0..<12 {
      add("more\(number)", ["1-a"], [:], [attachment("x", Self.large(number * 40_000))])
    }
  }

  private func expectRelayed(_ source: CouchServer, _ target: CouchServer, _ what: String = "") {
    expectSame(source.model.contents, target.model.contents, what)
    expect(source.model.complaints == [] && target.model.complaints == [], "\(what)")
  }

  @Test("all leaves go with their histories and attachments, and once", arguments: [false, true])
  func all(givesNumbers: Bool) throws {
    let (source, target) = (try CouchServer("a"), try CouchServer("b", exists: false))
    source.model.state.withLock { $0.givesNumbers = givesNumbers }
    try fill(source.model)
    let absent = try relay(source.url, target.url)
    expect(absent.status.error?.code, equals: 404)
    let outcome = try relay(source.url, target.url) { $0.targetConnection.createsDatabase = true }
    expect(outcome.status.error == nil && outcome.failed.isEmpty)
    expectRelayed(source, target)
    let history = target.model.state.withLock { $0.documents["long"]?.parents.count }
    expect(history, equals: 30)
    expect(outcome.pushed.count, equals: 58)
    // Both sides have the checkpoint, and the next one begins there.
    let records = [source, target].map { $0.model.state.withLock { $0.locals["relay"]?["at"] } }
    expect(records[0] != nil && records[0] == records[1])
    for server in [source, target] { server.server.forget() }
    try expect(relay(source.url, target.url).documents, equals: [])
    expect(!target.server.log.contains { $0.contains("_revs_diff") || $0.hasPrefix("PUT") })
    source.model.add(
      "doc3", .init(history: ["2-z", "1-aa3"], isDeleted: false, body: [:], attachments: []))
    try expect(relay(source.url, target.url).pushed, equals: ["doc3"])
    expectRelayed(source, target)
  }

  @Test("only what is asked for goes") func chosen() throws {
    let source = try CouchServer("a")
    try fill(source.model)
    source.model.add("red", .init(history: ["1-a"], isDeleted: false, body: ["type": "x"], attachments: []))
    var (documents, selector, filter) = (PullRequest(), PullRequest(), PullRequest())
    documents.documentIDs = ["red", "none"]
    selector.selector = ["type": "x"]
    (filter.filter, filter.filterParameters) = ("app/type", ["type": "x"])
    for (number, request) in [documents, selector, filter].enumerated() {
      let target = try CouchServer("b")
      try expect(relay(source.url, target.url) { $0.request = request }.pushed, equals: ["red"], "\(number)")
      expect(source.model.complaints == [] && target.model.complaints == [], "\(number)")
    }
    // Without branches that lost, and behind a sequence.
    let target = try CouchServer("b")
    try relay(source.url, target.url) { $0.request.onlyWinners = true }
    expect(target.model.contents["doc1"]?.count, equals: 1)
    let late = try CouchServer("b")
    let last = source.model.state.withLock { state in
      (try? source.model.sequence(state.sequence - 1, state).canonicalJSON()) ?? ""
    }
    try expect(
      relay(source.url, late.url) { $0.request.since = RemoteSequence(json: last) }.pushed, equals: ["red"])
  }

  @Test(
    "a fault at any request of a side costs no document, and the next run completes what is missing",
    arguments: MiniAnswer.Fault.allCases, [true, false])
  func everyRequest(_ fault: MiniAnswer.Fault, isOfSource: Bool) throws {
    let kind = (MiniAnswer.Fault.allCases.firstIndex(of: fault) ?? 0) * 2 + (isOfSource ? 1 : 0)
    var number = isShort ? kind : 0
    var isBeyond = false
    while !isBeyond {
      let (source, target) = (try CouchServer("a"), try CouchServer("b"))
      try fill(source.model)
      if number % 3 == 0 { source.model.state.withLock { $0.missing["_bulk_get"] = 404 } }
      let failing = isOfSource ? source : target
      let place = number
      let length = fault == .failed ? 1 : 1 + number % 4
      failing.server.faults.withLock { $0 = { (place..<place + length).contains($0.number) ? fault : nil } }
      let first = try relay(source.url, target.url) { $0.checkpointDelay = 0.001 }
      if let error = first.status.error {
        expect(error.isTransient || fault.mayBePermanent, "\(fault) \(place): \(error)")
        expect(error.domain != .network || error.code != ReplicationError.NetworkCode.invalidURL.rawValue)
      }
      isBeyond = failing.server.log.count <= place
      failing.server.faults.withLock { $0 = { _ in nil } }
      let second = try relay(source.url, target.url)
      expect(second.status.error == nil && second.failed.isEmpty, "\(fault) \(place): \(second.status)")
      expectRelayed(source, target, "\(fault) \(place)")
      number += times(25, sanitized: 11, long: 1)
    }
    expect(number > 12)
  }

  @Test("a lost connection is made again as often as is wanted") func retries() throws {
    let (source, target) = (try CouchServer("a"), try CouchServer("b"))
    try fill(source.model)
    target.server.faults.withLock { $0 = { $0.number < 2 ? .droppedBefore : nil } }
    let timer = ManualTimer()
    var configuration = RelayConfiguration(from: try .httpURL(source.url), to: try .httpURL(target.url))
    configuration.sourceConnection.firstPause = 0.001
    configuration.targetConnection.firstPause = 0.001
    configuration.timer = timer
    let relay = Relay(configuration)
    relay.start()
    for wait in [2.0, 4] {
      eventually { relay.status.activity == .offline }
      expect(relay.failure?.side == .target && relay.failure?.isOfCheckpoint == false)
      timer.advance(by: wait - 0.5)
      expect(relay.status.activity, equals: .offline)
      timer.advance(by: 1)
      eventually { relay.status.activity != .offline }
    }
    eventually { relay.status.activity == .stopped }
    expect(relay.status.error == nil)
    expectRelayed(source, target)
  }

  @Test("servers without an endpoint are asked in another way", arguments: [400, 404, 405, 415, 500, 501])
  func missing(_ status: Int) throws {
    let (source, target) = (try CouchServer("a"), try CouchServer("b"))
    try fill(source.model)
    source.model.state.withLock { $0.missing["_bulk_get"] = status }
    target.model.state.withLock { state in
      state.missing["_ensure_full_commit"] = status == 500 ? 404 : status
      if status == 405 || status == 501 { state.missing["_revs_diff"] = status }
      state.takesMultipart = status != 415
    }
    source.model.state.withLock { $0.givesMultipart = status != 404 }
    let outcome = try relay(source.url, target.url)
    expect(outcome.status.error == nil && outcome.failed.isEmpty, "\(status): \(outcome)")
    // What goes in JSON is decoded.
    if status != 415, status != 404 { expectRelayed(source, target, "\(status)") }
    let bytes = [source, target].map { server in
      server.model.state.withLock { state in
        state.documents.mapValues { document in
          document.revisions.mapValues { $0.attachments.sorted { $0.name < $1.name }.map(\.plainBytes) }
        }
      }
    }
    expect(bytes[0]["attached"]?["2-b"] == bytes[1]["attached"]?["2-b"] && bytes[0].keys == bytes[1].keys)
    expect(source.server.log.filter { $0.contains("_bulk_get") }.count < 3)
  }

  @Test("refused documents are reported, and the others go on") func refused() throws {
    let (source, target) = (try CouchServer("a"), try CouchServer("b"))
    try fill(source.model)
    source.model.add(
      "large",
      .init(
        history: ["1-a"], isDeleted: false, body: ["text": .string(String(repeating: "x", count: 5_000))],
        attachments: []))
    target.model.state.withLock { state in
      state.refused = ["doc1": "forbidden", "doc2": "unauthorized", "more1": "forbidden"]
      state.maximumBytes = 4_000
    }
    let outcome = try relay(source.url, target.url)
    expect(outcome.status.error == nil)
    expect(outcome.failed["doc10"]?.code == 403 && outcome.failed["doc2"]?.code == 401)
    expect(outcome.failed["more11"]?.code == 403 && outcome.failed["large"]?.code == 413)
    expect(outcome.failed.count, equals: 26)
    expect(outcome.documents.allSatisfy { !$0.isUndone })
    expect(target.model.contents["doc3"] != nil && target.model.contents["more2"] != nil)
    // They count as done.
    try expect(relay(source.url, target.url).documents.isEmpty)
  }

  @Test("attachments go that the target should have, and hasn't") func stubs() throws {
    let (source, target) = (try CouchServer("a"), try CouchServer("b"))
    let kept = attachment("kept", [1, 2, 3])
    for (history, added) in [(["1-a"], []), (["2-b", "1-a"], [attachment("new", [4], revpos: 2)])] {
      source.model.add(
        "doc", .init(history: history, isDeleted: false, body: [:], attachments: [kept] + added))
    }
    target.model.add("doc", .init(history: ["1-a"], isDeleted: false, body: [:], attachments: []))
    let outcome = try relay(source.url, target.url)
    expect(outcome.status.error == nil && outcome.pushed == ["doc"])
    expectRelayed(source, target)
    expect(target.server.log.filter { $0.hasPrefix("PUT /b/doc") }.count, equals: 2)
  }

  @Test("an attachment that is longer than its document says is no flood") func hostile() throws {
    let model = CouchModel("a")
    model.add(
      "doc", .init(history: ["1-a"], isDeleted: false, body: [:], attachments: [attachment("x", [1, 2, 3])]))
    let sent = Lock(0)
    let source = try MiniServer { request in
      guard request.query["attachments"] == "true" else { return model.answer(request) }
      var answer = MiniAnswer(200)
      answer.body = [UInt8](repeating: UInt8(ascii: " "), count: 80 << 20)
      sent.withLock { $0 += 1 }
      return answer
    }
    let target = try CouchServer("b")
    let outcome = try relay(source.url + "a", target.url)
    expect(outcome.failed["doc"] != nil && outcome.documents.allSatisfy(\.isUndone))
    expect(sent.withLock { $0 }, equals: 1)
    expect(target.model.contents, equals: [:])
  }

  @Test(
    "an answer that isn't the document doesn't go on", arguments: ["<html>Sign in</html>", "{}", "other"])
  func another(_ text: String) throws {
    let model = CouchModel("a")
    for id in ["doc", "other"] {
      model.add(
        id, .init(history: ["1-a"], isDeleted: false, body: [:], attachments: [attachment("x", [1, 2, 3])]))
    }
    let source = try MiniServer { request in
      guard request.query["attachments"] == "true", request.path.hasSuffix("/doc") else {
        return model.answer(request)
      }
      guard text == "other" else { return MiniAnswer(200, text) }
      var other = request
      other.path = "/a/other"
      return model.answer(other)
    }
    let target = try CouchServer("b")
    let outcome = try relay(source.url + "a", target.url)
    expect(outcome.failed["doc"] != nil && outcome.documents.contains { $0.id == "doc" && $0.isUndone })
    expect(Set(target.model.contents.keys), equals: ["other"])
    expect(target.model.complaints, equals: [])
  }

  /// Runs a continuous relay while `body` runs.
  private func relaying(
    _ source: CouchServer, _ target: CouchServer, _ body: (Relay, ManualTimer) throws -> Void
  ) throws {
    let timer = ManualTimer()
    var configuration = RelayConfiguration(from: try .httpURL(source.url), to: try .httpURL(target.url))
    configuration.checkpointName = "relay"
    configuration.request.isContinuous = true
    configuration.timer = timer
    configuration.sourceConnection.firstPause = 0.001
    configuration.targetConnection.firstPause = 0.001
    let relay = Relay(configuration)
    let recorder = Recorder()
    relay.recorder = recorder
    relay.start()
    try withExtendedLifetime(recorder) { try body(relay, timer) }
    relay.stop()
    source.model.state.withLock { $0.isClosed = true }
    eventually { relay.status.activity == .stopped }
    expect(relay.status.error == nil)
  }

  @Test("a continuous one follows the source, and records how far it is") func continuous() throws {
    let (source, target) = (try CouchServer("a"), try CouchServer("b"))
    try fill(source.model)
    try relaying(source, target) { relay, timer in
      eventually { relay.status.activity == .idle }
      expectRelayed(source, target)
      timer.advance(by: 6)
      eventually { target.model.state.withLock { $0.locals["relay"] } != nil }
      source.model.add("late", .init(history: ["1-a"], isDeleted: false, body: [:], attachments: []))
      eventually { target.model.contents["late"] != nil }
    }
    // The end records what was done.
    let records = [source, target].map { $0.model.state.withLock { $0.locals["relay"]?["at"] } }
    expect(records[0] == records[1])
    source.model.state.withLock { $0.isClosed = false }
    try expect(relay(source.url, target.url).documents, equals: [])
  }

  @Test("a side that was made again gets all, or gives all", arguments: [true, false], [true, false])
  func replaced(tellsInstance: Bool, isTarget: Bool) throws {
    let (source, target) = (try CouchServer("a"), try CouchServer("b"))
    for side in [source, target] { side.model.state.withLock { $0.tellsInstance = tellsInstance } }
    try fill(source.model)
    try relaying(source, target) { relay, timer in
      eventually { relay.status.activity == .idle }
      timer.advance(by: 6)
      eventually { target.model.state.withLock { $0.locals["relay"] } != nil }
      (isTarget ? target : source).model.remake()
      if !isTarget { try fill(source.model) }
      source.model.add("late", .init(history: ["1-a"], isDeleted: false, body: [:], attachments: []))
      eventually {
        timer.advance(by: 3)
        return target.model.contents == source.model.contents && relay.status.activity == .idle
      }
      expectRelayed(source, target)
    }
  }

  /// Both ends are listeners of this library, of random histories.
  @Test("random histories end equal on both sides", arguments: 0..<times(4, sanitized: 10, long: 200))
  func random(_ number: Int) throws {
    let seed = testSeed &+ UInt64(number)
    let what = "TOUCHSTONE_SEED=\(seed)"
    var random = SeededGenerator(seed: seed)
    let sides = try (0..<2).map { _ in try databases.open(random.pick([.sqlite, .lmdb])) }
    let servers = try sides.map { try TestServer(["db": $0]) }
    let poor = try servers.map { server in try Forwarder(to: server.url) { $0.hasSuffix("/_bulk_get") } }
    var kept: [String] = []
    for round in 0..<(4 + random.below(4)) {
      for _ in 0..<random.below(40) {
        try RandomChanges.change(random.pick(sides), &random, &kept, "\(number).\(round)")
      }
      let from = random.below(2)
      let source = random.once(in: 3) ? poor[from].server.url : servers[from].url
      let outcome = try relay(source + "db", servers[1 - from].url + "db") {
        $0.checkpointDelay = random.pick([0.001, 5])
        if random.once(in: 6) { $0.checkpointName = nil }
      }
      expect(outcome.status.error == nil && outcome.failed.isEmpty, "\(what): \(outcome.failed)")
    }
    for from in [0, 1, 0] {
      let outcome = try relay(servers[from].url + "db", servers[1 - from].url + "db")
      expect(outcome.status.error == nil && outcome.failed.isEmpty, "\(what): \(outcome.failed)")
    }
    try expectEqual(sides[0], sides[1], what)
    for side in sides {
      try expect(side.check(deep: true), equals: [], "\(what)")
      for id in kept where try side.document(id) == nil { Issue.record("\(what): \(id) is lost") }
    }
  }

  @Test("digests of this library don't go to a server that knows only MD5") func digests() throws {
    let local = try databases.open(.lmdb)
    for name in ["one", "two"] {
      var document = MutableDocument(id: name, ["n": 1])
      document.setAttachment("b", try Blob([1, 2, 3], contentType: "image/png"))
      document.setAttachment("a", try Blob(Self.large(600_000), contentType: "image/png"))
      try local.save(&document)
    }
    let server = try TestServer(["db": local])
    let target = try CouchServer("b")
    let outcome = try relay(server.url + "db", target.url)
    expect(outcome.status.error == nil && outcome.failed.isEmpty, "\(outcome.failed)")
    expectSame(try modelContents(local), target.model.contents, "as multipart")
    let plain = try CouchServer("b")
    plain.model.state.withLock { $0.takesMultipart = false }
    try expect(relay(server.url + "db", plain.url).failed.isEmpty)
    expectSame(try modelContents(local), plain.model.contents, "as JSON")
    expect(target.model.complaints == [] && plain.model.complaints == [])
  }
}
