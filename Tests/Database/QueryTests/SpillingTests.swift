import Foundation
import Storage
import TestSupport

@testable import Query
@testable import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// Rows that memory doesn't hold go to temporary files, and come back as if they had never been there.
@Suite struct SpillingTests {
  private let databases = TestDatabases()

  private func filled(_ engine: EngineName, _ count: Int = 3_000) throws -> Database {
    let database = try databases.open(engine)
    var random = SeededGenerator(seed: testSeed)
    try database.saveBatch(0..<count) { number in
      let text = String(Int.random(in: 0..<count / 2, using: &random)) + String(repeating: "x", count: 500)
      return (
        "d\(1_000_000 + number)",
        [
          "s": .string(text), "n": .int(Int64(number)), "m": .int(Int64(count - number)),
          "k": .int(Int64(number % 3)), "r": .int(Int64.random(in: 0..<200, using: &random)),
          "v": number % 5 == 0
            ? .null : number % 3 == 0 ? .int(Int64(number % 40)) : .double(Double(number % 40) + 0.1),
          "w": .double(
            Double.random(in: -1...1, using: &random)
              * Double(sign: .plus, exponent: Int.random(in: -90...90, using: &random), significand: 1)),
          "o": ["a": [.int(Int64(number % 7)), "é\(number % 4)"], "b": .bool(number % 2 == 0)],
        ]
      )
    }
    return database
  }

  /// How many documents most statements are about.
  private static let count = isShort ? 900 : 3_000

