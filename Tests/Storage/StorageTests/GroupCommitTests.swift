import Synchronization
import TestTools

@testable import Storage
@testable import StorageConformance
@testable import StorageMemory

/// The queue of writers over an engine in memory that counts calls, fails on demand, and notices every call
/// that comes at the wrong time or on the wrong thread.
@Suite struct GroupCommitTests {
  @Test func whatReturnsIsCommittedAndWhatThrowsIsNot() throws {
    let rounds = isLong ? 20 : 2
    for round in 0..<rounds {
      try campaign(threads: 8, writes: 300, seed: testSeed &+ UInt64(round), faultsIn: 12)
      try campaign(threads: 16, writes: 200, seed: testSeed &+ UInt64(round), faultsIn: 0)
    }
  }

  /// Random bodies on many threads, with faults at every call once in `faultsIn`.
  private func campaign(threads: Int, writes: Int, seed: UInt64, faultsIn: Int) throws {
    let line = try Line(GroupCommit(maximumMembers: 5), seed: seed, faultsIn: faultsIn)
    let outcomes = Lock<[String: Bool]>([:])
    try onThreads(threads) { thread in
      var generator = SeededGenerator(seed: seed ^ UInt64(thread))
      for number in 0..<writes {
        let token = "\(thread)/\(number)"
        do {
          if generator.once(in: 20) {
            try line.queue.exclusively { try line.watch.exclusive() }
            continue
          }
          let failsAfter = faultsIn > 0 && generator.once(in: faultsIn)
          try line.write { transaction in
            try line.watch.inBody {
              try transaction.put(token, "x", in: line.keyspace)
              if generator.once(in: 30) { Thread.sleep(forTimeInterval: 0.0001) }
              try expectNested { try line.write { _ in } }
              if failsAfter { throw DeliberateError(number: 1) }
            }
          }
          outcomes.withLock { $0[token] = true }
        } catch {
          outcomes.withLock { $0[token] = false }
        }
      }
    }
    let wanted = Set(outcomes.withLock { $0 }.filter(\.value).keys)
    #expect(try Set(line.entries()) == wanted, "seed \(seed)")
    #expect(line.watch.complaints == [], "seed \(seed)")
    #expect(line.watch.largestGroup <= 5)
    #expect(line.watch.largestGroup > 1, "nobody shared a commit")
    #expect(line.queue.waitingCount == 0)
    if faultsIn == 0 { #expect(outcomes.withLock { $0 }.values.allSatisfy { $0 }) }
  }

  @Test func writersThatWaitShareOneCommitInTheOrderTheyCame() throws {
    let line = try Line()
    let order = Lock<[Int]>([])
    try line.write { _ in
      line.queueUp(10) { number in
        try? line.write { transaction in
          try transaction.put("\(number)", "x", in: line.keyspace)
          order.withLock { $0.append(number) }
        }
      }
    }
    try line.threads.wait(seconds: 30)
    #expect(order.withLock { $0 } == Array(0..<10))
    #expect(line.watch.commits == 1, "one commit for the leader and ten who waited")
    #expect(line.watch.largestGroup == 11)
    #expect(try line.entries().count == 10)
  }

  @Test func aFailedCommitFailsEveryoneWhoTookPart() throws {
    let line = try Line()
    line.watch.failNextCommit()
    let failures = Lock(0)
    #expect(throws: InjectedFault.self) {
      try line.write { transaction in
        try transaction.put("leader", "x", in: line.keyspace)
        line.queueUp(4) { number in
          do {
            try line.write { try $0.put("\(number)", "x", in: line.keyspace) }
          } catch { failures.withLock { $0 += 1 } }
        }
      }
    }
    try line.threads.wait(seconds: 30)
    #expect(failures.withLock { $0 } == 4)
    #expect(try line.entries() == [])
  }

