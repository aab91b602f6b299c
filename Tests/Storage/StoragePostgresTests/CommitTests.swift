import Expectations
import TestTools
import Testing

@testable import StoragePostgres

/// Commits whose answer or request is lost.
@Suite(.enabled(if: hasServer))
struct CommitTests {
  /// An engine behind a proxy, and another one that asks the server itself.
  private func withProxy(
    _ change: (inout PostgresSettings) -> Void = { _ in },
    _ body: (PostgresEngine, LossyProxy, PostgresEngine) throws -> Void
  ) throws {
    let server = try PostgresServer.shared.get()
    let directory = TemporaryDirectory()
    let proxy = try LossyProxy(directory.path, server: server.directory)
    defer { proxy.end() }
    let location = try newLocation()
    let direct = try open(location)
    let there = location.replacing(server.directory, with: directory.path)
    try open(there, .openExisting, change).closing { engine in
      try direct.closing { direct in try body(engine, proxy, direct) }
    }
  }

  @Test func aCommitWhoseAnswerIsLostIsFoundAndNotMadeAgain() throws {
    try withProxy { engine, proxy, direct in
      let keyspace = try engine.fill(["a": "1"])
      for number in 0..<5 {
        proxy.set(.losesAnswer)
        var runs = 0
        try engine.write { transaction in
          runs += 1
          try transaction.put("b\(number)", "2", in: keyspace)
        }
        expect(runs, equals: 1)
        expect(proxy.faults, equals: number + 1)
        try expect(try direct.texts().count, equals: number + 2)
        try expect(try engine.texts(), equals: try direct.texts())
      }
      try expect(try direct.checkIntegrity(), equals: [])
    }
  }

  @Test func aCommitThatTheServerNeverGotIsAConflict() throws {
    try withProxy { engine, proxy, direct in
      let keyspace = try engine.fill(["a": "1"])
      proxy.set(.losesRequest)
      try expect(try storageCode { try engine.write { try $0.put("b", "2", in: keyspace) } } == .conflict)
      try expect(try direct.texts(), equals: ["a": "1"])
      // It can be run again.
      try engine.write { try $0.put("b", "2", in: keyspace) }
      try expect(try direct.texts(), equals: ["a": "1", "b": "2"])
    }
  }

  /// The commit of somebody else comes between a lost answer and the question.
  @Test func aLostCommitIsFoundBehindCommitsOfOthers() throws {
    try withProxy { engine, proxy, direct in
      let keyspace = try engine.fill(["a": "1"])
      for fault in [LossyProxy.Fault.losesAnswer, .losesRequest] {
        proxy.set(fault)
        proxy.accepts(false)
        let name = "\(fault)"
        let writer = TestThreadResult {
          try storageCode { try engine.write { try $0.put(name, "2", in: keyspace) } }
        }
        eventually { proxy.faults == (fault == .losesAnswer ? 1 : 2) }
        for number in 0..<3 { try direct.write { try $0.put("\(name)\(number)", "3", in: keyspace) } }
        proxy.accepts(true)
        try expect(try writer.value() == (fault == .losesAnswer ? nil : .conflict))
        try expect(try direct.texts()[name] == (fault == .losesAnswer ? "2" : nil))
      }
    }
  }

  @Test func aServerThatCanNoLongerBeAskedIsToldAsSuch() throws {
    try withProxy({ $0.reconnectSeconds = 0 }) { engine, proxy, direct in
      let keyspace = try engine.fill(["a": "1"])
      proxy.set(.losesAnswer)
      proxy.accepts(false)
      let error = try thrown(StorageError.self) { try engine.write { try $0.put("b", "2", in: keyspace) } }
      expect(error?.code == .ioError)
      expect(error?.message.contains("can't be asked") == true)
      proxy.accepts(true)
      // The next transaction finds it.
      let isThere = try engine.write { try $0.contains(Array("b".utf8).span.bytes, in: keyspace) }
      expect(isThere)
      try expect(try direct.texts(), equals: ["a": "1", "b": "2"])
    }
  }

  @Test func aServerThatHangsIsLeftAfterTheTimeForAnAnswer() throws {
    try withProxy({
      $0.answerSeconds = 1
      $0.lockSeconds = 1
    }) { engine, proxy, direct in
      let keyspace = try engine.fill(["a": "1"])
      proxy.set(.hangs)
      try expect(try storageCode { try engine.write { try $0.put("b", "2", in: keyspace) } } == .conflict)
      try expect(try direct.texts(), equals: ["a": "1"])
    }
  }

  @Test func parametersAndAnswersOfManyMegabytesPassAtOnce() throws {
    try withProxy { engine, _, direct in
      let keyspace = try engine.fill([:])
      let value = [UInt8](repeating: 7, count: 3 << 20)
      try engine.write { transaction in
        for number in 0..<8 { try transaction.put([UInt8(number + 1)], value, in: keyspace) }
      }
      try direct.read { transaction in
        var count = 0
        try transaction.scan(keyspace) { _, found in
          let isEqual = found.isEqual(to: value.span.bytes)
          expect(isEqual)
          count += 1
          return true
        }
        expect(count, equals: 8)
      }
    }
  }
}
