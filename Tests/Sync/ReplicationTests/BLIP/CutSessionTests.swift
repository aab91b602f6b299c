import BLIP
import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone
import Transport

@testable import Replication
@testable import ReplicationBLIP

/// One end of a pipe that is cut after a number of frames, sent and received together.
private final class CuttingTransport: MessageTransport {
  private let inner: PipeTransport
  private let left: Lock<Int>
  private static let cut = TransportClose.webSocket(1006, "cut")

  init(_ inner: PipeTransport, after count: Int) {
    self.inner = inner
    left = Lock(count)
  }

  /// Whether it was cut.
  var isCut: Bool { left.withLock { $0 < 0 } }

  private func take(_ messages: [[UInt8]]) -> (whole: [[UInt8]], isCut: Bool) {
    left.withLock { left in
      if left < 0 { return ([], true) }
      if messages.count <= left {
        left -= messages.count
        return (messages, false)
      }
      defer { left = -1 }
      return (Array(messages.prefix(left)), true)
    }
  }

  func receive(_ completion: @escaping @Sendable (Result<[[UInt8]], TransportClose>) -> Void) {
    inner.receive { [self] result in
      guard case .success(let messages) = result else { return completion(result) }
      let (whole, isCut) = take(messages)
      if isCut { inner.close(Self.cut) }
      completion(whole.isEmpty ? .failure(Self.cut) : .success(whole))
    }
  }

  func send(_ messages: [[UInt8]], _ completion: @escaping @Sendable (TransportClose?) -> Void) {
    let (whole, isCut) = take(messages)
    guard isCut else { return inner.send(messages, completion) }
    inner.send(whole) { _ in }
    inner.close(Self.cut)
    completion(Self.cut)
  }

  func close(_ close: TransportClose) { inner.close(close) }
}

@Suite("Sessions that are cut") struct CutSessionTests {
  private let databases = TestDatabases()

  /// Makes both sides: new, edited, deleted and conflicting documents, and blobs.
  private func makeSides(_ engines: (EngineName, EngineName)) throws -> (Database, Database) {
    let (client, server) = (try databases.open(engines.0), try databases.open(engines.1))
    for number in 0..<8 {
      var document = MutableDocument(
        id: "old\(number)", ["n": JSONValue(number), "text": .string(Self.long)])
      try client.save(&document)
    }
    _ = try run(ReplicatorConfiguration(client, ReplicatorTarget(pipeConnector(server))))
    func edit(_ database: Database, _ id: String, _ name: String) throws {
      var document = try #require(try database.document(id)).toMutable()
      document["name"] = .string(name)
      try database.save(&document)
    }
    try edit(client, "old0", "client")
    try edit(server, "old1", "server")
    try edit(client, "old2", "client")
    try edit(server, "old2", "server")
    _ = try client.delete("old3")
    _ = try server.delete("old4")
    for (database, name) in [(client, "c"), (server, "s")] {
      for number in 0..<4 {
        var document = MutableDocument(id: "\(name)\(number)", ["n": JSONValue(number)])
        if number == 3 {
          document.set(try Blob(Array("blob of \(name)".utf8), contentType: "text/plain"), forKey: "blob")
        }
        try database.save(&document)
      }
    }
    return (client, server)
  }
  private static let long = String(repeating: "text ", count: 80)

  @Test("at any frame, in both directions, go on with a new connection until both sides are equal")
  func everyFrame() throws {
    var cuts = 0
    for step in 0... {
      let pair: (EngineName, EngineName) = step % 2 == 0 ? (.sqlite, .lmdb) : (.lmdb, .sqlite)
      let (client, server) = try makeSides(pair)
      let first = Lock<CuttingTransport?>(nil)
      let connector = BLIPConnector(remoteID: LocalConnector(server).remoteID, name: "cut") { _, done in
        let (end, passive) = PipeTransport.pair()
        BLIPResponder(BLIPConnection(passive, name: "server"), server).start()
        let transport = first.withLock { first -> any MessageTransport in
          guard first == nil else { return end }
          let cutting = CuttingTransport(end, after: step)
          first = cutting
          return cutting
        }
        done(.success(BLIPConnector.Opened(transport, subprotocol: ReplicationProtocol.offered[0])))
      }
      var configuration = ReplicatorConfiguration(client, ReplicatorTarget(connector))
      configuration.maximumRetries = 5
      configuration.maximumRetryWait = 0
      let outcome = try run(configuration)
      expect(outcome.status.error == nil, "cut after \(step) frames")
      try expectEqual(client, server, "cut after \(step) frames")
      try expect(client.check(deep: true).isEmpty && server.check(deep: true).isEmpty)
      guard first.withLock({ $0?.isCut ?? false }) else { break }
      cuts += 1
    }
    expect(cuts > 30)
    print("cut sessions: a session of \(cuts) frames was cut after each of them")
  }
}
