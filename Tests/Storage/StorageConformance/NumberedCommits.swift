import Foundation
import Storage

/// Numbered commits with a known result: the content of a file after commit N of a thread is known.
///
/// Commit N of thread T puts an entry into three keyspaces, one of each shape. It deletes from two of them
/// the entries of an older commit. A partial, repeated or reordered commit is therefore noticed.
struct NumberedCommits {
  /// The number of latest commits per thread whose entries are kept in `index`.
  static let keptIndex = 30
  static let slots = 40

  let seed: UInt64
  /// The number of latest commits per thread whose entries are kept in `log`.
  var keptLog = 400

  static func make(_ engine: any StorageEngine) throws {
    try engine.write { transaction in
      _ = try transaction.createKeyspace("log", shape: .sequences)
      _ = try transaction.createKeyspace("state", shape: .documents)
      _ = try transaction.createKeyspace("index", shape: .entries)
    }
  }

  func perform(_ number: Int, thread: Int, _ transaction: any WriteTransaction) throws {
    let log = try transaction.known("log")
    let index = try transaction.known("index")
    try transaction.put(logKey(number, thread), payload(number, thread), in: log)
    if number > keptLog { try remove(logKey(number - keptLog, thread), log, transaction) }
    try transaction.put(
      stateKey(number, thread), Array("\(number)/".utf8) + payload(number, thread),
      in: transaction.known("state"))
    let isNew = try transaction.insert(indexKey(number, thread), [], in: index)
    try expect(isNew, "the index has commit \(number) of thread \(thread) already")
    if number > Self.keptIndex { try remove(indexKey(number - Self.keptIndex, thread), index, transaction) }
  }

  private func remove(_ key: [UInt8], _ keyspace: Keyspace, _ transaction: any WriteTransaction) throws {
    try expect(transaction.delete(key, in: keyspace), "an entry of an older commit is missing")
  }

  /// Checks that every commit of every thread is complete or absent, and that all acknowledged commits are
  /// there. At most one more commit than the acknowledged ones may be there. Returns the last commit of each
  /// thread.
  func verify(_ engine: any StorageEngine, acknowledged: [Int]) throws -> [Int] {
    try engine.read { transaction in
      let log = try transaction.known("log")
      let state = try transaction.known("state")
      let index = try transaction.known("index")
      var last: [Int] = []
      var counts = (log: 0, state: 0, index: 0)
      for (thread, acknowledged) in acknowledged.enumerated() {
        let logged = try transaction.entries(of: log, .prefix([0, 0, UInt8(thread)]))
        let number = logged.last.map { Int($0.key[4...].reduce(0) { $0 << 8 | UInt32($1) }) } ?? 0
        try expect(
          number == acknowledged || number == acknowledged + 1,
          "thread \(thread) was told of commit \(acknowledged), and the last one found is \(number)")
        let first = number > keptLog ? number - keptLog + 1 : 1
        try expectEqual(
          logged.count, number < first ? 0 : number - first + 1, "commits of thread \(thread) in the log")
        for (offset, entry) in logged.enumerated() {
          try expectEqual(entry.key, logKey(first + offset, thread), "key in the log")
          try expect(
            entry.value == payload(first + offset, thread), "commit \(first + offset) has another value")
        }
        for number in stride(from: number, to: max(0, number - Self.slots), by: -1) {
          try expect(
            transaction.bytes(stateKey(number, thread), in: state)
              == Array("\(number)/".utf8) + payload(number, thread),
            "the state of commit \(number) of thread \(thread) is another")
        }
        for number in stride(from: number, to: max(0, number - Self.keptIndex), by: -1) {
          try expect(
            transaction.bytes(indexKey(number, thread), in: index) != nil,
            "commit \(number) of thread \(thread) isn't in the index")
        }
        counts.log += logged.count
        counts.state += min(number, Self.slots)
        counts.index += min(number, Self.keptIndex)
        last.append(number)
      }
      try expectEqual(transaction.count(of: log), counts.log, "count of the log")
      try expectEqual(transaction.count(of: state), counts.state, "count of the state")
      try expectEqual(transaction.count(of: index), counts.index, "count of the index")
      try expectEqual(transaction.entries(of: index).count, counts.index, "entries of the index")
      return last
    }
  }

