import Foundation
import Storage

/// The program that the suite starts for work in a separate process: writing beside the parent, being killed,
/// running out of space, and reading damaged files.
///
/// Its arguments are a command, the name of an engine, the key in hexadecimal or `-`, and the arguments of
/// the command.
public enum ConformanceChild {
  /// Returns the tools that check a closed file of an engine.
  public typealias Tools = (_ engine: String, _ path: String, _ key: [UInt8]?) -> [FileTool]

  /// Runs the command in `arguments` with one of `engines`, and ends the process. The first argument is the
  /// program; `childArguments` come between it and the command.
  public static func main(
    _ arguments: [String], childArguments: [String] = [], engines: [EngineType],
    tools: @escaping Tools = { _, _, _ in [] }
  ) -> Never {
    do {
      let words = Array(arguments.dropFirst(1 + childArguments.count))
      guard words.count >= 3, let engine = engines.first(where: { $0.name == words[1] }) else {
        throw ConformanceFailure("usage: COMMAND ENGINE KEY|- …, not \(words)")
      }
      let child = Child(
        program: arguments[0], childArguments: childArguments, engine: engine,
        key: words[2] == "-" ? nil : bytes(hexadecimal: words[2]), arguments: Array(words[3...]), tools: tools
      )
      switch words[0] {
      case "probe": try child.probe()
      case "commit": try child.commit()
      case "increment": try child.increment()
      case "fill": try child.fill()
      case "load-full": try child.loadOnFullDisk()
      case "read-full": try child.readOnFullDisk()
      case "nobody": try child.readAsNobody()
      case "watch": try child.watchAsNobody()
      case "snapshots": try child.openSnapshots()
      case "keep": try child.keepLentPointer()
      case "scripts": try child.scripts()
      case "conformance": try child.conformance()
      case "fuzz": try child.fuzz()
      case "hold": try child.hold()
      case "open": try child.openOnce()
      case "leave": try child.leave()
      case "create": try child.create(isNew: false)
      case "create-new": try child.create(isNew: true)
      default: throw ConformanceFailure("unknown command “\(words[0])”")
      }
      exit(0)
    } catch {
      say("failed: \(error)")
      exit(1)
    }
  }

  private static func bytes(hexadecimal text: String) -> [UInt8] {
    let digits = Array(text.utf8).map { UInt8($0 < 0x61 ? $0 - 0x30 : $0 - 0x61 + 10) }
    return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  /// Writes a line without buffering, so that it isn't lost in a crash.
  static func say(_ line: String) {
    let bytes = Array(line.replacingOccurrences(of: "\n", with: " ").utf8) + [0x0A]
    _ = Glibc.write(1, bytes, bytes.count)
  }
}

/// One run of the program.
struct Child {
  /// What starts this program, and its arguments before a command.
  let program: String
  let childArguments: [String]
  let engine: EngineType
  let key: [UInt8]?
  let arguments: [String]
  let tools: ConformanceChild.Tools

  func options(isReadOnly: Bool = false, creation: FileCreation = .openOrCreate) -> EngineOptions {
    EngineOptions(creation: creation, isReadOnly: isReadOnly, durability: .normal, key: key)
  }

  func say(_ line: String) { ConformanceChild.say(line) }

  /// The argument at `index`, as a number.
  func number(_ index: Int) throws -> Int {
    guard arguments.indices.contains(index), let number = Int(arguments[index]) else {
      throw ConformanceFailure("argument \(index) is no number: \(arguments)")
    }
    return number
  }

  /// `probe MODE PATH…` opens each file, checks it, reads all of it and writes to it. It prints one line per
  /// file: `error CODE STEP MESSAGE`, `faults FAULT` or `content CONTENT`. The mode `blind` skips the check,
  /// so that reads find the damage. The mode `rewritten` also changes entries in the whole file at the end.
  func probe() throws {
    for path in arguments.dropFirst() {
      say(try probe(path, isBlind: arguments[0] == "blind", rewrites: arguments[0] == "rewritten"))
    }
  }