  private static let statements: [String] = [
    "SELECT s, n FROM _ ORDER BY s", "SELECT s, n FROM _ ORDER BY s DESC, n",
    "SELECT n, o, s FROM _ ORDER BY s COLLATE UNICODE, o DESC OFFSET 7",
    "SELECT s, n FROM _ ORDER BY s LIMIT \(count * 5 / 6)",
    "SELECT s, n FROM _ ORDER BY r LIMIT \(count * 4 / 5) OFFSET \(count / 30)",
    "SELECT DISTINCT s FROM _", "SELECT DISTINCT s, r FROM _ LIMIT \(count * 19 / 30) OFFSET 3",
    "SELECT DISTINCT s FROM _ ORDER BY r, n",
    "SELECT DISTINCT o, s FROM _ ORDER BY n DESC LIMIT \(count * 3 / 10)",
    "SELECT DISTINCT RAW s FROM _ ORDER BY s",
    "SELECT s, COUNT(*) AS c FROM _ GROUP BY s",
    "SELECT s, SUM(v) AS a, AVG(v) AS b, MIN(v) AS c, MAX(s) AS d, COUNT(v) AS e, COUNTN(v) AS f, VARIANCE(v) AS g,"
      + " STDDEV_POP(v) AS h FROM _ GROUP BY s",
    "SELECT s, SUM(DISTINCT v) AS a, AVG(DISTINCT v) AS b, COUNT(DISTINCT r) AS c, MEDIAN(v) AS d, MEDIAN(DISTINCT v) AS e,"
      + " ARRAY_AGG(n) AS f, ARRAY_AGG(DISTINCT r) AS g, VARIANCE(DISTINCT v) AS h FROM _ GROUP BY s HAVING COUNT(*) > 1",
    "SELECT COUNT(DISTINCT s) AS a, COUNT(DISTINCT n) AS b, MEDIAN(n) AS c, MEDIAN(DISTINCT n) AS d, SUM(DISTINCT n) AS e FROM _",
    "SELECT s, n, MAX(r) AS m FROM _ GROUP BY s",
    "SELECT s, n, MIN(v) AS m FROM _ GROUP BY s ORDER BY n DESC",
    "SELECT r, k, s, COUNT(*) AS c FROM _ GROUP BY ROLLUP(s, k)",
    "SELECT k, ARRAY_AGG(n) AS l FROM _ GROUP BY k",
    // What three doubles don't hold.
    "SELECT SUM(w) AS a, AVG(w) AS b, VARIANCE(w) AS c, SUM(DISTINCT w) AS d, MEDIAN(n) AS e FROM _",
    "SELECT k, SUM(w) AS a, AVG(w * 1e250) AS b, STDDEV(w) AS c FROM _ GROUP BY k",
    "SELECT s AS g, SUM(1e300) AS a, SUM(1e-300) AS b FROM _ GROUP BY s",
    "SELECT n, ROW_NUMBER() OVER (PARTITION BY k ORDER BY s, n) AS a, RANK() OVER (ORDER BY r) AS b, s FROM _",
    "SELECT n, s, LAG(s, 2, 'none') OVER (ORDER BY n) AS a, LEAD(v) IGNORE NULLS OVER (ORDER BY r, n) AS b FROM _",
    "SELECT n, s, SUM(v) OVER (ORDER BY r RANGE BETWEEN 3 PRECEDING AND 2 FOLLOWING) AS a,"
      + " MAX(s) OVER (PARTITION BY k ORDER BY n ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS b,"
      + " NTILE(7) OVER (ORDER BY n) AS c, CUME_DIST() OVER (ORDER BY r) AS d FROM _",
    "SELECT n, s, FIRST_VALUE(s) OVER (PARTITION BY r ORDER BY n) AS a, NTH_VALUE(s, 2) OVER (ORDER BY n) AS b,"
      + " RATIO_TO_REPORT(n) OVER (PARTITION BY k) AS c FROM _ ORDER BY n DESC",
    "SELECT s, COUNT(*) AS c, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM _ GROUP BY s",
    "SELECT a.n, b.n AS o FROM _ AS a JOIN _ AS b ON b.s = a.s AND b.n < a.n",
    "SELECT a.n, b.n AS o FROM _ AS a LEFT JOIN _ AS b ON b.s = a.s AND b.k = 1 WHERE a.k = 0",
    "SELECT COUNT(*) AS c FROM _ AS a JOIN _ AS b ON b.m = a.n",
    "SELECT RAW s FROM _ WHERE k < 2 UNION SELECT RAW s FROM _ WHERE k > 0",
    "SELECT RAW s FROM _ WHERE k < 2 INTERSECT SELECT RAW s FROM _ WHERE k > 0",
    "SELECT RAW s FROM _ WHERE k < 2 EXCEPT SELECT RAW s FROM _ WHERE k = 1",
    "SELECT RAW s FROM _ WHERE k < 2 INTERSECT ALL SELECT RAW s FROM _ WHERE k > 0",
    "SELECT RAW s FROM _ EXCEPT ALL SELECT RAW s FROM _ WHERE k = 1",
    "SELECT s, r, c FROM (SELECT s, r, COUNT(*) AS c FROM _ GROUP BY s, r) AS x ORDER BY c DESC, s LIMIT \(count / 6)",
    "SELECT n FROM _ WHERE n < \(count * 2 / 5) OR m < \(count * 7 / 15)",
    "SELECT n, s FROM _ AS a WHERE EXISTS (SELECT 1 FROM _ AS b WHERE b.s = a.s AND b.n > a.n) ORDER BY s, n",
  ]

  @Test("the rows and their order are those of a run in memory", arguments: someEngines)
  func same(_ engine: EngineName) throws {
    let database = try filled(engine, Self.count)
    for index in [[], ["n"], ["m"]] {
      if let name = index.first { try database.createIndex(name, on: index.map { .init(stringLiteral: $0) }) }
      for text in Self.statements {
        let expected = try database.query(text).run().map { try $0.json() }
        // With memory for half of the rows, at a given number of bytes, and for each row.
        for (limit, from) in [(Self.count * 700, nil), (64 << 20, Self.count * 20), (64 << 20, 1)]
          as [(Int, Int?)]
        {
          // An index changes where rows come from, and not when they go. On a strict engine the bytes that are lent count.
          if from == 1, index != [] || isShort && isStrict { continue }
          if from == nil, isShort, index != [] || isStrict { continue }
          var options = Query.Options(memoryLimit: limit)
          options.spillsFrom = from
          let found = try database.query(text, options: options).run().map { try $0.json() }
          expect(
            found == expected,
            "\(text), \(limit), \(from ?? -1): \(found.count) rows, \(expected.count) expected")
        }
      }
    }
  }

