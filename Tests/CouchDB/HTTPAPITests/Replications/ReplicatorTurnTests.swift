import Fleece
import Foundation
@testable import HTTPAPI
import Storage
import TestSupport
import Testing
import Touchstone

/// Of several services with one `_replicator`, one at a time runs the replications of the documents.
@Suite struct ReplicatorTurnTests {
  /// A second service over the databases of a client.
  private final class Other {
    let timer = ManualTimer()
    let client: APIClient

    init(_ first: ReplicationClient) {
      client = APIClient(folder: first.folder, timer: timer)
      client.service.startReplications()
    }

    func ask(_ method: String, _ target: String, _ body: JSONValue? = nil) throws -> Response {
      let headers = body == nil ? [] : [("Content-Type", "application/json")]
      return try client.ask(method, target, headers: headers, body: body?.jsonText() ?? [], user: "admin")
    }

    func get(_ target: String) throws -> JSONValue { try ask("GET", target).json() }

    func state(_ id: String) throws -> String? {
      try get("/_scheduler/docs/_replicator/\(id)")["state"].string
    }

    var running: Int { client.service.runningReplications }
  }

  private static let live: JSONValue = ["source": "a", "target": "b", "continuous": true]

  /// A service that runs a continuous replication, and another one that has found that so.
  private func pair(_ engine: EngineName, _ body: (ReplicationClient, Other) throws -> Void) throws {
    let first = try ReplicationClient(engine)
    try first.make("a", documents: 3)
    for name in ["b", "c"] { try first.make(name) }
    try expect(first.ask("PUT", "/_replicator/live", Self.live).status, equals: 201)
    // One that is alone begins at once.
    try eventually { try first.state("live") == "running" && first.contents("b").count == 3 }
    let second = Other(first)
    eventually { second.timer.count > 0 }
    try body(first, second)
  }

  @Test(arguments: someEngines) func oneRunsAndTheOtherShowsIt(_ engine: EngineName) throws {
    try pair(engine) { first, second in
      for _ in 0..<5 {
        let asked = second.timer.delays.count
        second.timer.advance(by: 2)
        eventually { second.timer.delays.count > asked }
      }
      expect(second.running, equals: 0)
      // What it is told by the documents themselves is enough until the other one has said more.
      try expect(second.state("live"), equals: "initializing")
      let job = try first.get("/_scheduler/docs/_replicator/live")
      try eventually {
        first.timer.advance(by: 2)
        return try second.state("live") == "running"
      }
      let shown = try second.get("/_scheduler/docs")["docs"][0]
      for name in ["database", "doc_id", "id", "source", "target", "error_count", "start_time"] {
        expect(shown[name], equals: job[name], "\(name)")
      }
      expect(shown["info"].isNull)
      // These are of the one that is asked.
      try expect(second.get("/_scheduler/jobs")["total_rows"], equals: 0)
      try expect(second.get("/_active_tasks"), equals: [])
      // A document that comes through the other one.
      try expect(second.ask("PUT", "/_replicator/once", ["source": "a", "target": "c"]).status, equals: 201)
      try eventually { try second.state("once") == "completed" }
      try expect(first.contents("c"), equals: first.contents("a"))
      try expect(second.get("/_replicator/once")["_rev"].string?.hasPrefix("2-"), equals: true)
      // One that fails says why.
      try expect(second.ask("PUT", "/_replicator/bad", ["source": "x", "target": "c"]).status, equals: 201)
      try eventually {
        first.timer.advance(by: 2)
        return try second.state("bad") == "crashing"
      }
      try expect(
        second.get("/_scheduler/docs/_replicator/bad")["info"]["error"].string,
        equals: "db_not_found: could not open x")
      // And one that is deleted ends.
      let rev = try second.get("/_replicator/live")["_rev"].string ?? ""
      try expect(second.ask("DELETE", "/_replicator/live?rev=\(rev)").status, equals: 200)
      eventually { first.client.service.runningReplications == 0 }
      expect(second.running, equals: 0)
    }
  }

  @Test(arguments: someEngines) func anotherOneTakesOverWhenItIsStopped(_ engine: EngineName) throws {
    try pair(engine) { first, second in
      first.client.service.stopReplications(seconds: 30)
      expect(first.client.service.runningReplications, equals: 0)
      eventually {
        second.timer.advance(by: 2)
        return second.running == 1
      }
      try expect(second.ask("PUT", "/a/later", [:]).status, equals: 201)
      try eventually { try first.contents("b") == first.contents("a") }
      try expect(second.state("live"), equals: "running")
      try expect(second.get("/_active_tasks")[0]["doc_id"], equals: "live")
    }
  }

  /// Here the lock of a directory is lost because somebody removes its file.
  @Test(arguments: someEngines) func whoLosesTheTurnEndsItsReplications(_ engine: EngineName) throws {
    try pair(engine) { first, second in
      let file = first.folder.path + "/_replicator.touchstone/lock-replicator"
      expect(unlink(file), equals: 0)
      eventually {
        second.timer.advance(by: 2)
        return second.running == 1
      }
      eventually {
        first.timer.advance(by: 2)
        return first.client.service.runningReplications == 0
      }
      // It doesn't begin again as long as the other one runs.
      for _ in 0..<5 {
        let asked = first.timer.delays.count
        first.timer.advance(by: 2)
        eventually { first.timer.delays.count > asked }
      }
      expect(first.client.service.runningReplications == 0 && second.running == 1)
      try expect(first.ask("PUT", "/a/later", [:]).status, equals: 201)
      try eventually { try first.contents("b") == first.contents("a") }
      second.client.service.stopReplications(seconds: 30)
      eventually {
        first.timer.advance(by: 2)
        return first.client.service.runningReplications == 1
      }
      try eventually { try first.state("live") == "running" }
    }
  }

  /// A request's replication is that of the service that was asked.
  @Test func aRequestIsDoneByWhoWasAsked() throws {
    try pair(.lmdb) { first, second in
      let answer = try second.ask("POST", "/_replicate", ["source": "a", "target": "c"])
      try expect(answer.json()["history"][0]["docs_written"], equals: 3)
      let continuous: JSONValue = ["source": "a", "target": "c", "continuous": true]
      try expect(second.ask("POST", "/_replicate", continuous).status, equals: 202)
      eventually { second.running == 1 }
      try expect(second.get("/_scheduler/jobs")["total_rows"], equals: 1)
      try expect(first.get("/_scheduler/jobs")["total_rows"], equals: 1)
    }
  }

  @Test func aDatabaseThatIsOnlyReadGetsNoLock() throws {
    let first = try ReplicationClient(.lmdb)
    try expect(first.ask("PUT", "/_replicator/live", Self.live).status, equals: 201)
    try eventually { try first.state("live") == "crashing" }
    first.client.service.stopReplications(seconds: 30)
    try first.folder.close()
    let file = first.folder.path + "/_replicator.touchstone/lock-replicator"
    expect(unlink(file), equals: 0)
    var configuration = DatabaseServiceConfiguration()
    configuration.isReadOnly = true
    let reader = APIClient(folder: first.folder, configuration)
    reader.service.start()
    try expect(reader.ask("GET", "/_replicator", user: "admin").status, equals: 200)
    reader.service.stopReplications(seconds: 30)
    expect(access(file, F_OK), equals: -1)
  }
}