  private func logKey(_ number: Int, _ thread: Int) -> [UInt8] {
    sequenceKey(UInt64(thread) << 40 | UInt64(number))
  }

  private func stateKey(_ number: Int, _ thread: Int) -> [UInt8] {
    Array("\(thread)/\(number % Self.slots)".utf8)
  }

  private func indexKey(_ number: Int, _ thread: Int) -> [UInt8] {
    var generator = SeededGenerator(seed: seed &+ UInt64(thread << 32 + number))
    return generator.bytes(4) + Array("\(thread)/\(number)".utf8)
  }

  /// The value of a commit: mostly small, sometimes many pages.
  private func payload(_ number: Int, _ thread: Int) -> [UInt8] {
    var generator = SeededGenerator(seed: seed ^ UInt64(thread << 32 + number))
    let size =
      switch generator.below(100) {
      case 0: 60_000
      case 1..<10: 6_000
      default: 300
      }
    return generator.bytes(generator.below(size))
  }
}

/// The report of a child for each returned commit: the thread and the number, 4 bytes each.
struct Acknowledgement {
  static let byteCount = 8

  static func send(_ number: Int, thread: Int) {
    let record = [UInt32(thread).littleEndian, UInt32(number).littleEndian]
    // A write of eight bytes is atomic.
    _ = record.withUnsafeBytes { Glibc.write(1, $0.baseAddress, $0.count) }
  }

  /// The last number of each thread.
  static func last(in bytes: [UInt8], after last: [Int]) throws -> [Int] {
    try expectEqual(bytes.count % byteCount, 0, "half an acknowledgement")
    var last = last
    for start in stride(from: 0, to: bytes.count, by: byteCount) {
      let word = { (at: Int) in bytes[at..<at + 4].reversed().reduce(0) { $0 << 8 | Int($1) } }
      let (thread, number) = (word(start), word(start + 4))
      try expect(last.indices.contains(thread), "an acknowledgement of thread \(thread)")
      try expectEqual(number, last[thread] + 1, "an acknowledgement of thread \(thread)")
      last[thread] = number
    }
    return last
  }
}

/// Lets no file of this process grow above so many bytes until the returned closure is called. A write beyond
/// them fails.
package func limitFileSize(_ bytes: Int) -> () -> Void {
  signal(SIGXFSZ, SIG_IGN)
  let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
  var before = rlimit()
  getrlimit(resource, &before)
  var limit = rlimit(rlim_cur: rlim_t(bytes), rlim_max: before.rlim_max)
  setrlimit(resource, &limit)
  return { [before] in
    var before = before
    setrlimit(resource, &before)
  }
}

extension Child {
  /// `commit PATH SEED LAST…` writes numbered commits until it is killed, with one thread per number LAST.
  /// The last commit in the file is LAST or one more.
  func commit() throws {
    let commits = NumberedCommits(seed: UInt64(arguments[1]) ?? 0)
    let opened = try engine.open(arguments[0], options())
    let acknowledged = try arguments[2...].indices.map { try number($0) }
    let last = try commits.verify(opened, acknowledged: acknowledged)
    for (thread, last) in last.enumerated() {
      // The file may have one commit that wasn't acknowledged. It is acknowledged now.
      if last > acknowledged[thread] { Acknowledgement.send(last, thread: thread) }
      Thread.detachNewThread {
        do {
          for number in (last + 1)... {
            try opened.write { try commits.perform(number, thread: thread, $0) }
            Acknowledgement.send(number, thread: thread)
          }
        } catch {
          FileHandle.standardError.write(Data("commit: \(error)\n".utf8))
          exit(3)
        }
      }
    }
    while true { pause() }
  }

