/// What a commit survives. The same meaning on every engine; docs/durability.md has what each level sets.
public enum Durability: String, Sendable, CaseIterable, Codable {
  /// A power loss: a commit is on the disk when it returns.
  case full
  /// The death of the process. A power loss may lose the last commits, never consistency.
  case normal
  /// The death of the process. A power loss may damage the file.
  case none
}

/// How a file is opened.
public struct EngineOptions: Sendable {
  /// What is to be done about a file that is there, or isn't.
  public enum Creation: Sendable {
    case openOrCreate
    case openExisting
    case createNew
  }

  /// Whether the file may, must or must not be there.
  public var creation: Creation
  /// Nothing is written, also not beside the file.
  public var isReadOnly: Bool
  /// What a commit is to survive.
  public var durability: Durability
  /// 32 bytes for an engine that encrypts. Wiped by whoever made it; an engine keeps no copy of its own
  /// beyond what the library below needs.
  public var key: [UInt8]?
  /// What an engine's own cache of pages may hold, in bytes: taken as pages are read, so never more than a file has.
  /// Engines that use the system's cache ignore it. One with a cache for each connection gives so much to the writer and to
  /// the first reader, half to the second and an eighth to each further one.
  public var cacheBytes: Int
  /// The library to load instead of the system's, for engines that load one.
  public var libraryPath: String?
  /// A new file that nobody else knows is filled, closed, and then opened again: a write that fails may leave it broken.
  /// What engines do to survive that is left out.
  public var isBulkLoad: Bool

  /// 40 MiB: all of some ten thousands of documents, and a process that reads and writes them has less than 81 MiB of its own.
  public static let defaultCacheBytes = 40 << 20

  /// Options; see the properties.
  public init(
    creation: Creation = .openOrCreate, isReadOnly: Bool = false, durability: Durability = .normal,
    key: [UInt8]? = nil, cacheBytes: Int = EngineOptions.defaultCacheBytes, libraryPath: String? = nil,
    isBulkLoad: Bool = false
  ) {
    self.creation = creation
    self.isReadOnly = isReadOnly
    self.durability = durability
    self.key = key
    self.cacheBytes = cacheBytes
    self.libraryPath = libraryPath
    self.isBulkLoad = isBulkLoad
  }
}

/// A kind of engine that can be chosen by name. Adding an engine is one of these and a type that meets
/// `StorageEngine`.
public struct EngineType: Sendable {
  /// The name it is chosen by: `sqlite`, `lmdb`, `sqlcipher`.
  public let name: String
  /// What its files end with, without the dot: `sqlite`, `mdb`.
  public let fileExtension: String
  /// Whether it takes a key. One that does requires it.
  public let encrypts: Bool
  /// Opens or creates the file at a path.
  public let open: @Sendable (_ path: String, _ options: EngineOptions) throws -> any StorageEngine

  /// Of an engine that encrypts records and not the pages around them: whether 4,096 bytes of its file, at an offset
  /// that is a multiple of that, are such pages, which hold none of the data. Nil when all of its file is encrypted.
  public let isStructure: (@Sendable (_ page: UnsafeRawBufferPointer, _ offset: Int) -> Bool)?

  /// A kind of engine; see the properties.
  public init(
    name: String, fileExtension: String, encrypts: Bool,
    isStructure: (@Sendable (_ page: UnsafeRawBufferPointer, _ offset: Int) -> Bool)? = nil,
    open: @escaping @Sendable (_ path: String, _ options: EngineOptions) throws -> any StorageEngine
  ) {
    self.name = name
    self.fileExtension = fileExtension
    self.encrypts = encrypts
    self.isStructure = isStructure
    self.open = open
  }
}

/// Sizes and counts of an engine's file.
public struct EngineStatistics: Sendable {
  /// Bytes of the file and of those the engine keeps beside it (a write-ahead log).
  public var fileBytes: Int
  /// Bytes a page.
  public var pageBytes: Int
  /// Pages in the file that hold nothing.
  public var freePages: Int
  /// Pages in the file.
  public var totalPages: Int
  /// Entries of each keyspace by name.
  public var entries: [String: Int]
  /// Snapshots open in this process.
  public var openReaders: Int

  /// Statistics; see the properties.
  public init(
    fileBytes: Int, pageBytes: Int, freePages: Int, totalPages: Int, entries: [String: Int],
    openReaders: Int
  ) {
    self.fileBytes = fileBytes
    self.pageBytes = pageBytes
    self.freePages = freePages
    self.totalPages = totalPages
    self.entries = entries
    self.openReaders = openReaders
  }
}
