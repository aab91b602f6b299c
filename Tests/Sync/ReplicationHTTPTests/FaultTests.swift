import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationHTTP

@Suite("Faults of servers over HTTP") struct HTTPFaultTests {
  private let databases = TestDatabases()

  /// Documents on both sides: plain ones, conflicts, tombstones, attachments.
  private func fill(_ local: Database, _ model: CouchModel) throws {
    for number in 0..<40 { try local.save("here\(number)", ["n": .int(Int64(number))]) }
    try local.delete("here3")
    for number in 0..<3 {
      var document = MutableDocument(id: "attached\(number)")
      document.setAttachment(
        "x", try Blob([UInt8](repeating: UInt8(number), count: 5_000), contentType: "image/png"))
      try local.save(&document)
    }
    for number in 0..<40 {
      model.add(
        "there\(number)",
        .init(history: ["1-aa\(number)"], isDeleted: number == 5, body: ["n": 1], attachments: []))
    }
    for suffix in ["b", "c"] {
      model.add(
        "there1", .init(history: ["2-\(suffix)", "1-aa1"], isDeleted: false, body: [:], attachments: []))
    }
    model.add(
      "there2",
      .init(
        history: ["2-b", "1-aa2"], isDeleted: false, body: ["a": "b"],
        attachments: [
          .init(
            name: "file/ü", contentType: "image/png", revpos: 2, bytes: [1, 2, 3], length: 3,
            isCompressed: false)
        ]))
  }

  @Test(
    "a fault at any request costs no document, and the next run completes what is missing",
    arguments: MiniAnswer.Fault.allCases, [true, false])
  func everyRequest(_ fault: MiniAnswer.Fault, hasBulkGet: Bool) throws {
    // A short run takes some of the requests, others for each kind of fault.
    let kind = (MiniAnswer.Fault.allCases.firstIndex(of: fault) ?? 0) * 2 + (hasBulkGet ? 1 : 0)
    var number = isShort ? kind : 0
    var isBeyond = false
    while !isBeyond {
      let couch = try CouchServer()
      let local = try databases.open(number % 2 == 0 ? .lmdb : .sqlite)
      try fill(local, couch.model)
      if !hasBulkGet { couch.model.state.withLock { $0.missing["_bulk_get"] = 404 } }
      let place = number
      let length = fault == .failed ? 1 : 1 + number % 4
      couch.server.faults.withLock { $0 = { (place..<place + length).contains($0.number) ? fault : nil } }
      let first = try couch.replicate(local) {
        $0.connection.firstPause = 0.001
        $0.checkpointDelay = 0.001
      }
      if let error = first.status.error {
        expect(error.isTransient || fault.mayBePermanent, "\(fault) \(place): \(error)")
        // No answer says that the user's URL is wrong.
        expect(error.domain != .network || error.code != ReplicationError.NetworkCode.invalidURL.rawValue)
      }
      isBeyond = couch.server.log.count <= place
      couch.server.faults.withLock { $0 = { _ in nil } }
      let second = try couch.replicate(local)
      expect(second.status.error == nil && second.failed.isEmpty, "\(fault) \(place)")
      expectSame(couch.model.contents, try modelContents(local), "\(fault) \(place)")
      expect(couch.model.complaints, equals: [], "\(fault) \(place)")
      try expect(local.check(deep: true), equals: [], "\(fault) \(place)")
      number += times(25, sanitized: 11, long: 1)
    }
    expect(number > 12)
  }

