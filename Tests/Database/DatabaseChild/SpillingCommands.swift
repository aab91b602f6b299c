// Commands of the child process for the tests of the temporary files of queries. They make the database `test` in DIRECTORY, or open it. The
// files are in TEMPORARY, which is empty.
//
//   spilling fails ENGINE DIRECTORY TEMPORARY SEED    lets calls on the files fail, one in each run of a query, and files not grow any more
//   spilling ends ENGINE DIRECTORY TEMPORARY SEED     cancels queries, and lets their time pass, at calls on their files
//   spilling refused ENGINE DIRECTORY TEMPORARY       asks as a user who may not write in TEMPORARY
//   spilling dies ENGINE DIRECTORY TEMPORARY CALL N   kills itself at the nth "open", "read" or "write" of a query's files, or, for "name",
//                                                     when its first file has a name
//   spilling named ENGINE DIRECTORY TEMPORARY         runs a query whose first file has a name
//
// After each query they look whether anything is left of it, and ask again. The last line is "done", with the number of queries that ended
// so.

import ChildSupport
import Foundation
import Query
import Storage
import StorageConformance
import SystemCalls
import TestSupport
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

enum SpillingCommands: ChildCommands {
  static let name = "spilling"
  static let usage = "fails|ends|refused|dies|named ENGINE DIRECTORY TEMPORARY [SEED | CALL N]"

  static func run(_ arguments: [String]) throws {
    guard arguments.count >= 4 else { throw WrongUsage() }
    let queries = try SpillingQueries(try openTestDatabase(arguments[1], in: arguments[2]), arguments[3])
    let count =
      switch (arguments[0], arguments.count) {
      case ("fails", 5): try queries.fail(seed: UInt64(arguments[4]) ?? 0)
      case ("ends", 5): try queries.end(seed: UInt64(arguments[4]) ?? 0)
      case ("refused", 4): try queries.refuse()
      case ("dies", 6): try queries.die(at: arguments[4], UInt(arguments[5]) ?? 0)
      case ("named", 4): try queries.runWithName()
      default: throw WrongUsage()
      }
    say("done \(count)")
  }
}

/// What ends a query at a call: C calls a function without a context.
nonisolated(unsafe) private var ended = QueryCancellation()

/// Queries whose rows go to temporary files.
private struct SpillingQueries {
  private static let texts = [
    "SELECT s, n FROM _ ORDER BY s", "SELECT DISTINCT s FROM _",
    "SELECT s, COUNT(DISTINCT n) AS a, MEDIAN(v) AS b, ARRAY_AGG(n) AS c FROM _ GROUP BY s",
    "SELECT n, SUM(v) OVER (PARTITION BY k ORDER BY s, n) AS a, LAG(s) OVER (ORDER BY n) AS b FROM _",
    "SELECT a.n, b.n AS o FROM _ AS a JOIN _ AS b ON b.s = a.s",
    "SELECT RAW s FROM _ WHERE k < 2 EXCEPT SELECT RAW s FROM _ WHERE k = 1",
  ]
  private static let kinds = [("open", CALL_OPEN), ("read", CALL_READ), ("write", CALL_WRITE)].map {
    ($0, Int32($1.rawValue))
  }

  private let database: Database
  private let directory: String
  private let expected: [String: [String]]
  private let memory = QueryShare(bytes: 1 << 30)
  private let files = QueryShare(bytes: 1 << 30)
  private var descriptors = 0

  init(_ database: Database, _ directory: String) throws {
    self.database = database
    self.directory = directory
    if try database.document("d0") == nil {
      try database.saveBatch(0..<500) { number in
        let text = "\(number * 37 % 310)" + String(repeating: "x", count: 200)
        return (
          "d\(number)",
          [
            "s": .string(text), "n": .int(Int64(number)), "k": .int(Int64(number % 3)),
            "v": .int(Int64(number % 40)),
          ]
        )
      }
    }
    expected = try Self.texts.reduce(into: [:]) { expected, text in
      expected[text] = try database.query(text).run().map { try $0.json() }
    }
    // The first of them makes what stays.
    for text in Self.texts { try expectRows(text, QueryCancellation(timeLimit: .seconds(1_000))) }
    descriptors = try openDescriptors()
  }