  /// Most of the memory is that of the tables of groups and states, which grow by doubling.
  @Test("groups with many aggregates go to files at every limit") func smallGroups() throws {
    let database = try databases.open(.lmdb)
    try database.saveBatch(0..<8) { number in
      ("d\(number)", ["l": .array((0..<1_000).map { .int(Int64(number * 1_000 + $0)) })])
    }
    let all = ["COUNT(*)", "SUM(n)", "MIN(n)", "MAX(n)", "AVG(n)", "SUM(n + 1)", "MIN(n + 3)", "AVG(n + 5)"]
    for count in isShort ? [1, 8] : [1, 3, 8] {
      let aggregates = all.prefix(count).enumerated().map { "\($1) AS a\($0)" }.joined(separator: ", ")
      for groups in ["n", "n, TOSTRING(n)"] {
        let text = "SELECT n, \(aggregates) FROM _ UNNEST l AS n GROUP BY \(groups)"
        let expected = try database.query(text).run().map { try $0.json() }
        for limit in [1 << 18, 300_000, 700_000] + (isShort ? [] : [1 << 19, 1 << 20, 3 << 20]) {
          let query = try database.query(text, options: .init(memoryLimit: limit))
          try expect(query.run().map { try $0.json() } == expected, "\(text), \(limit)")
        }
      }
    }
  }

  @Test("frames that are added up one by one don't stay") func frames() throws {
    let database = try databases.open(.lmdb)
    try database.saveBatch(0..<8) { number in
      ("d\(number)", ["l": .array((0..<1_000).map { .int(Int64(number * 1_000 + $0)) })])
    }
    for aggregate in ["MEDIAN(n)", "ARRAY_AGG(n)", "COUNT(DISTINCT n)", "STDDEV(n)", "MIN(DISTINCT n)"] {
      let text =
        "SELECT n, \(aggregate) OVER (PARTITION BY n % 4 ORDER BY n ROWS BETWEEN 100 PRECEDING AND 3 PRECEDING"
        + " EXCLUDE TIES) AS a FROM _ UNNEST l AS n"
      let expected = try database.query(text).run().map { try $0.json() }
      let found = try database.query(text, options: .init(memoryLimit: 1 << 20)).run().map { try $0.json() }
      expect(found == expected, "\(text)")
    }
  }

  @Test("an analysis tells how much went to files, and without any that there were none")
  func analysis() throws {
    let database = try filled(.lmdb)
    let query = try database.query("SELECT s FROM _ ORDER BY s", options: .init(memoryLimit: 1 << 20))
    try expect(query.explain(analyze: true).lines[0].contains("temporary files"))
    let small = try database.query("SELECT n FROM _ ORDER BY s LIMIT 3", options: .init(memoryLimit: 1 << 20))
    try expect(!small.explain(analyze: true).lines[0].contains("temporary files"))
  }

  @Test("the limit of files holds, and a directory that can't be used is named")
  func limits() throws {
    let database = try filled(.lmdb)
    let texts = [
      "SELECT s, n FROM _ ORDER BY s", "SELECT DISTINCT s FROM _", "SELECT s, COUNT(*) FROM _ GROUP BY s",
      "SELECT s, LAG(s) OVER (ORDER BY n) FROM _", "SELECT COUNT(*) FROM _ AS a JOIN _ AS b ON b.s = a.s",
      "SELECT RAW s FROM _ EXCEPT SELECT RAW s FROM _ WHERE k = 1",
    ]
    for text in texts {
      let limited = try database.query(
        text, options: .init(memoryLimit: 1 << 18, temporaryFileLimit: 40_000))
      let error = #expect(throws: QueryError.self, "\(text)") { try limited.run() }
      expect(error?.code, equals: .diskLimit, "\(text)")
      expect(error?.message.contains("40000 bytes"), equals: true)
      let refused = try database.query(text, options: .init(memoryLimit: 1 << 18, temporaryFileLimit: 0))
      try expect(queryCode { _ = try refused.run() }, equals: .memoryLimit, "\(text)")
      try withTemporaryDirectory { directory in
        let missing = directory + "/missing"
        let lost = try database.query(
          text, options: .init(memoryLimit: 1 << 18, temporaryDirectory: missing))
        let failure = #expect(throws: StorageError.self, "\(text)") { try lost.run() }
        expect(failure?.code == .notFound && failure?.path == missing, "\(text)")
      }
      // Afterwards nothing is left of it.
      try expect(database.query(text).run().isEmpty, equals: false)
    }
  }