  @Test("servers without an endpoint are asked in another way", arguments: [400, 404, 405, 415, 500, 501])
  func missing(_ status: Int) throws {
    let couch = try CouchServer()
    let local = try databases.open(.lmdb)
    try fill(local, couch.model)
    couch.model.state.withLock { state in
      state.missing["_bulk_get"] = status
      state.missing["_ensure_full_commit"] = status == 500 ? 404 : status
      if status == 405 || status == 501 { state.missing["_revs_diff"] = status }
      if status == 404 { state.missing["_local"] = 404 }
    }
    let outcome = try couch.replicate(local) { $0.connection.firstPause = 0.001 }
    expect(outcome.status.error == nil && outcome.failed.isEmpty)
    expectSame(couch.model.contents, try modelContents(local), "\(status)")
    expect(couch.model.complaints, equals: [])
    expect(couch.server.log.filter { $0.contains("_bulk_get") }.count < 3)
  }

  @Test("documents that are refused are reported, and the others go on") func refused() throws {
    let couch = try CouchServer()
    let local = try databases.open(.sqlite)
    try fill(local, couch.model)
    try local.save("large", ["text": .string(String(repeating: "x", count: 5_000))])
    couch.model.state.withLock { state in
      state.refused = ["here1": "forbidden", "here2": "unauthorized", "attached1": "forbidden"]
      state.maximumBytes = 4_000
    }
    let outcome = try couch.replicate(local)
    expect(outcome.status.error == nil)
    var expected = ["attached1": 403, "large": 413]
    for id in outcome.failed.keys where id.hasPrefix("here") {
      expected[id] = id.hasPrefix("here1") ? 403 : 401
    }
    expect(outcome.failed.mapValues(\.code) == expected && expected.count == 24)
    expect(couch.model.contents["here4"] != nil && couch.model.contents["attached2"] != nil)
    // They count as done.
    couch.server.forget()
    try expect(couch.replicate(local).documents.isEmpty)
    expect(couch.model.complaints, equals: [])
  }

  @Test("a document that is too large for a proxy stays undone, and the others go on") func tooLarge() throws
  {
    let model = CouchModel("db")
    let local = try databases.open(.lmdb)
    try fill(local, CouchModel("none"))
    try local.save("large", ["text": .string(String(repeating: "x", count: 9_000))])
    let limit = Lock(4_000)
    let server = try MiniServer { request in
      request.body.count > limit.withLock { $0 }
        ? MiniAnswer(413, "<html>Request Entity Too Large</html>") : model.answer(request)
    }
    var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
    configuration.direction = .push
    configuration.connection.firstPause = 0.001
    let first = try run(configuration)
    expect(first.status.error == nil)
    let expected = ["large": 413, "attached0": 413, "attached1": 413, "attached2": 413]
    expect(first.failed.mapValues(\.code), equals: expected)
    expect(first.documents.allSatisfy { $0.isUndone == ($0.error != nil) })
    limit.withLock { $0 = 100_000 }
    try expect(run(configuration).failed.isEmpty)
    expectSame(model.contents, try modelContents(local), "with a larger limit")
  }

  @Test(
    "documents are asked for together again after a server was busy, or an answer broke off"
  )
  func together() throws {
    // A document whose answer breaks off twice is asked for alone, and the next request may be for the same ones.
    for (fault, count) in [(MiniAnswer.Fault?.none, 6), (.truncated, 1)] {
      let model = CouchModel("db")
      for number in 0..<300 {
        model.add("doc\(number)", .init(history: ["1-a"], isDeleted: false, body: [:], attachments: []))
      }
      let left = Lock(count)
      let local = try databases.open(.lmdb)
      let server = try MiniServer { request in
        let isBusy =
          request.path == "/db/_bulk_get" && fault == nil
          && left.withLock { left in
            left -= 1
            return left >= 0
          }
        return isBusy ? MiniAnswer(429, "{\"error\":\"too_many_requests\"}") : model.answer(request)
      }
      server.faults.withLock {
        $0 = { request in
          guard request.path == "/db/_bulk_get" else { return nil }
          return left.withLock { left in
            left -= fault == nil ? 0 : 1
            return left >= 0 ? fault : nil
          }
        }
      }
      var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
      configuration.direction = .pull
      configuration.connection.firstPause = 0.001
      let outcome = try run(configuration)
      expect(outcome.status.error == nil && outcome.pulled.count == 300 && outcome.failed.isEmpty)
      expect(!server.log.contains { $0.hasPrefix("GET /db/doc") })
    }
  }

