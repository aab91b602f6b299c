import FoundationEssentials
import Touchstone

/// `touchstone upgrade`: makes a database from a Couchbase Lite 1.x database.
struct UpgradeCommand: Subcommand {
  private static let source = Positional(
    "OLD", "The 1.x database: a NAME.cblite2 directory, or a NAME.cblite file with its attachments beside it")
  private static let target = Positional(
    "NEW", "The path of the new database; it must not exist. Not with --in-place", count: .optional)
  private static let engine = DatabaseArguments.engine(
    "The engine of the new database (sqlite, or sqlcipher with a new key)")
  private static let carry = Option<UpgradeOptions.Carry>(
    "carry", "full|winners", "Carries over everything (full, the default), or only winning revisions",
    refusal: "is neither full nor winners")
  private static let strict = Flag("strict", "Fails and makes nothing if something can't be carried over")
  private static let inPlace = Flag(
    "in-place", "Makes NAME.touchstone beside OLD, and keeps OLD as a backup")
  private static let removeOld = Flag(
    "remove-old",
    "With --in-place: removes OLD when the new database is on the disk and nothing is missing from it")
  private static let verify = Flag("verify", "Reads OLD again at the end and compares every document")

  static let usage = Usage(
    "upgrade", "Upgrades a Couchbase Lite 1.x database",
    positionals: [source, target],
    options: [
      engine, carry, strict, inPlace, removeOld, verify, DatabaseArguments.json, Keys.file, Keys.newFile,
    ],
    examples: [
      "touchstone upgrade catalog.cblite2 catalog --engine lmdb --verify",
      "touchstone upgrade old.cblite --in-place --json",
    ],
    notes: """
      OLD is only read. It is a database of iOS, Android or .NET, release 1.0 to 1.4, with SQLite or ForestDB
      storage. An encrypted one needs its password (--key-file). Data that can't be carried over is listed, and
      the upgrade continues.

      Status: 0 everything was carried over · 1 the new database was made, but something couldn't be carried
      over; or nothing was made because of --strict or because --verify found a difference · 2 OLD isn't such a
      database; the message says what it is · 3 OLD is damaged or locked.
      """)

  private let source: String
  private let target: String?
  private let engine: EngineName?
  private let removesOld: Bool
  private let asJSON: Bool
  private let keys: Keys
  private var options = UpgradeOptions()

  init(_ arguments: Arguments) throws {
    source = try arguments.required(Self.source)
    target = arguments.optional(Self.target)
    engine = try arguments.value(Self.engine)
    removesOld = arguments[Self.removeOld]
    asJSON = arguments[DatabaseArguments.json]
    keys = try Keys(arguments)
    options.carry = try arguments.value(Self.carry) ?? .full
    options.isStrict = arguments[Self.strict]
    options.verifies = arguments[Self.verify]
    let isInPlace = arguments[Self.inPlace]
    guard isInPlace == (target == nil) else {
      throw UsageError(
        isInPlace ? "NEW and --in-place can't be combined" : "NEW is missing; give it, or use --in-place")
    }
    guard isInPlace || !removesOld else { throw UsageError("--remove-old needs --in-place") }
  }

  func run(_ output: StandardOutput) throws {
    var newKey = try keys.new()
    var options = options
    options.sourceKey = try keys.given()
    if let engine {
      let encrypts = try Engines.type(engine).encrypts
      if newKey != nil, !encrypts { throw Keys.cannotEncrypt(engine) }
      if encrypts, newKey == nil {
        newKey = try keys.requiredNew(for: target ?? source, engine: engine)
      }
    }
    if !asJSON { options.onIssue = { StandardError.write("\($0)\n") } }
    let report: UpgradeReport
    do { report = try upgrade(options, newKey) } catch let error as UpgradeError
      where error.code == .keyRequired
    {
      guard let key = try keys.existing(for: source) else {
        throw UpgradeError(
          .keyRequired, "\(error.message) (--key-file FILE or the variable \(Keys.variable))",
          path: error.path)
      }
      options.sourceKey = key
      report = try upgrade(options, newKey)
    } catch let error as UpgradeError where error.code == .notEncrypted {
      // A key is used if the source is encrypted, and ignored if it isn't.
      options.sourceKey = nil
      report = try upgrade(options, newKey)
    }
    try write(report, output)
    guard report.losses == 0 else {
      throw Refusal(
        "the new database was made, but not everything could be carried over: "
          + "\(TextTable.grouped(report.losses)) \(report.losses == 1 ? "loss is" : "losses are") listed")
    }
  }

  private func upgrade(_ options: UpgradeOptions, _ newKey: UserKey?) throws -> UpgradeReport {
    let line = PhaseProgressLine("upgrade")
    defer { line.end() }
    guard let target else {
      return try Database.upgradeInPlace(
        source, engine: engine, key: newKey, options: options, removesSource: removesOld,
        progress: line.update)
    }
    return try Database.upgrade(
      source, to: target, engine: engine, key: newKey, options: options, progress: line.update)
  }

  // MARK: The report

  private func write(_ report: UpgradeReport, _ output: StandardOutput) throws {
    guard !asJSON else {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return try output.line(String(decoding: try encoder.encode(report), as: UTF8.self))
    }
    var table = TextTable([
      ("", .left), ("read", .right), ("carried over", .right), ("skipped", .right), ("not requested", .right),
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
      try output.line("verified: \(count) documents are equal to the source\(skipped)")
    }
    for (kind, count) in report.issueCounts.sorted(by: { $0.key < $1.key }) {
      try output.line("\(kind): \(TextTable.grouped(count))")
    }
    try output.line(
      "made \(report.target); \(report.source) "
        + (removesOld && report.losses == 0
          ? "was removed" : target == nil ? "stays as a backup" : "is unchanged"))
  }
}