  private func openDescriptors() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
  }

  private func rows(_ text: String, _ cancellation: QueryCancellation) throws -> [String] {
    var options = Query.Options(temporaryDirectory: directory)
    options.spillsFrom = 16_000
    options.sharedMemory = memory
    options.sharedFiles = files
    return try database.query(text, options: options).run(cancellation: cancellation).map { try $0.json() }
  }

  private func expectRows(_ text: String, _ cancellation: QueryCancellation = QueryCancellation()) throws {
    let found = try rows(text, cancellation)
    guard found == expected[text] else { throw ConformanceFailure("\(text): other rows, \(found.count)") }
  }

  /// Runs a query, expects an error or its rows, and looks whether anything is left of it.
  private func run<Failure: Error>(
    _ text: String, _ what: String, _ cancellation: QueryCancellation = QueryCancellation(),
    throwing: Failure.Type, _ isRight: (Failure?) -> Bool
  ) throws {
    var failure: Failure?
    do { try expectRows(text, cancellation) } catch let error as Failure { failure = error }
    guard isRight(failure) else {
      throw ConformanceFailure("\(text), \(what): \(failure.map { "\($0)" } ?? "no error")")
    }
    let names = try FileTree.names(in: directory)
    guard try names.isEmpty && files.used == 0 && memory.used == 0 && openDescriptors() == descriptors else {
      throw ConformanceFailure(
        "\(text), \(what): left \(names), \(files.used) and \(memory.used) bytes, \(try openDescriptors()) descriptors"
          + " of \(descriptors)")
    }
    try expectRows(text)
  }

  /// How often a query makes calls of each kind on its files.
  private func calls(_ text: String) throws -> [Int32: Int] {
    watch_folder(directory)
    try expectRows(text)
    return try Self.kinds.reduce(into: [:]) { calls, kind in
      calls[kind.1] = Int(watched_calls(kind.1))
      guard calls[kind.1] != 0 else { throw ConformanceFailure("\(text): no \(kind.0)") }
    }
  }

  // MARK: Commands

  func fail(seed: UInt64) throws -> Int {
    var random = SeededGenerator(seed: seed)
    var count = 0
    typealias Case = (kind: UInt32, error: Int32, isHalf: Bool, code: StorageError.Code?)
    let cases: [Case] = [
      (CALL_OPEN.rawValue, EIO, false, .ioError), (CALL_OPEN.rawValue, ENOSPC, false, .diskFull),
      (CALL_OPEN.rawValue, EMFILE, false, .ioError), (CALL_OPEN.rawValue, EROFS, false, .permissionDenied),
      (CALL_OPEN.rawValue, EINTR, false, nil), (CALL_OPEN.rawValue, EOPNOTSUPP, false, nil),
      (CALL_READ.rawValue, EIO, false, .ioError), (CALL_READ.rawValue, EINTR, false, nil),
      (CALL_WRITE.rawValue, EIO, false, .ioError), (CALL_WRITE.rawValue, ENOSPC, false, .diskFull),
      (CALL_WRITE.rawValue, EDQUOT, false, .diskFull), (CALL_WRITE.rawValue, EINTR, false, nil),
      (CALL_WRITE.rawValue, EIO, true, nil), (CALL_CLOSE.rawValue, EIO, false, nil),
    ]
    for text in Self.texts {
      let calls = try calls(text)
      for (kind, error, isHalf, code) in cases {
        let after = random.below(calls[Int32(kind)] ?? 1)
        fail_call(Int32(kind), UInt(after), error, isHalf ? 1 : 0)
        try run(text, "call \(kind) \(after) error \(error)", throwing: StorageError.self) { failure in
          failed_call() != nil && failure?.code == code
            && (code == nil
              || failure?.path == directory && failure?.engineCode == Int(error)
                && "\(failure.map { "\($0)" } ?? "")".contains(directory))
        }
        count += 1
      }
      // A real disk that is full: it takes a part of a block, and then no more.
      for size in [1, 700, 4_000] {
        let unlimit = limitFileSize(size)
        defer { unlimit() }
        let failure = try thrown(StorageError.self) { try rows(text, QueryCancellation()) }
        guard failure?.code == .diskFull, failure?.path == directory else {
          throw ConformanceFailure("\(text), \(size) bytes: \(failure.map { "\($0)" } ?? "no error")")
        }
        count += 1
      }
      try run(text, "after a full disk", throwing: StorageError.self) { $0 == nil }
    }
    guard try database.check().isEmpty else { throw ConformanceFailure("the check finds faults") }
    return count
  }

  func end(seed: UInt64) throws -> Int {
    var random = SeededGenerator(seed: seed)
    var count = 0
    for text in Self.texts {
      let calls = try calls(text)
      for (name, kind) in Self.kinds {
        for isTime in [false, true] {
          ended = isTime ? QueryCancellation(timeLimit: .milliseconds(40)) : QueryCancellation()
          // After the last calls, the query may be done.
          let after = random.below(max(1, (calls[kind] ?? 0) * 3 / 4))
          if isTime {
            at_call(kind, UInt(after)) { while !ended.isCancelled { usleep(1_000) } }
          } else {
            at_call(kind, UInt(after)) { ended.cancel() }
          }
          let code = isTime ? QueryError.Code.timedOut : .cancelled
          try run(text, "ended at \(name) \(after)", ended, throwing: QueryError.self) { $0?.code == code }
          count += 1
        }
      }
    }
    return count
  }

  func refuse() throws -> Int {
    chmod(directory, 0o500)
    if geteuid() == 0 {
      chmod(directory, 0o555)
      guard setgroups(0, nil) == 0, setgid(65_534) == 0, setuid(65_534) == 0 else {
        throw ConformanceFailure("can't become another user: errno \(errno)")
      }
    }
    for text in Self.texts {
      let failure = try thrown(StorageError.self) { try rows(text, QueryCancellation()) }
      // Another user may not come as far as the directory.
      guard failure?.code == .permissionDenied, failure?.path == directory else {
        throw ConformanceFailure("\(text): \(failure.map { "\($0)" } ?? "no error")")
      }
      guard try database.query(text).run().count == expected[text]?.count, files.used == 0 else {
        throw ConformanceFailure("\(text): other rows")
      }
    }
    return Self.texts.count
  }

  func die(at call: String, _ number: UInt) throws -> Int {
    watch_folder(directory)
    if call == "name" {
      fail_call(Int32(CALL_OPEN.rawValue), 0, EOPNOTSUPP, 0)
      die_at_change(changed_files())
    } else {
      guard let kind = Self.kinds.first(where: { $0.0 == call }) else { throw WrongUsage() }
      at_call(kind.1, number) { kill(getpid(), SIGKILL) }
    }
    try expectRows(Self.texts[Int(number) % Self.texts.count])
    throw ConformanceFailure("no \(call) \(number)")
  }

  func runWithName() throws -> Int {
    watch_folder(directory)
    fail_call(Int32(CALL_OPEN.rawValue), 0, EOPNOTSUPP, 0)
    try expectRows(Self.texts[0])
    guard failed_call() != nil else { throw ConformanceFailure("no file was opened") }
    return 1
  }
}
