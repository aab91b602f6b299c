import Foundation
import Storage

/// The behaviours that every storage engine must have.
///
/// A suite is bound to one engine type and one empty directory. `ConformanceSuite.behaviours` lists the
/// behaviours. A check throws a `ConformanceFailure`, or the engine's own error, if the engine fails it.
///
/// The tests of an engine outside the package run the same list. For behaviours that need other processes
/// they build an executable that calls `ConformanceChild.main`.
public struct ConformanceSuite: Sendable {
  /// What some libraries can't do. The engine says so with a typed error.
  public enum Ability: Sendable {
    /// Several processes have a file open at the same time. Without it, a second one gets `inUse`.
    case sharing
    /// Files that a killed process has left are opened for reading. Without it, that throws `readOnly` until they
    /// were opened for writing once.
    case readingAfterKill
    /// Reads after a commit that failed on a full disk. Without it, they may throw `diskFull` until there is room.
    case readingOnFullDisk
    /// Another user than the owner of the files reads them. Without it, he gets `permissionDenied`.
    case otherUsers
  }

  /// An engine type and the properties that the suite needs to know.
  public struct Subject: Sendable {
    /// The engine type.
    public let engine: EngineType
    /// Whether its data is in a file that other processes and later opens can read.
    public let keepsFiles: Bool
    /// For an engine that encrypts: the type that opens files of the same library without a key.
    public let plainCounterpart: EngineType?
    /// Whether opening, checking and reading a file with any damage never crashes. An engine that maps the
    /// file and trusts its content can promise this only for missing, foreign and truncated files.
    public let survivesAnyDamage: Bool
    /// Whether an engine that encrypts notices every change of the file's first page when it opens the file.
    /// If false, bytes that aren't read may change unnoticed, but the data must be unchanged.
    public let authenticatesHeader: Bool
    /// What it can't do because its library can't.
    public let lacks: Set<Ability>
    /// Whether it implements `load` itself. Its `load` refuses other writes until it returns.
    public let loadsItself: Bool
    /// For an engine on a server: the location of the database with that label, for the run in that directory. Other processes
    /// and later opens find the data, as with files, but there are no files. Nil for other engines.
    public let locations: (@Sendable (_ directory: String, _ label: String) -> String)?

    /// Makes a subject. By default its engine keeps files.
    public init(
      engine: EngineType, keepsFiles: Bool = true, plainCounterpart: EngineType? = nil,
      survivesAnyDamage: Bool = true, authenticatesHeader: Bool = true, lacks: Set<Ability> = [],
      loadsItself: Bool = true, locations: (@Sendable (_ directory: String, _ label: String) -> String)? = nil
    ) {
      self.engine = engine
      self.keepsFiles = keepsFiles
      self.plainCounterpart = plainCounterpart
      self.survivesAnyDamage = survivesAnyDamage
      self.authenticatesHeader = authenticatesHeader
      self.lacks = lacks
      self.loadsItself = loadsItself
      self.locations = locations
    }

    /// Whether other processes and later opens find the data.
    var keepsData: Bool { keepsFiles || locations != nil }
  }

  /// A behaviour, named by a sentence.
  public struct Behaviour: Sendable {
    /// A property of subjects that a behaviour requires.
    public enum Need: Sendable {
      case files
      case child
      /// Several processes that have one file open.
      case sharing
      /// A process of another user.
      case otherUsers
      /// Another process, which isn't let in.
      case exclusion
      case encryption
    }

    /// The sentence that describes the behaviour.
    public let name: String
    /// The behaviour applies only to subjects with these properties.
    public let needs: Set<Need>
    let check: @Sendable (ConformanceSuite) throws -> Void

    init(
      _ name: String, needs: Set<Need> = [], _ check: @escaping @Sendable (ConformanceSuite) throws -> Void
    ) {
      self.name = name
      self.needs = needs
      self.check = check
    }

    /// A behaviour that is checked on an engine with a new file.
    init(
      _ name: String, needs: Set<Need> = [],
      _ check: @escaping @Sendable (ConformanceSuite, any StorageEngine) throws -> Void
    ) {
      self.init(name, needs: needs) { suite in try suite.withEngine { try check(suite, $0) } }
    }
  }

  /// The engine to check.
  public let subject: Subject
  /// An empty directory for the files of this run.
  public let directory: String
  /// Other engine types, which make foreign files.
  public let others: [EngineType]
  /// The executable that calls `ConformanceChild.main`. Nil skips behaviours that need other processes.
  public let childPath: String?
  /// The arguments of that executable that come before the command; see `ConformanceChild.main`.
  public let childArguments: [String]
  /// Whether to run many more rounds and steps.
  public let isLong: Bool
  /// Whether to run fewer rounds than others do: in `make test`.
  package var isShort = false
  /// The seed of all random choices. Every failure includes it.
  public let seed: UInt64

