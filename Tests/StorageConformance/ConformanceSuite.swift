import Foundation
import Storage

/// What every engine has to pass.
///
/// A suite is bound to one kind of engine and one empty directory. `ConformanceSuite.behaviours` lists what it
/// checks; running one of them throws a `ConformanceFailure` (or the engine's own error) when the engine
/// doesn't hold it. An engine from outside the package runs the same list from its own tests, and builds an
/// executable of one call to `ConformanceChild.main` for what is done in processes of their own.
public struct ConformanceSuite: Sendable {
  /// A kind of engine and what the suite has to know about it.
  public struct Subject: Sendable {
    /// How it is opened.
    public let engine: EngineType
    /// Whether its data are in a file that other processes and later openings find.
    public let keepsFiles: Bool
    /// For an engine that encrypts: the kind that opens the files of the same library without a key.
    public let plainCounterpart: EngineType?
    /// Whether opening, checking and reading a file with any damage never crashes. Engines that map the file
    /// and trust what lies in it can't promise that for more than missing, foreign and truncated files.
    public let survivesAnyDamage: Bool
    /// Whether an engine that encrypts notices any change of the file's first page when it opens it. One over a library
    /// that knows nothing of the key can't where nothing is read: there the data are to be what they were.
    public let authenticatesHeader: Bool
    /// Whether it has a `load` of its own: that one refuses other writes until it has returned.
    public let loadsItself: Bool

    /// An engine of files that encrypts when its type says so.
    public init(
      engine: EngineType, keepsFiles: Bool = true, plainCounterpart: EngineType? = nil,
      survivesAnyDamage: Bool = true, authenticatesHeader: Bool = true, loadsItself: Bool = true
    ) {
      self.engine = engine
      self.keepsFiles = keepsFiles
      self.plainCounterpart = plainCounterpart
      self.survivesAnyDamage = survivesAnyDamage
      self.authenticatesHeader = authenticatesHeader
      self.loadsItself = loadsItself
    }
  }

  /// Something an engine has to hold, by the sentence that says it.
  public struct Behaviour: Sendable {
    /// What a subject has to be like for the behaviour to say something about it.
    public enum Need: Sendable {
      case files
      case child
      case encryption
    }

    /// The sentence.
    public let name: String
    /// It says nothing about subjects without these.
    public let needs: Set<Need>
    let check: @Sendable (ConformanceSuite) throws -> Void

    init(
      _ name: String, needs: Set<Need> = [], _ check: @escaping @Sendable (ConformanceSuite) throws -> Void
    ) {
      self.name = name
      self.needs = needs
      self.check = check
    }
  }

  /// The engine that is checked.
  public let subject: Subject
  /// An empty directory for the files of this run.
  public let directory: String
  /// Other kinds of engine, whose files are foreign ones.
  public let others: [EngineType]
  /// The executable that calls `ConformanceChild.main`; nil leaves out what needs other processes.
  public let childPath: String?
  /// Many more rounds and steps.
  public let isLong: Bool
  /// Where every random choice comes from; named in every failure.
  public let seed: UInt64

  /// A suite for one behaviour: `directory` is to be empty again for the next.
  public init(
    subject: Subject, directory: String, childPath: String?, others: [EngineType] = [],
    isLong: Bool = false,
    seed: UInt64 = UInt64.random(in: 0...UInt64.max)
  ) {
    self.subject = subject
    self.directory = directory
    self.childPath = childPath
    self.others = others
    self.isLong = isLong
    self.seed = seed
  }

  /// Everything that is checked.
  public static let behaviours: [Behaviour] =
    transactionBehaviours + snapshotBehaviours + keyspaceBehaviours + entryBehaviours + cursorBehaviours
    + followingBehaviours + lendingBehaviours + scriptBehaviours + concurrencyBehaviours + fileBehaviours
    + upkeepBehaviours
    + processBehaviours + neighbourBehaviours
    + damageBehaviours
    + encryptionBehaviours

  /// Whether the behaviour says something about this subject.
  public func applies(_ behaviour: Behaviour) -> Bool {
    behaviour.needs.allSatisfy { need in
      switch need {
      case .files: subject.keepsFiles
      case .child: subject.keepsFiles && childPath != nil
      case .encryption: subject.engine.encrypts
      }
    }
  }

  /// Checks one behaviour. Does nothing when it doesn't apply.
  public func run(_ behaviour: Behaviour) throws {
    guard applies(behaviour) else { return }
    do {
      try behaviour.check(self)
    } catch {
      throw ConformanceFailure(
        "\(subject.engine.name) doesn't hold “\(behaviour.name)” (seed \(seed)): \(error)")
    }
  }
}

/// An engine did something else than it has to.
public struct ConformanceFailure: Error, CustomStringConvertible {
  /// What was found, what was wanted, and where.
  public let description: String

  /// A failure that says `description`.
  public init(_ description: String) { self.description = description }
}

