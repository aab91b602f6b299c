import BenchmarkKit
import FoundationEssentials
import Touchstone

/// `touchstone upgrade`: makes databases from Couchbase Lite 1.x databases.
struct UpgradeCommand: Subcommand {
  private static let paths = Positional(
    "OLD",
    "The 1.x database: a NAME.cblite2 directory, or a NAME.cblite file with its attachments beside it. Then NEW, the path of "
      + "the new database, which must not exist; or with --in-place or --into, more databases", count: .many)
  private static let engine = DatabaseArguments.engine(
    "The engine of the new database (sqlite, or sqlcipher with a new key)")
  private static let carry = Option<UpgradeOptions.Carry>(
    "carry", "full|winners", "Carries over everything (full, the default), or only winning revisions",
    refusal: "is neither full nor winners")
  private static let strict = Flag("strict", "Fails and makes nothing if something can't be carried over")
  private static let check = Flag(
    "check", "Makes nothing: says what would be carried over, what not and why, and how long it takes")
  private static let inPlace = Flag(
    "in-place", "Makes NAME.touchstone beside each OLD, and keeps OLD as a backup")
  private static let into = Option("into", "DIR", "Makes NAME.touchstone in this directory for each OLD")
  private static let parents = Flag("parents", "Makes the directories that NEW or DIR is in")
  private static let removeOld = Flag(
    "remove-old",
    "With --in-place: removes OLD when the new database is on the disk and nothing is missing from it")
  private static let verify = Flag("verify", "Reads OLD again at the end and compares every document")

  static let usage = Usage(
    "upgrade", "Upgrades Couchbase Lite 1.x databases",
    positionals: [paths],
    options: [
      engine, check, carry, strict, inPlace, into, parents, removeOld, verify, DatabaseArguments.json,
      Keys.file,
      Keys.newFile,
    ],
    examples: [
      "touchstone upgrade catalog.cblite2 catalog --engine lmdb --verify",
      "touchstone upgrade catalog.cblite2 songs.cblite2 --check",
      "touchstone upgrade catalog.cblite2 songs.cblite2 --into new/databases --parents",
      "touchstone upgrade old.cblite2 --in-place --json",
    ],
    notes: """
      OLD is only read. It is a database of iOS, Android or .NET, release 1.0 to 1.4, with SQLite or ForestDB
      storage. An encrypted one needs its password (--key-file). Data that can't be carried over is listed, and
      the upgrade continues. If one of several databases can't be upgraded, the others are.

      --check upgrades each OLD into a temporary directory, and removes it. That takes the time and the space of an
      upgrade. It can be added to any call: then it also says whether the new database can be made where it is to be. With the key of an encrypted OLD and without a new key, the temporary database is encrypted with a random key.

      Status: 0 everything was carried over · 1 the new database was made, but something couldn't be carried
      over; or nothing was made because of --strict or because --verify found a difference · 2 OLD isn't such a
      database; the message says what it is · 3 OLD is damaged or locked. Of several databases, the greatest status
      counts.
      """)

  /// Where a new database is made.
  private enum Target {
    case path(String)
    case beside
    /// For a check of databases alone.
    case nowhere
  }

  private let sources: [(path: String, target: Target)]
  private let engine: EngineName?
  private let removesOld: Bool
  private let makesParents: Bool
  private let isCheck: Bool
  private let asJSON: Bool
  private let keys: Keys
  private var options = UpgradeOptions()

  init(_ arguments: Arguments) throws {
    let paths = arguments.all(Self.paths)
    engine = try arguments.value(Self.engine)
    removesOld = arguments[Self.removeOld]
    makesParents = arguments[Self.parents]
    let isCheck = arguments[Self.check]
    self.isCheck = isCheck
    asJSON = arguments[DatabaseArguments.json]
    keys = try Keys(arguments)
    options.carry = try arguments.value(Self.carry) ?? .full
    options.isStrict = arguments[Self.strict]
    options.verifies = arguments[Self.verify]
    let isInPlace = arguments[Self.inPlace]
    let directory = try arguments.value(Self.into)
    guard !isInPlace || directory == nil else { throw UsageError("--in-place and --into exclude each other") }
    guard isInPlace || !removesOld else { throw UsageError("--remove-old needs --in-place") }
    if isInPlace {
      sources = paths.map { ($0, .beside) }
    } else if let directory {
      let targets = paths.map { directory + "/" + Self.name(of: $0) }
      for (number, target) in targets.enumerated() {
        guard let other = targets[..<number].firstIndex(of: target) else { continue }
        throw UsageError(
          "\(paths[other]) and \(paths[number]) would both become \(target); upgrade one of them to another directory"
        )
      }
      sources = zip(paths, targets).map { ($0, .path($1)) }
    } else if isCheck, paths.count != 2 || Self.isOld(paths[1]) {
      sources = paths.map { ($0, .nowhere) }
    } else {
      guard paths.count > 1 else {
        throw UsageError("NEW is missing; give it, or use --in-place, --into DIR or --check")
      }
      guard paths.count == 2 else {
        throw UsageError(
          "unexpected argument '\(paths[2])'; several databases need --in-place, --into DIR or --check")
      }
      sources = [(paths[0], .path(paths[1]))]
    }
    guard !makesParents || sources.contains(where: { if case .path = $0.target { true } else { false } })
    else {
      throw UsageError("--parents belongs to NEW or to --into")
    }
  }

