import Foundation
import Synchronization
import TestSupport
import Testing

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
    let queue = GroupCommit(maximumMembers: 5)
    let store = MemoryStore()
    let watch = Watch(seed: seed, faultsIn: faultsIn)
    let keyspace = try makeKeyspace(queue, store)
    let outcomes = Lock<[String: Bool]>([:])
    onThreads(threads) { thread in
      var generator = SeededGenerator(seed: seed ^ UInt64(thread))
      for number in 0..<writes {
        let token = "\(thread)/\(number)"
        do {
          if generator.once(in: 20) {
            try queue.exclusively { try watch.exclusive() }
            continue
          }
          let failsAfter = faultsIn > 0 && generator.once(in: faultsIn)
          try queue.run(WatchedGroup(MemoryWriteGroup(store: store), watch)) { transaction in
            try watch.inBody {
              try transaction.put(token, "x", in: keyspace)
              if generator.once(in: 30) { Thread.sleep(forTimeInterval: 0.0001) }
              try expectNested { try queue.run(WatchedGroup(MemoryWriteGroup(store: store), watch)) { _ in } }
              if failsAfter { throw DeliberateError(number: 1) }
            }
          }
          outcomes.withLock { $0[token] = true }
        } catch {
          outcomes.withLock { $0[token] = false }
        }
      }
    }
    let kept = Set(try entries(store, keyspace))
    let wanted = Set(outcomes.withLock { $0 }.filter(\.value).keys)
    #expect(kept == wanted, "seed \(seed)")
    #expect(watch.complaints == [], "seed \(seed)")
    #expect(watch.largestGroup <= 5)
    #expect(watch.largestGroup > 1, "nobody shared a commit")
    #expect(queue.waitingCount == 0)
    if faultsIn == 0 { #expect(outcomes.withLock { $0 }.values.allSatisfy { $0 }) }
  }

  @Test func writersThatWaitShareOneCommitInTheOrderTheyCame() throws {
    let queue = GroupCommit()
    let store = MemoryStore()
    let watch = Watch(seed: testSeed, faultsIn: 0)
    let keyspace = try makeKeyspace(queue, store)
    let order = Lock<[Int]>([])
    let finished = ThreadGroup()
    try queue.run(WatchedGroup(MemoryWriteGroup(store: store), watch)) { _ in
      for number in 0..<10 {
        finished.start {
          try? queue.run(WatchedGroup(MemoryWriteGroup(store: store), watch)) { transaction in
            try transaction.put("\(number)", "x", in: keyspace)
            order.withLock { $0.append(number) }
          }
        }
        waitUntil { queue.waitingCount == number + 1 }
      }
    }
    #expect(finished.wait(seconds: 30))
    #expect(order.withLock { $0 } == Array(0..<10))
    #expect(watch.commits == 1, "one commit for the leader and ten who waited")
    #expect(watch.largestGroup == 11)
    #expect(try entries(store, keyspace).count == 10)
  }

  @Test func aFailedCommitFailsEveryoneWhoTookPart() throws {
    let queue = GroupCommit()
    let store = MemoryStore()
    let watch = Watch(seed: testSeed, faultsIn: 0)
    let keyspace = try makeKeyspace(queue, store)
    watch.failNextCommit()
    let failures = Lock(0)
    let finished = ThreadGroup()
    #expect(throws: InjectedFault.self) {
      try queue.run(WatchedGroup(MemoryWriteGroup(store: store), watch)) { transaction in
        try transaction.put("leader", "x", in: keyspace)
        for number in 0..<4 {
          finished.start {
            do {
              try queue.run(WatchedGroup(MemoryWriteGroup(store: store), watch)) {
                try $0.put("\(number)", "x", in: keyspace)
              }
            } catch { failures.withLock { $0 += 1 } }
          }
          waitUntil { queue.waitingCount == number + 1 }
        }
      }
    }
    #expect(finished.wait(seconds: 30))
    #expect(failures.withLock { $0 } == 4)
    #expect(try entries(store, keyspace) == [])
  }

  @Test func aMemberThatBreaksTheTransactionFailsItAndThoseBehindGoOn() throws {
    let queue = GroupCommit()
    let store = MemoryStore()
    let watch = Watch(seed: testSeed, faultsIn: 0)
    let keyspace = try makeKeyspace(queue, store)
    let outcomes = Lock<[Int: String]>([:])
    let finished = ThreadGroup()
    let error = #expect(throws: StorageError.self) {
      try queue.run(WatchedGroup(MemoryWriteGroup(store: store), watch)) { _ in
        for number in 0..<5 {
          finished.start {
            do {
              try queue.run(WatchedGroup(MemoryWriteGroup(store: store), watch)) { transaction in
                try transaction.put("\(number)", "x", in: keyspace)
                if number == 2 {
                  watch.breakTransaction()
                  throw StorageError(.diskFull, "the disk is full")
                }
              }
              outcomes.withLock { $0[number] = "committed" }
            } catch { outcomes.withLock { $0[number] = (error as? StorageError)?.code.rawValue } }
          }
          waitUntil { queue.waitingCount == number + 1 }
        }
      }
    }
    #expect(error?.code == .diskFull)
    #expect(finished.wait(seconds: 30))
    #expect(
      outcomes.withLock { $0 }
        == [0: "diskFull", 1: "diskFull", 2: "diskFull", 3: "committed", 4: "committed"])
    #expect(Set(try entries(store, keyspace)) == ["3", "4"])
    #expect(watch.complaints == [])
  }

  @Test func anExclusiveCallerKeepsItsPlaceInTheLine() throws {
    let queue = GroupCommit()
    let store = MemoryStore()
    let watch = Watch(seed: testSeed, faultsIn: 0)
    _ = try makeKeyspace(queue, store)
    let order = Lock<[Int]>([])
    let finished = ThreadGroup()
    try queue.run(WatchedGroup(MemoryWriteGroup(store: store), watch)) { _ in
      for number in 0..<6 {
        finished.start {
          if number == 2 || number == 3 {
            try? queue.exclusively {
              try watch.exclusive()
              order.withLock { $0.append(number) }
              try expectNested { try queue.exclusively {} }
            }
          } else {
            try? queue.run(WatchedGroup(MemoryWriteGroup(store: store), watch)) { _ in
              order.withLock { $0.append(number) }
            }
          }
        }
        waitUntil { queue.waitingCount == number + 1 }
      }
    }
    #expect(finished.wait(seconds: 30))
    #expect(order.withLock { $0 } == [0, 1, 2, 3, 4, 5])
    #expect(watch.commits == 2, "one before the exclusive callers and one after them")
    #expect(watch.complaints == [])
  }

  @Test func aBodyOfAnotherThreadIsNotNested() throws {
    let queue = GroupCommit()
    let store = MemoryStore()
    let keyspace = try makeKeyspace(queue, store)
    let finished = ThreadGroup()
    try queue.run(MemoryWriteGroup(store: store)) { transaction in
      finished.start {
        try? queue.run(MemoryWriteGroup(store: store)) { try $0.put("other", "x", in: keyspace) }
      }
      waitUntil { queue.waitingCount == 1 }
      try expectNested { try queue.run(MemoryWriteGroup(store: store)) { _ in } }
      try expectNested { try queue.exclusively {} }
      try transaction.put("mine", "x", in: keyspace)
    }
    #expect(finished.wait(seconds: 30))
    #expect(Set(try entries(store, keyspace)) == ["mine", "other"])
    // After its body a thread may write again.
    try queue.run(MemoryWriteGroup(store: store)) { _ in }
  }

  private func makeKeyspace(_ queue: GroupCommit, _ store: MemoryStore) throws -> Keyspace {
    var keyspace = Keyspace(number: 0, shape: .entries)
    try queue.run(MemoryWriteGroup(store: store)) {
      keyspace = try $0.createKeyspace("k", shape: .entries)
    }
    return keyspace
  }

  private func entries(_ store: MemoryStore, _ keyspace: Keyspace) throws -> [String] {
    try MemorySnapshot(state: store.state.withLock { $0 }, ended: nil).entries(of: keyspace)
      .map { String(decoding: $0.key, as: UTF8.self) }
  }
}

private func expectNested(_ body: () throws -> Void) throws {
  do {
    try body()
  } catch let error as StorageError where error.code == .nestedWrite { return }
  throw ConformanceFailure("a nested call was let in")
}

/// Threads that are waited for.
final class ThreadGroup: Sendable {
  private let count = Lock(0)
  private let ended = CountingSemaphore()

  func start(_ body: @escaping @Sendable () -> Void) {
    count.withLock { $0 += 1 }
    Thread.detachNewThread { [ended] in
      body()
      ended.signal()
    }
  }

  /// False when a thread is still running after so many seconds.
  func wait(seconds: Double) -> Bool {
    (0..<count.withLock { $0 }).allSatisfy { _ in ended.wait(seconds: seconds) }
  }
}

/// Waits for what another thread is about to do.
private func waitUntil(_ condition: () -> Bool) {
  let end = Date() + 30
  while !condition() {
    guard Date() < end else {
      Issue.record("what was waited for didn't come")
      return
    }
    Thread.sleep(forTimeInterval: 0.000_2)
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