  @Test func aMemberThatBreaksTheTransactionFailsItAndThoseBehindGoOn() throws {
    let line = try Line()
    let outcomes = Lock<[Int: String]>([:])
    let code = try storageCode {
      try line.write { _ in
        line.queueUp(5) { number in
          do {
            try line.write { transaction in
              try transaction.put("\(number)", "x", in: line.keyspace)
              if number == 2 {
                line.watch.breakTransaction()
                throw StorageError(.diskFull, "the disk is full")
              }
            }
            outcomes.withLock { $0[number] = "committed" }
          } catch { outcomes.withLock { $0[number] = (error as? StorageError)?.code.rawValue } }
        }
      }
    }
    #expect(code == .diskFull)
    try line.threads.wait(seconds: 30)
    #expect(
      outcomes.withLock { $0 }
        == [0: "diskFull", 1: "diskFull", 2: "diskFull", 3: "committed", 4: "committed"])
    #expect(Set(try line.entries()) == ["3", "4"])
    #expect(line.watch.complaints == [])
  }

  @Test func whatAMemberThrowsLeavesItsCallOnlyAfterTheCommit() throws {
    let line = try Line()
    let commits = Lock<[Int]>([])
    try line.write { transaction in
      try transaction.put("leader", "x", in: line.keyspace)
      line.queueUp(3) { number in
        do {
          try line.write { transaction in
            // It sees what isn't committed yet, and says so.
            if try transaction.text("leader", in: line.keyspace) != nil, number != 1 {
              throw DeliberateError(number: number)
            }
          }
        } catch is DeliberateError {
          commits.withLock { $0.append(line.watch.commits) }
        } catch { Issue.record(error) }
      }
    }
    try line.threads.wait(seconds: 30)
    #expect(commits.withLock { $0 } == [1, 1])
    #expect(try line.entries() == ["leader"])
  }

  @Test func whoThrewBecauseOfWhatWasLostIsToldToRunAgain() throws {
    let line = try Line()
    let outcomes = Lock<[Int: String]>([:])
    line.watch.failNextCommit()
    #expect(throws: InjectedFault.self) {
      try line.write { transaction in
        try transaction.put("leader", "x", in: line.keyspace)
        line.queueUp(3) { number in
          var runs = 0
          let outcome: String
          do {
            func run() throws {
              try line.write { transaction in
                runs += 1
                let isThere = try transaction.text("leader", in: line.keyspace) != nil
                if isThere, number != 1 { throw DeliberateError(number: number) }
                try transaction.put("\(number)", "x", in: line.keyspace)
              }
            }
            do { try run() } catch let error as StorageError where error.code == .conflict { try run() }
            outcome = "committed in run \(runs)"
          } catch { outcome = "\(type(of: error))" }
          outcomes.withLock { $0[number] = outcome }
        }
      }
    }
    try line.threads.wait(seconds: 30)
    // A member whose own writes were lost gets the error of the commit.
    #expect(
      outcomes.withLock { $0 }
        == [0: "committed in run 2", 1: "InjectedFault", 2: "committed in run 2"])
    #expect(Set(try line.entries()) == ["0", "2"])
    #expect(line.watch.complaints == [])
  }

  @Test func theLineageChangesOnlyWhenWhatABodyLeftIsLost() throws {
    let line = try Line()
    let first = line.queue.lineage
    try line.write { try $0.put("a", "x", in: line.keyspace) }
    #expect(throws: DeliberateError.self) { try line.write { _ in throw DeliberateError(number: 1) } }
    #expect(line.queue.lineage == first)
    line.watch.failNextCommit()
    #expect(throws: InjectedFault.self) { try line.write { _ in } }
    #expect(line.queue.lineage != first)
    let second = line.queue.lineage
    // Nobody begins on what a failed commit has lost with the old lineage.
    line.watch.failNextCommit()
    let seen = Lock<[UInt64]>([])
    try? line.write { _ in
      line.queueUp(2) { _ in
        try? line.write { _ in seen.withLock { $0.append(line.queue.lineage) } }
      }
    }
    try line.threads.wait(seconds: 30)
    #expect(seen.withLock { $0 } == [second, second])
    #expect(line.queue.lineage != second)
    #expect(GroupCommit().lineage != GroupCommit().lineage)
  }

  @Test func anExclusiveCallerKeepsItsPlaceInTheLine() throws {
    let line = try Line()
    let order = Lock<[Int]>([])
    try line.write { _ in
      line.queueUp(6) { number in
        if number == 2 || number == 3 {
          try? line.queue.exclusively {
            try line.watch.exclusive()
            order.withLock { $0.append(number) }
            try expectNested { try line.queue.exclusively {} }
          }
        } else {
          try? line.write { _ in order.withLock { $0.append(number) } }
        }
      }
    }
    try line.threads.wait(seconds: 30)
    #expect(order.withLock { $0 } == [0, 1, 2, 3, 4, 5])
    #expect(line.watch.commits == 2, "one before the exclusive callers and one after them")
    #expect(line.watch.complaints == [])
  }

  @Test func aBodyOfAnotherThreadIsNotNested() throws {
    let line = try Line()
    try line.write { transaction in
      line.queueUp(1) { _ in try? line.write { try $0.put("other", "x", in: line.keyspace) } }
      try expectNested { try line.write { _ in } }
      try expectNested { try line.queue.exclusively {} }
      try transaction.put("mine", "x", in: line.keyspace)
    }
    try line.threads.wait(seconds: 30)
    #expect(Set(try line.entries()) == ["mine", "other"])
    // After its body a thread may write again.
    try line.write { _ in }
  }
}

/// A queue of writers over a store with one keyspace, and the threads that stand in it.
private struct Line: Sendable {
  let queue: GroupCommit
  let store = MemoryStore()
  let watch: Watch
  let keyspace: Keyspace
  let threads = TestThreads()

  init(_ queue: GroupCommit = GroupCommit(), seed: UInt64 = testSeed, faultsIn: Int = 0) throws {
    self.queue = queue
    watch = Watch(seed: seed, faultsIn: faultsIn)
    var made = Keyspace(number: 0, shape: .entries)
    try queue.run(MemoryWriteGroup(store: store)) { made = try $0.createKeyspace("k", shape: .entries) }
    keyspace = made
  }

  func write(_ body: (any WriteTransaction) throws -> Void) throws {
    try queue.run(WatchedGroup(MemoryWriteGroup(store: store), watch), body)
  }