  @Test("files have no names, and nobody can read them") func files() throws {
    let database = try filled(.lmdb)
    try withTemporaryDirectory { directory in
      let query = try database.query(
        "SELECT s, 'markedtext' AS t FROM _ ORDER BY s",
        options: .init(memoryLimit: 1 << 18, temporaryDirectory: directory))
      var sizes: [Int] = []
      try query.forEach { _ in
        guard sizes.isEmpty else { return true }
        for file in try openFiles(in: directory) {
          let bytes = try #require(FileManager.default.contents(atPath: file))
          sizes.append(bytes.count)
          // Nothing but the descriptor has it, so its space is free when the process ends, however that happens.
          var status = stat()
          expect(stat(file, &status) == 0 && status.st_nlink == 0)
          expect(
            bytes.range(of: Data("markedtext".utf8)) == nil && bytes.range(of: Data("xxxxxxxx".utf8)) == nil)
        }
        try expect(FileManager.default.contentsOfDirectory(atPath: directory), equals: [])
        return true
      }
      expect(sizes.contains { $0 > 500_000 }, "\(sizes)")
      try expect(openFiles(in: directory), equals: [])
    }
  }

  @Test("a file that comes back changed is noticed") func changed() throws {
    let database = try filled(.lmdb)
    try withTemporaryDirectory { directory in
      let query = try database.query(
        "SELECT s FROM _ ORDER BY s", options: .init(memoryLimit: 1 << 18, temporaryDirectory: directory))
      var rows = 0
      let error = #expect(throws: StorageError.self) {
        try query.forEach { _ in
          rows += 1
          if rows == 1 {
            for file in try openFiles(in: directory) {
              let descriptor = open(file, O_WRONLY)
              defer { close(descriptor) }
              for place in stride(from: 4_000, to: 1_500_000, by: 4_096) {
                expect(pwrite(descriptor, "?", 1, place), equals: 1)
              }
            }
          }
          return true
        }
      }
      expect(error?.code == .damaged && error?.path == directory)
      expect(rows < 3_000)
    }
  }

  @Test("a run with files is cancelled") func cancelled() throws {
    let database = try filled(.lmdb, Self.count)
    for text in Self.statements where !text.contains("n < \(Self.count * 2 / 5)") {
      let cancellation = QueryCancellation()
      var options = Query.Options()
      options.spillsFrom = Self.count * 16
      var rows = 0
      let code = try queryCode {
        try database.query(text, options: options).forEach(cancellation: cancellation) { _ in
          rows += 1
          cancellation.cancel()
          return true
        }
      }
      // The only row of a group is the last one too.
      expect(code == .cancelled || rows == 1, "\(text): \(String(describing: code))")
    }
  }

  @Test("a directory that is a file is named") func directoryIsFile() throws {
    let database = try filled(.lmdb, 1_000)
    try withTemporaryDirectory { directory in
      let file = directory + "/file"
      try Data("theirs".utf8).write(to: URL(fileURLWithPath: file))
      let query = try database.query(
        "SELECT s FROM _ ORDER BY s", options: .init(memoryLimit: 1 << 18, temporaryDirectory: file))
      let failure = #expect(throws: StorageError.self) { try query.run() }
      expect(failure?.path == file && failure?.engineCode == Int(ENOTDIR), "\(String(describing: failure))")
      try expect(String(contentsOfFile: file, encoding: .utf8), equals: "theirs")
    }
  }

  @Test("where files have names at first, the rows are the same and no name stays") func named() throws {
    let database = try filled(.lmdb, 800)
    try withTemporaryDirectory { directory in
      var options = Query.Options(temporaryDirectory: directory)
      options.spillsFrom = 60_000
      for text in Self.statements {
        let expected = try database.query(text).run().map { try $0.json() }
        let query = try database.query(text, options: options)
        let found = try withFileSystem(exclusiveRenames: true, namelessFiles: false) {
          try query.run().map { try $0.json() }
        }
        expect(found == expected, "\(text)")
        try expect(FileManager.default.contentsOfDirectory(atPath: directory), equals: [], "\(text)")
      }
    }
  }

  @Test("a query that finds the shared files full fails, and the one that has them goes on") func full()
    throws
  {
    let database = try filled(.lmdb, 1_000)
    let texts = [
      "SELECT s, n FROM _ ORDER BY s, n", "SELECT s, COUNT(*) AS c FROM _ GROUP BY s",
      "SELECT DISTINCT s, n FROM _", "SELECT n, s, LAG(n) OVER (ORDER BY n) AS a FROM _",
      "SELECT a.n, b.n AS o FROM _ AS a JOIN _ AS b ON b.s = a.s AND b.n = a.n",
    ]
    let expected = try texts.map { try database.query($0).run().map { try $0.json() } }
    var options = Query.Options()
    options.spillsFrom = 100_000
    let all = QueryShare(bytes: 1 << 30)
    options.sharedFiles = all
    var needed = 0
    try database.query(texts[0], options: options).forEach { _ in
      needed = max(needed, all.used)
      return true
    }
    // Not enough for two of them.
    let files = QueryShare(bytes: needed / 10 * 19)
    options.sharedFiles = files
    let first = try database.query(texts[0], options: options)
    var rows: [String] = []
    try first.forEach { row in
      if rows.count % 250 == 100 {
        // What the first has, others don't get.
        let held = files.used
        expect(held > files.total / 2, "\(held)")
        let second = try database.query(texts[0], options: options)
        let error = #expect(throws: QueryError.self) { try second.run() }
        expect(error?.code, equals: .memoryBusy)
        expect(
          error?.message.contains("\(files.total) bytes of temporary files") == true,
          "\(String(describing: error))")
        expect(files.used, equals: held)
      }
      rows.append(try row.json())
      return true
    }
    expect(rows == expected[0])
    expect(files.used, equals: 0)
    // At the same time: each gives its rows, or says that others have the files.
    try onThreads(4) { [options] number in
      for round in 0..<10 {
        let index = (number + round) % texts.count
        do {
          let rows = try database.query(texts[index], options: options).run().map { try $0.json() }
          expect(rows == expected[index], "\(texts[index])")
        } catch let error as QueryError where error.code == .memoryBusy {}
      }
    }
    expect(files.used, equals: 0)
    for (text, expected) in zip(texts, expected) {
      try expect(database.query(text, options: options).run().map { try $0.json() } == expected, "\(text)")
    }
  }

  @Test("queries of many threads share files") func shared() throws {
    let database = try filled(.lmdb)
    let files = QueryShare(bytes: 1 << 30)
    let memory = QueryShare(bytes: 4 << 20)
    var options = Query.Options(memoryLimit: 2 << 20)
    options.sharedMemory = memory
    options.sharedFiles = files
    let texts = Array(Self.statements.prefix(8))
    let expected = try texts.map { try database.query($0).run().map { try $0.json() } }
    try onThreads(4) { [options] number in
      for round in 0..<6 {
        let index = (number + round) % texts.count
        do {
          let rows = try database.query(texts[index], options: options).run().map { try $0.json() }
          expect(rows == expected[index], "\(texts[index])")
        } catch let error as QueryError where error.code == .memoryBusy {}
      }
    }
    expect(files.used == 0 && memory.used == 0)
  }
}

/// The open files without a name in a directory, by paths that open them.
private func openFiles(in directory: String) throws -> [String] {
  try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").map { "/proc/self/fd/\($0)" }.filter {
    path in
    var target = [CChar](repeating: 0, count: 4_096)
    let count = readlink(path, &target, target.count - 1)
    guard count > 0 else { return false }
    return String(decoding: target[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self).hasPrefix(
      directory + "/")
  }
}