  @Test(
    "a document whose ID is too long there is refused for good, and the others go on", arguments: [400, 413])
  func longID(_ status: Int) throws {
    let model = CouchModel("db")
    let local = try databases.open(.lmdb)
    try fill(local, CouchModel("none"))
    let long = String(repeating: "long ", count: 30)
    try local.save(long, [:])
    var attached = MutableDocument(id: long + "2")
    attached.setAttachment("x", try Blob([1], contentType: "image/png"))
    try local.save(&attached)
    model.state.withLock { $0.maximumIDBytes = 100 }
    let server = try MiniServer { request in
      var answer = model.answer(request)
      if answer.status == 413 { answer.status = status }
      return answer
    }
    var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
    configuration.direction = .push
    let first = try run(configuration)
    expect(first.status.error == nil)
    expect(first.failed.mapValues(\.code), equals: [long: status, long + "2": status])
    try expect(run(configuration).documents.isEmpty)
    var here = try modelContents(local)
    (here[long], here[long + "2"]) = (nil, nil)
    expectSame(model.contents, here, "\(status)")
  }

  @Test(
    "a document with hundreds of leaves, each with an attachment, comes and goes", arguments: [true, false])
  func manyLeaves(_ hasBulkGet: Bool) throws {
    let (couch, copy) = (try CouchServer(), try CouchServer("copy"))
    if !hasBulkGet { couch.model.state.withLock { $0.missing["_bulk_get"] = 404 } }
    for number in 0..<(isShort ? 150 : 300) {
      let bytes = [UInt8(number & 255), UInt8(number >> 8)]
      couch.model.add(
        "doc",
        .init(
          history: ["2-\(number)", "1-a"], isDeleted: number % 7 == 3, body: ["n": .int(Int64(number))],
          attachments: number % 7 == 3
            ? []
            : [
              .init(
                name: "x", contentType: "image/png", revpos: 2, bytes: bytes, length: 2, isCompressed: false)
            ]))
    }
    let local = try databases.open(.sqlite)
    try expect(couch.replicate(local, .pull).failed.isEmpty && copy.replicate(local, .push).failed.isEmpty)
    expectSame(couch.model.contents, try modelContents(local), "pulled")
    expectSame(couch.model.contents, copy.model.contents, "pushed")
    expect(couch.model.complaints == [] && copy.model.complaints == [])
    try expect(couch.replicate(local, .pull).documents.isEmpty)
  }

  @Test("what is undone counts as failed as long as no later connection has mended it") func mended() throws {
    let couch = try CouchServer()
    let local = try databases.open(.sqlite)
    try fill(local, couch.model)
    couch.model.state.withLock { $0.refused = ["here1": "forbidden"] }
    // The answers of the first connection to what is sent are lost, so that all of it seems to have failed.
    let connections = Lock(0)
    couch.server.faults.withLock {
      $0 = { request in
        if request.method == "GET", request.path == "/db" { connections.withLock { $0 += 1 } }
        let isSending =
          request.path.hasSuffix("_bulk_docs") || request.method == "PUT" && request.path.contains("attached")
        return isSending && connections.withLock { $0 } == 1 ? .droppedAfter : nil
      }
    }
    var configuration = ReplicatorConfiguration(local, try .httpURL(couch.server.url + "db"))
    configuration.connection.firstPause = 0.001
    let replicator = Replicator(configuration)
    let failures = Lock((ReplicationFailures(), most: 0))
    let stopped = CountingSemaphore()
    let tokens = [
      replicator.observeDocuments { new in
        failures.withLock { failures in
          _ = failures.0.add(new)
          failures.most = max(failures.most, failures.0.count)
        }
      },
      replicator.observeStatus { status in
        failures.withLock { $0.0.note(status) }
        if status.activity == .stopped { stopped.signal() }
      },
    ]
    replicator.start()
    expect(stopped.wait(seconds: 60))
    for token in tokens { token.cancel() }
    expect(replicator.status.error == nil)
    failures.withLock { failures in
      failures.0.settle()
      // Those that validation refuses are here1, here10 … here19.
      expect(failures.most > 11 && failures.0.count == 11 && failures.0.undone.isEmpty)
    }
  }