  /// Calls `body` with each number below `count` on a thread, each when those before it wait in the queue.
  func queueUp(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    for number in 0..<count {
      threads.start { body(number) }
      eventually { queue.waitingCount == number + 1 }
    }
  }

  func entries() throws -> [String] {
    try MemorySnapshot(state: store.state.withLock { $0 }, ended: nil).entries(of: keyspace)
      .map { String(decoding: $0.key, as: UTF8.self) }
  }
}

private func expectNested(_ body: () throws -> Void) throws {
  guard try storageCode(of: body) == .nestedWrite else {
    throw ConformanceFailure("a nested call was let in")
  }
}

struct InjectedFault: Error {}

/// What the groups of one test report to.
private final class Watch: Sendable {
  private struct State {
    var generator: SeededGenerator
    var leader: UInt = 0
    var member: UInt = 0
    var isInside = false
    var size = 0
    var largestGroup = 0
    var commits = 0
    var isBroken = false
    var failsNextCommit = false
    var complaints: [String] = []
  }
  private let state: Lock<State>
  private let faultsIn: Int

  init(seed: UInt64, faultsIn: Int) {
    state = Lock(State(generator: SeededGenerator(seed: seed)))
    self.faultsIn = faultsIn
  }

  var complaints: [String] { state.withLock { $0.complaints } }
  var largestGroup: Int { state.withLock { $0.largestGroup } }
  var commits: Int { state.withLock { $0.commits } }
  var isBroken: Bool { state.withLock { $0.isBroken } }

  func failNextCommit() { state.withLock { $0.failsNextCommit = true } }
  func breakTransaction() { state.withLock { $0.isBroken = true } }

  /// Runs one call alone; two at once are a complaint.
  private func alone(_ what: String, _ body: (inout State, UInt) throws -> Void) throws {
    try state.withLock { state in
      if state.isInside { state.complaints.append("\(what) came during another call") }
      try body(&state, UInt(pthread_self()))
    }
  }

  private func fault(_ state: inout State) throws {
    if faultsIn > 0, state.generator.once(in: faultsIn) {
      // Now and then the whole transaction goes with it.
      if state.leader != 0, state.member != 0, state.generator.once(in: 4) { state.isBroken = true }
      throw InjectedFault()
    }
  }

  func begin() throws {
    try alone("begin") { state, thread in
      if state.leader != 0 { state.complaints.append("begin inside a transaction") }
      try fault(&state)
      state.leader = thread
      state.isBroken = false
      state.size = 1
    }
  }

  func end(commits: Bool) throws {
    try alone(commits ? "commit" : "abort") { state, thread in
      if state.leader != thread { state.complaints.append("end on another thread than begin") }
      if state.member != 0 { state.complaints.append("end inside a member") }
      if commits, state.isBroken { state.complaints.append("commit of a broken transaction") }
      state.leader = 0
      state.largestGroup = max(state.largestGroup, state.size)
      guard commits else { return }
      if state.failsNextCommit {
        state.failsNextCommit = false
        throw InjectedFault()
      }
      try fault(&state)
      state.commits += 1
    }
  }

  func beginMember() throws {
    try alone("beginMember") { state, thread in
      if state.leader == 0 || state.member != 0 { state.complaints.append("beginMember at a wrong time") }
      if state.leader == thread { state.complaints.append("the leader is its own member") }
      if state.isBroken { state.complaints.append("beginMember in a broken transaction") }
      state.size += 1
      try fault(&state)
      state.member = thread
    }
  }

  func keepMember() throws {
    try alone("keepMember") { state, thread in
      if state.member != thread { state.complaints.append("keepMember on a wrong thread") }
      try fault(&state)
      state.member = 0
    }
  }

  func abortMember() {
    try? alone("abortMember") { state, thread in
      if state.member != thread { state.complaints.append("abortMember on a wrong thread") }
      state.member = 0
    }
  }

  func inBody(_ body: () throws -> Void) throws {
    state.withLock { state in
      if state.isInside { state.complaints.append("two bodies at once") }
      state.isInside = true
    }
    defer { state.withLock { $0.isInside = false } }
    try body()
  }

  func exclusive() throws {
    try alone("exclusively") { state, _ in
      if state.leader != 0 { state.complaints.append("exclusively inside a transaction") }
    }
  }
}

/// Passes calls on to an engine in memory after the watch has seen them.
private final class WatchedGroup: WriteGroup {
  private let group: MemoryWriteGroup
  private let watch: Watch

  init(_ group: MemoryWriteGroup, _ watch: Watch) {
    self.group = group
    self.watch = watch
  }

  var isBroken: Bool { watch.isBroken }

  func begin() throws -> any WriteTransaction {
    try watch.begin()
    return try group.begin()
  }

  func commit() throws {
    try watch.end(commits: true)
    try group.commit()
  }

  func abort() { try? watch.end(commits: false) }

  func beginMember() throws -> any WriteTransaction {
    try watch.beginMember()
    return try group.beginMember()
  }

  func keepMember() throws {
    try watch.keepMember()
    try group.keepMember()
  }

  func abortMember() {
    watch.abortMember()
    group.abortMember()
  }
}