  /// Whether the last path of a check is one more 1.x database, and not the new one.
  private static func isOld(_ path: String) -> Bool {
    path.contains(".cblite") || FileManager.default.fileExists(atPath: path)
  }

  /// A path without slashes at its end and without the suffix of 1.x.
  private static func withoutSuffix(_ path: String) -> String {
    var path = path
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    for suffix in [".cblite2", ".cblite"] where path.hasSuffix(suffix) { path.removeLast(suffix.count) }
    return path
  }

  /// The last part of a path without the suffix of 1.x.
  private static func name(of path: String) -> String {
    withoutSuffix(path).split(separator: "/").last.map(String.init) ?? path
  }

  func run(_ output: StandardOutput) throws {
    guard sources.count > 1 else { return try run(sources[0].path, sources[0].target, output) }
    var failures: [(message: String, status: ExitStatus)] = []
    for (path, target) in sources {
      if !asJSON {
        try output.line("\(path):")
        // What is said of it on standard error comes after its name.
        try output.flush()
      }
      do { try run(path, target, output) } catch {
        guard !(error is Interrupted) else { throw error }
        let message = (error as? UsageError)?.message ?? "\(error)"
        // What was printed about it comes first.
        try output.flush()
        let place = message.contains(path) ? "" : "\(path): "
        StandardError.line("touchstone upgrade: \(place)\(CommandWords.of(message))")
        failures.append((path, ExitStatus(error)))
      }
      if !asJSON { try output.line("") }
      try output.flush()
    }
    guard let worst = failures.map(\.status.rawValue).max() else { return }
    throw SeveralFailed(
      description: "\(failures.count) of \(sources.count) databases had faults: "
        + failures.map(\.message).joined(separator: ", "),
      status: ExitStatus(rawValue: worst) ?? .database)
  }

  private func run(_ source: String, _ target: Target, _ output: StandardOutput) throws {
    var newKey = try keys.new()
    var options = options
    options.sourceKey = try keys.given()
    if let engine {
      let encrypts = try Engines.type(engine).encrypts
      if newKey != nil, !encrypts { throw Keys.cannotEncrypt(engine) }
      if encrypts, newKey == nil { newKey = try keys.requiredNew(for: source, engine: engine) }
    }
    if !asJSON { options.onIssue = { StandardError.write("\($0)\n") } }
    let report: UpgradeReport
    do { report = try upgrade(source, target, options, newKey) } catch let error as UpgradeError
      where error.code == .keyRequired
    {
      guard let key = try keys.existing(for: source) else {
        throw UpgradeError(
          .keyRequired, "\(error.message) (--key-file FILE or the variable \(Keys.variable))",
          path: error.path)
      }
      options.sourceKey = key
      report = try upgrade(source, target, options, newKey)
    } catch let error as UpgradeError where error.code == .notEncrypted {
      // A key is used if the source is encrypted, and ignored if it isn't.
      options.sourceKey = nil
      report = try upgrade(source, target, options, newKey)
    }
    try write(report, target, output)
    guard report.losses == 0 else {
      let losses =
        "\(TextTable.grouped(report.losses)) \(report.losses == 1 ? "loss is" : "losses are") listed"
      throw Refusal(
        isCheck
          ? "not everything could be carried over: \(losses)"
          : "the new database was made, but not everything could be carried over: \(losses)")
    }
  }

  private func upgrade(
    _ source: String, _ target: Target, _ options: UpgradeOptions, _ newKey: UserKey?
  ) throws -> UpgradeReport {
    let line = PhaseProgressLine("upgrade")
    defer { line.end() }
    if isCheck { return try check(source, target, options, newKey, line) }
    switch target {
    case .beside:
      return try Database.upgradeInPlace(
        source, engine: engine, key: newKey, options: options, removesSource: removesOld,
        progress: line.update)
    case .path(let path):
      if makesParents, let slash = path.lastIndex(of: "/"), slash != path.startIndex {
        try FileManager.default.createDirectory(
          atPath: String(path[..<slash]), withIntermediateDirectories: true)
      }
      return try Database.upgrade(
        source, to: path, engine: engine, key: newKey, options: options, progress: line.update)
    case .nowhere: return try check(source, target, options, newKey, line)
    }
  }