  @Test(
    "attachments go inline to a server that takes no multipart, and all of them to one that has lost the old ones"
  )
  func otherForms() throws {
    let couch = try CouchServer()
    let local = try databases.open(.lmdb)
    try fill(local, couch.model)
    couch.model.state.withLock { $0.takesMultipart = false }
    try expect(couch.replicate(local).failed.isEmpty)
    expectSame(couch.model.contents, try modelContents(local), "inline")
    couch.model.state.withLock { state in
      state.takesMultipart = true
      for id in state.documents.keys where id.hasPrefix("attached") {
        for revision in state.documents[id]?.revisions.keys ?? [:].keys {
          state.documents[id]?.revisions[revision]?.attachments = []
        }
      }
    }
    for number in 0..<3 { try local.update("attached\(number)") { $0["n"] = 2 } }
    let outcome = try couch.replicate(local)
    expect(outcome.pushed, equals: ["attached0", "attached1", "attached2"])
    expectSame(couch.model.contents, try modelContents(local), "after 412")
    expect(couch.model.complaints, equals: [])
  }

  @Test("a server that is busy is asked again, and says for how long it is") func busy() throws {
    let couch = try CouchServer()
    let local = try databases.open(.lmdb)
    try fill(local, couch.model)
    for busy in [3, 7] {
      couch.model.state.withLock { $0.busy = busy }
      let outcome = try couch.replicate(local) { $0.connection.firstPause = 0.001 }
      expect(outcome.status.error == nil && outcome.failed.isEmpty)
    }
    let busy = try MiniServer { _ in
      var answer = MiniAnswer(503)
      answer.headers.append(("Retry-After", "77"))
      return answer
    }
    let timer = ManualTimer()
    var configuration = ReplicatorConfiguration(local, try .httpURL(busy.url + "db"))
    configuration.timer = timer
    let replicator = Replicator(configuration)
    replicator.start()
    eventually { replicator.status.activity == .offline }
    expect(replicator.status.error?.retryAfter, equals: 77)
    let asked = busy.log.count
    timer.advance(by: 76)
    expect(busy.log.count == asked && replicator.status.activity == .offline)
    timer.advance(by: 2)
    eventually { busy.log.count > asked }
    replicator.stop()
    eventually { replicator.status.activity == .stopped }
  }

  @Test(
    "statuses of the database end the replication",
    arguments: [
      (401, "/db"), (403, "/db"), (404, "/db"), (403, "/db/_changes"), (403, "/db/_bulk_docs"),
      (401, "/db/_bulk_get"), (403, "/db/_bulk_get"),
      (400, "/db/_revs_diff"),
    ])
  func permanent(_ status: Int, _ path: String) throws {
    let model = CouchModel("db")
    let local = try databases.open(.lmdb)
    try fill(local, model)
    let server = try MiniServer { request in
      request.path == path
        ? MiniAnswer(status, "{\"error\":\"no\",\"reason\":\"never\"}") : model.answer(request)
    }
    var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
    configuration.isContinuous = true
    let outcome = try run(configuration)
    expect(outcome.status.error?.domain == .http && outcome.status.error?.code == status)
    expect(outcome.status.error?.message.contains("never"), equals: true)
    // Nothing counts as pushed that wasn't.
    var again = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
    again.direction = .push
    let known = try Replicator(again).pendingDocumentIDs().union(model.contents.keys)
    try expect(Set(allLeaves(local).keys).subtracting(known).isEmpty)
  }
}