extension ConformanceSuite {
  /// The key of encrypted files, the same for a whole run.
  var key: [UInt8]? {
    guard subject.engine.encrypts else { return nil }
    var generator = SeededGenerator(seed: seed ^ 0x6B65_79)
    return generator.bytes(32)
  }

  /// A path of the directory that ends like the engine's files.
  func path(_ label: String) -> String { "\(directory)/\(label).\(subject.engine.fileExtension)" }

  func options(
    creation: EngineOptions.Creation = .openOrCreate, isReadOnly: Bool = false,
    durability: Durability = .normal
  ) -> EngineOptions {
    EngineOptions(creation: creation, isReadOnly: isReadOnly, durability: durability, key: key)
  }

  func open(_ path: String, _ options: EngineOptions? = nil) throws -> any StorageEngine {
    try subject.engine.open(path, options ?? self.options())
  }

  /// Opens the file, runs `body`, and closes it also when `body` throws.
  func withEngine<Result>(
    _ label: String = "main", _ options: EngineOptions? = nil, _ body: (any StorageEngine) throws -> Result
  ) throws -> Result {
    let engine = try open(path(label), options)
    let result: Result
    do {
      result = try body(engine)
    } catch {
      try? engine.close()
      throw error
    }
    try engine.close()
    return result
  }
}

/// Throws when the condition doesn't hold.
func expect(
  _ condition: @autoclosure () throws -> Bool, _ message: @autoclosure () -> String,
  file: StaticString = #fileID, line: UInt = #line
) throws {
  guard try condition() else { throw ConformanceFailure("\(message()) [\(file):\(line)]") }
}

/// Throws when the two aren't equal.
func expectEqual<Value: Equatable>(
  _ found: @autoclosure () throws -> Value, _ wanted: @autoclosure () throws -> Value,
  _ what: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line
) throws {
  let (found, wanted) = (try found(), try wanted())
  guard found == wanted else {
    throw ConformanceFailure("\(what()): found \(found), wanted \(wanted) [\(file):\(line)]")
  }
}

/// Throws when `body` doesn't throw a `StorageError` with one of the codes. Returns that error.
@discardableResult
func expectError(
  _ codes: StorageError.Code..., from what: String, file: StaticString = #fileID, line: UInt = #line,
  _ body: () throws -> Void
) throws -> StorageError {
  do {
    try body()
  } catch let error as StorageError where codes.contains(error.code) {
    try expect(!error.message.isEmpty, "\(what) threw an error without a message", file: file, line: line)
    return error
  } catch {
    let code = (error as? StorageError).map { " of code \($0.code)" } ?? ""
    throw ConformanceFailure("\(what) threw\(code) “\(error)”, wanted \(codes) [\(file):\(line)]")
  }
  throw ConformanceFailure("\(what) threw nothing, wanted \(codes) [\(file):\(line)]")
}

extension WriteTransaction {
  func insert(_ key: [UInt8], _ value: [UInt8], in keyspace: Keyspace) throws -> Bool {
    try key.withUnsafeBytes { key in
      try value.withUnsafeBytes { try insert(key, $0, in: keyspace) }
    }
  }

  func append(_ key: [UInt8], _ value: [UInt8], in keyspace: Keyspace) throws {
    try key.withUnsafeBytes { key in
      try value.withUnsafeBytes { try append(key, $0, in: keyspace) }
    }
  }

  @discardableResult
  func delete(_ key: [UInt8], in keyspace: Keyspace) throws -> Bool {
    try key.withUnsafeBytes { try delete($0, in: keyspace) }
  }

  func put(_ key: String, _ value: String, in keyspace: Keyspace) throws {
    try put(Array(key.utf8), Array(value.utf8), in: keyspace)
  }
}

extension StorageEngine {
  /// `read` of a key in an array.
  func readAlone(_ key: [UInt8], in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws
    -> Bool
  {
    try read(key.span.bytes, in: keyspace, body)
  }
}

extension ReadTransaction {
  func text(_ key: String, in keyspace: Keyspace) throws -> String? {
    try bytes(Array(key.utf8), in: keyspace).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The keyspace, which has to be there.
  func known(_ name: String) throws -> Keyspace {
    guard let keyspace = try keyspace(named: name) else {
      throw ConformanceFailure("there is no keyspace “\(name)”")
    }
    return keyspace
  }

  /// All entries of a range, copied.
  func entries(
    of keyspace: Keyspace, _ range: KeyRange = .all, order: ScanOrder = .ascending
  ) throws -> [SortedMap.Entry] {
    var result: [SortedMap.Entry] = []
    try scan(keyspace, range, order: order) { key, value in
      result.append(.init(key: [UInt8](copying: key), value: [UInt8](copying: value)))
      return true
    }
    return result
  }
}

/// A big-endian key of a keyspace of sequences.
func sequenceKey(_ number: UInt64) -> [UInt8] {
  withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) }
}