  /// Makes a suite for one behaviour. `directory` must be empty; use a new one for the next behaviour.
  public init(
    subject: Subject, directory: String, childPath: String?, childArguments: [String] = [],
    others: [EngineType] = [],
    isLong: Bool = false,
    seed: UInt64 = UInt64.random(in: 0...UInt64.max)
  ) {
    self.subject = subject
    self.directory = directory
    self.childPath = childPath
    self.childArguments = childArguments
    self.others = others
    self.isLong = isLong
    self.seed = seed
  }

  /// How often to repeat something.
  func times(_ short: Int, _ ordinary: Int, long: Int) -> Int { isLong ? long : isShort ? short : ordinary }

  /// All behaviours.
  public static let behaviours: [Behaviour] =
    transactionBehaviours + snapshotBehaviours + keyspaceBehaviours + entryBehaviours + cursorBehaviours
    + followingBehaviours + lendingBehaviours + scriptBehaviours + concurrencyBehaviours + fileBehaviours
    + upkeepBehaviours
    + processBehaviours + lineageBehaviours + versionBehaviours + neighbourBehaviours
    + damageBehaviours
    + encryptionBehaviours

  /// Whether the behaviour applies to this subject.
  public func applies(_ behaviour: Behaviour) -> Bool {
    behaviour.needs.allSatisfy { need in
      switch need {
      case .files: subject.keepsFiles
      case .child: subject.keepsData && childPath != nil
      case .sharing: subject.keepsData && !subject.lacks.contains(.sharing) && childPath != nil
      case .otherUsers: subject.keepsFiles && !subject.lacks.contains(.otherUsers) && childPath != nil
      case .exclusion: subject.keepsData && subject.lacks.contains(.sharing) && childPath != nil
      case .encryption: subject.engine.encrypts
      }
    }
  }

  /// Checks one behaviour. Does nothing if it doesn't apply.
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

/// An engine failed a behaviour.
public struct ConformanceFailure: Error, CustomStringConvertible {
  /// What was found, what was expected, and where.
  public let description: String

  /// Makes a failure with that description.
  public init(_ description: String) { self.description = description }
}

extension ConformanceSuite {
  /// The key of encrypted files. It is the same for the whole run.
  var key: [UInt8]? {
    guard subject.engine.encrypts else { return nil }
    var generator = SeededGenerator(seed: seed ^ 0x6B65_79)
    return generator.bytes(32)
  }

  /// A path in the directory, with the engine's file extension, or a location on a server.
  func path(_ label: String) -> String {
    subject.locations?(directory, label) ?? "\(directory)/\(label).\(subject.engine.fileExtension)"
  }

  func options(
    creation: FileCreation = .openOrCreate, isReadOnly: Bool = false,
    durability: Durability = .normal
  ) -> EngineOptions {
    EngineOptions(creation: creation, isReadOnly: isReadOnly, durability: durability, key: key)
  }

  func open(_ path: String, _ options: EngineOptions? = nil) throws -> any StorageEngine {
    try subject.engine.open(path, options ?? self.options())
  }

  /// Opens the file, runs `body`, and closes the file, also if `body` throws.
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

/// Throws if the condition is false.
func expect(
  _ condition: @autoclosure () throws -> Bool, _ message: @autoclosure () -> String,
  file: StaticString = #fileID, line: UInt = #line
) throws {
  guard try condition() else { throw ConformanceFailure("\(message()) [\(file):\(line)]") }
}

/// Throws if the two values differ.
func expectEqual<Value: Equatable>(
  _ found: @autoclosure () throws -> Value, _ wanted: @autoclosure () throws -> Value,
  _ what: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line
) throws {
  let (found, wanted) = (try found(), try wanted())
  guard found == wanted else {
    throw ConformanceFailure("\(what()): found \(found), wanted \(wanted) [\(file):\(line)]")
  }
}

/// Throws unless `body` throws a `StorageError` with one of the codes. Returns that error.
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
  /// `read` with the key as an array.
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

  /// The keyspace of that name, which must exist.
  func known(_ name: String) throws -> Keyspace {
    guard let keyspace = try keyspace(named: name) else {
      throw ConformanceFailure("there is no keyspace “\(name)”")
    }
    return keyspace
  }

  /// Copies of all entries in a range.
  package func entries(
    of keyspace: Keyspace, _ range: KeyRange = .all, order: ScanOrder = .ascending
  ) throws -> [SortedMap.Entry] {
    var result: [SortedMap.Entry] = []
    try scan(keyspace, range, order: order) { key, value in
      result.append(.init(key, value))
      return true
    }
    return result
  }
}

/// A big-endian key for a keyspace of sequences.
func sequenceKey(_ number: UInt64) -> [UInt8] {
  withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) }
}