  /// Upgrades into a temporary directory that is removed.
  private func check(
    _ source: String, _ target: Target, _ options: UpgradeOptions, _ newKey: UserKey?,
    _ line: PhaseProgressLine
  ) throws -> UpgradeReport {
    if let path = Self.path(of: target, source) { try checkIsFree(path) }
    let place = try TrialDirectory(in: FileManager.default.temporaryDirectory.path)
    defer { place.remove() }
    // What was encrypted isn't written in the clear, not even for a moment.
    let isSecret = options.sourceKey != nil && newKey == nil
    let key = isSecret ? try UserKey.raw((0..<32).map { _ in UInt8.random(in: .min ... .max) }) : newKey
    return try Database.upgrade(
      source, to: place.path + "/check", engine: isSecret ? .lmdbEncrypted : engine, key: key,
      options: options, progress: line.update)
  }

  /// The directory that an upgrade of `source` makes.
  private static func path(of target: Target, _ source: String) -> String? {
    switch target {
    case .path(let path): path.hasSuffix(".touchstone") ? path : path + ".touchstone"
    case .beside: withoutSuffix(source) + ".touchstone"
    case .nowhere: nil
    }
  }

  /// Throws what an upgrade would: there is something with this name, or its directory doesn't exist.
  private func checkIsFree(_ path: String) throws {
    guard !FileManager.default.fileExists(atPath: path) else {
      throw DatabaseError(
        .alreadyExists, "the new database can't be made: a file or directory with this name exists",
        path: path)
    }
    let parent = URL(filePath: path).deletingLastPathComponent().path
    guard makesParents || FileManager.default.fileExists(atPath: parent) else {
      throw DatabaseError(
        .noParentDirectory, "the parent directory '\(parent)' doesn't exist; make it first", path: path)
    }
  }

  // MARK: The report

  private func write(_ report: UpgradeReport, _ target: Target, _ output: StandardOutput) throws {
    var report = report
    if isCheck { report.target = "" }
    guard !asJSON else {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return try output.line(String(decoding: try encoder.encode(report), as: UTF8.self))
    }
    var table = TextTable([
      ("", .left), ("read", .right), (isCheck ? "would be carried" : "carried over", .right),
      ("skipped", .right), ("not requested", .right),
    ])
    for (name, count) in [
      ("documents", report.documents), ("  of them tombstones", report.tombstones),
      ("  of them in conflict", report.conflicts), ("revisions", report.revisions),
      ("  with bodies", report.bodies),
      ("local documents", report.localDocuments), ("expirations", report.expirations),
      ("views", report.views),
      ("checkpoints", report.checkpoints),
    ] {
      table.add([name] + [count.read, count.carried, count.skipped, count.unwanted].map(TextTable.grouped))
    }
    let files = report.attachments
    table.add(
      ["attachments"] + [files.read, files.carried, files.missing + files.damaged, 0].map(TextTable.grouped))
    try output.lines(table.lines)
    if files.decoded > 0 { try output.line("attachments that were compressed: \(files.decoded), decoded") }
    if files.decrypted > 0 {
      try output.line("attachments that were encrypted: \(files.decrypted), decrypted")
    }
    if let verified = report.verifiedDocuments {
      let read = report.documents.read
      let count =
        verified == read
        ? TextTable.grouped(read) : "\(TextTable.grouped(verified)) of \(TextTable.grouped(read))"
      let skipped = verified == read ? "" : "; \(TextTable.grouped(read - verified)) couldn't be carried over"
      try output.line(
        "verified: \(count) \(read == 1 ? "document is" : "documents are") equal to the source\(skipped)")
    }
    for (kind, count) in report.issueCounts.sorted(by: { $0.key < $1.key }) {
      try output.line("\(kind): \(TextTable.grouped(count))")
    }
    guard !isCheck else {
      let made = Self.path(of: target, report.source).map { " to \($0)" } ?? ""
      return try output.line(
        "nothing was made; an upgrade of \(report.source)\(made) takes about \(Format.duration(report.seconds))"
          + (report.verificationSeconds > 0
            ? ", and \(Format.duration(report.verificationSeconds)) to verify it" : ""))
    }
    switch target {
    case .beside:
      try output.line(
        "made \(report.target); \(report.source) "
          + (removesOld && report.losses == 0 ? "was removed" : "stays as a backup"))
    case .path, .nowhere: try output.line("made \(report.target); \(report.source) is unchanged")
    }
  }
}

/// Some of several databases that couldn't be upgraded, or not wholly. What was wrong has been said.
struct SeveralFailed: Error, CustomStringConvertible {
  let description: String
  let status: ExitStatus
}