  private func probe(_ path: String, isBlind: Bool, rewrites: Bool) throws -> String {
    // The last line shows which step a crash interrupted.
    var step = "open" {
      didSet { FileHandle.standardError.write(Data("\(step) \(path)\n".utf8)) }
    }
    do {
      let opened = try engine.open(path, options(creation: .openExisting))
      defer { try? opened.close() }
      step = "check"
      let faults = isBlind ? [] : try opened.maintenance.checkIntegrity()
      guard faults.isEmpty else { return "faults \(faults[0])" }
      step = "read"
      let content: Content
      do {
        content = try Content(opened)
      } catch let failure as ConformanceFailure {
        // Different ways of reading gave different results. A library without checksums need not find such
        // damage in a check.
        return "faults \(failure)"
      }
      step = "write"
      try opened.write { transaction in
        let keyspace = try transaction.createKeyspace("probe", shape: .documents)
        for number in 0..<50 { try transaction.put("\(number)", "probe", in: keyspace) }
        for keyspace in try transaction.keyspaces().values where keyspace.shape != .sequences {
          try transaction.put("probe", "probe", in: keyspace)
        }
      }
      step = "more writes"
      if rewrites { for round in 0..<3 { try rewrite(opened, round) } }
      return "content \(content)"
    } catch let error as StorageError {
      return "error \(error.code.rawValue) \(step) \(error)"
    }
  }

  /// Removes entries in the whole file and puts them back with longer values, so that pages are allocated,
  /// freed and rebalanced.
  private func rewrite(_ opened: any StorageEngine, _ round: Int) throws {
    try opened.write { transaction in
      for keyspace in try transaction.keyspaces().values {
        let keys = try transaction.entries(of: keyspace).map(\.key)
        for (index, key) in keys.enumerated() where index % 3 == round {
          _ = try transaction.delete(key, in: keyspace)
        }
        for (index, key) in keys.enumerated() where index % 9 == round {
          try transaction.put(key, [UInt8](repeating: 1, count: index % 5 == 0 ? 9_000 : 300), in: keyspace)
        }
      }
    }
  }

  /// `increment PATH COUNT` increments a counter in each of two keyspaces COUNT times, with reads in between.
  func increment() throws {
    let opened = try engine.open(arguments[0], options())
    for _ in 0..<(try number(1)) { try Counters.increment(opened) }
    try opened.close()
    say("done")
  }

  /// `read-full PATH` reads everything while no file may grow.
  func readOnFullDisk() throws {
    let unlimit = limitFileSize(0)
    defer { unlimit() }
    let opened = try engine.open(arguments[0], options(isReadOnly: true, creation: .openExisting))
    let content = try Content(opened)
    try expectEqual(opened.maintenance.checkIntegrity(), [], "faults")
    try opened.close()
    unlimit()
    say("content \(content)")
  }