  /// `fill PATH SEED THREADS LIMIT reading|blind` writes numbered commits until no file may grow above LIMIT bytes and
  /// every thread has failed with `diskFull`. It checks that exactly the acknowledged commits are there, and
  /// continues after the limit is raised. With `blind` it reads only then.
  func fill() throws {
    let commits = NumberedCommits(seed: UInt64(arguments[1]) ?? 0, keptLog: .max)
    let threads = try number(2)
    let opened = try engine.open(arguments[0], options())
    try NumberedCommits.make(opened)
    let unlimit = limitFileSize(try number(3))
    let last = Lock([Int](repeating: 0, count: threads))
    let failures = Lock<[String]>([])
    let ended = CountingSemaphore()
    for thread in 0..<threads {
      Thread.detachNewThread {
        do {
          for number in 1...100_000 {
            try opened.write { try commits.perform(number, thread: thread, $0) }
            last.withLock { $0[thread] = number }
          }
          failures.withLock { $0.append("the space never ended") }
        } catch let error as StorageError where error.code == .diskFull {
        } catch {
          failures.withLock { $0.append("\((error as? StorageError)?.code.rawValue ?? "") \(error)") }
        }
        ended.signal()
      }
    }
    for _ in 0..<threads where !ended.wait(seconds: 60) { throw ConformanceFailure("a writer hangs") }
    try expectEqual(failures.withLock { $0 }, [], "failures other than a full disk")
    let acknowledged = last.withLock { $0 }
    var isBlind = arguments.count > 4 && arguments[4] == "blind"
    func expectExactly(_ when: String) throws {
      if isBlind { return }
      try expectEqual(commits.verify(opened, acknowledged: acknowledged), acknowledged, "commits \(when)")
    }
    try expectExactly("on the full disk")
    // Large values fail too, even if small ones don't: those that fit a cache, and those that don't.
    for size in [4 << 20, 64 << 20] {
      try expectError(.diskFull, from: "a value of \(size) bytes on a full disk") {
        try opened.write {
          try $0.put(Array("large".utf8), [UInt8](repeating: 1, count: size), in: $0.known("state"))
        }
      }
    }
    try expectExactly("after another failure")

    unlimit()
    isBlind = false
    try expectExactly("with room again")
    // What a library wrote in the background while there was no room may have failed just now: one commit may still be told of it.
    var mayBeTold = true
    for thread in 0..<threads {
      for number in acknowledged[thread] + 1...acknowledged[thread] + 50 {
        do {
          try opened.write { try commits.perform(number, thread: thread, $0) }
        } catch let error as StorageError where error.code == .diskFull && mayBeTold {
          mayBeTold = false
          try opened.write { try commits.perform(number, thread: thread, $0) }
        }
        last.withLock { $0[thread] = number }
      }
    }
    let end = last.withLock { $0 }
    try expectEqual(commits.verify(opened, acknowledged: end), end, "commits with room again")
    try expectEqual(opened.maintenance.checkIntegrity(), [], "faults")
    try opened.close()
    say(end.map(String.init).joined(separator: " "))
  }

  /// `load-full PATH` loads more than files may hold, and continues the load after the limit is raised.
  /// Nothing of the load may remain.
  func loadOnFullDisk() throws {
    let opened = try engine.open(arguments[0], options())
    for shape in KeyspaceShape.allCases {
      let keyspace = try opened.write { try $0.createKeyspace("k\(shape.rawValue)", shape: shape) }
      let unlimit = limitFileSize(3 << 20)
      defer { unlimit() }
      let value = [UInt8](repeating: 7, count: 1_000)
      try expectError(.diskFull, .transactionTooLarge, from: "a load on a full disk") {
        try opened.write { transaction in
          try transaction.load(keyspace) { append in
            for number in 0..<40_000 {
              do { try append(sequenceKey(UInt64(number)).span.bytes, value.span.bytes) } catch { unlimit() }
            }
          }
        }
      }
      try expectEqual(opened.read { try $0.entries(of: keyspace).count }, 0, "entries of \(shape)")
      try expectEqual(opened.maintenance.checkIntegrity(), [], "faults")
    }
    try opened.close()
    say("done")
  }
}