  /// `nobody PATH CLOSED` becomes another user, reads the file at PATH, tries to write it, and tries to read
  /// CLOSED. It reports if it can't: a container may have only one user, and the other user may have no
  /// access to PATH.
  func readAsNobody() throws {
    if let reason = becomeNobody() { return say(reason) }
    let opened = try engine.open(arguments[0], options(isReadOnly: true, creation: .openExisting))
    say("content \(try Content(opened))")
    try expectError(.readOnly, from: "write to an engine open for reading") {
      try opened.write { (_: any WriteTransaction) in }
    }
    try expectEqual(opened.maintenance.checkIntegrity(), [], "faults")
    try opened.close()
    for isReadOnly in [true, false] {
      try expectError(.permissionDenied, from: "opening a file that can't be read") {
        _ = try engine.open(arguments[1], options(isReadOnly: isReadOnly, creation: .openExisting))
      }
    }
    try expectError(.permissionDenied, .readOnly, from: "opening a file for writing that can't be written") {
      let opened = try engine.open(arguments[0], options(creation: .openExisting))
      defer { try? opened.close() }
      try opened.write { try $0.put("a", "b", in: $0.createKeyspace("other", shape: .documents)) }
    }
    try expectError(.permissionDenied, .readOnly, .ioError, from: "creating a file where none can be") {
      let opened = try engine.open(arguments[0] + ".new", options(creation: .createNew))
      defer { try? opened.close() }
      try opened.write { (_: any WriteTransaction) in }
    }
    say("done")
  }
}

extension Child {
  /// Becomes another user, if the process may. Returns the reason if it can't read the file afterwards.
  private func becomeNobody() -> String? {
    guard geteuid() == 0 else { return nil }
    guard setgroups(0, nil) == 0, setgid(65_534) == 0, setuid(65_534) == 0 else {
      return "can't become another user: errno \(errno)"
    }
    let directories = (arguments[0] as NSString).deletingLastPathComponent
    guard access((directories as NSString).deletingLastPathComponent, X_OK) == 0 else {
      return "can't go where the file is: errno \(errno)"
    }
    return nil
  }

  /// `watch PATH OPENINGS` becomes another user, and opens, reads and closes the file while its owner writes it
  /// (`Generations`).
  func watchAsNobody() throws {
    if let reason = becomeNobody() { return say(reason) }
    var last = -1
    for _ in 0..<(try number(1)) {
      let opened = try engine.open(arguments[0], options(isReadOnly: true, creation: .openExisting))
      for _ in 0..<12 {
        let found = try Generations.read(opened)
        try expect(found >= last, "a later read found generation \(found) after \(last)")
        last = found
      }
      try opened.close()
    }
    say("done \(last)")
  }
}

/// Rows that all have the number of the last transaction that wrote them.
enum Generations {
  private static let rows = 300

  static func write(_ number: Int, _ engine: any StorageEngine) throws {
    try engine.write { transaction in
      let keyspace = try transaction.createKeyspace("rows", shape: .documents)
      let value = "\(number) " + String(repeating: "x", count: 300)
      for row in 0..<rows { try transaction.put("row \(row)", value, in: keyspace) }
    }
  }

  /// The number. It must be the same in all rows.
  static func read(_ engine: any StorageEngine) throws -> Int {
    try engine.read { transaction in
      let entries = try transaction.entries(of: transaction.known("rows"))
      try expectEqual(entries.count, rows, "rows")
      let values = Set(entries.map { String(decoding: $0.value, as: UTF8.self) })
      try expectEqual(values.count, 1, "generations in one snapshot")
      return values.first?.split(separator: " ").first.flatMap { Int($0) } ?? -1
    }
  }
}

/// Two counters in two keyspaces. Every transaction leaves them equal.
enum Counters {
  static func make(_ engine: any StorageEngine) throws {
    try engine.write { transaction in
      for name in ["left", "right"] {
        try transaction.put("counter", "0", in: transaction.createKeyspace(name, shape: .documents))
      }
    }
  }

  static func increment(_ engine: any StorageEngine) throws {
    try engine.write { transaction in
      for name in ["left", "right"] {
        let keyspace = try transaction.known(name)
        let count = try transaction.text("counter", in: keyspace).flatMap { Int($0) } ?? 0
        try transaction.put("counter", "\(count + 1)", in: keyspace)
      }
    }
    _ = try count(engine)
  }

  /// The count. It must be equal in both keyspaces.
  @discardableResult
  static func count(_ engine: any StorageEngine) throws -> Int {
    try engine.read { transaction in
      let left = try transaction.text("counter", in: transaction.known("left"))
      try expectEqual(transaction.text("counter", in: transaction.known("right")), left, "the right counter")
      return left.flatMap { Int($0) } ?? -1
    }
  }
}
