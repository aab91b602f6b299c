/// The failures that a commit survives.
///
/// The levels mean the same on every engine. docs/durability.md lists the settings of each level.
public enum Durability: String, Sendable, CaseIterable, Codable {
  /// A commit survives a power loss. It is on the disk when it returns.
  case full
  /// A commit survives the end of the process. A power loss may lose the last commits, but the file stays
  /// consistent.
  case normal
  /// A commit survives the end of the process. A power loss may damage the file.
  case none
}

/// Whether opening may create the file.
public enum FileCreation: Sendable {
  /// Opens the file, or creates it if there is none.
  case openOrCreate
  /// Throws `notFound` if there is no file.
  case openExisting
  /// Throws `alreadyExists` if there is a file.
  case createNew
}

/// The options of opening a file.
public struct EngineOptions: Sendable {
  /// Whether the file may, must or must not exist.
  public var creation: FileCreation
  /// Whether the file is opened only for reading. Its contents then never change.
  ///
  /// In a writable directory, an engine may keep lock and log files beside the file while it is open. When it
  /// closes, it removes the ones that it created, if no other process uses the file.
  public var isReadOnly: Bool
  /// The failures that a commit must survive.
  public var durability: Durability
  /// The key of an engine that encrypts: 32 bytes. The caller wipes it. The engine keeps no copy beyond what
  /// its library needs.
  public var key: [UInt8]?
  /// The maximum size of the engine's own page cache, in bytes.
  ///
  /// Memory is taken as pages are read, so it never exceeds the size of the file. Engines that use the
  /// system's cache ignore this option. An engine with one cache per connection gives this size to the writer
  /// and to the first reader, half of it to the second reader, and an eighth to each further reader.
  public var cacheBytes: Int
  /// How new data is compressed: one of the engine's `EngineType.compressions`. Nil for the engine's default. What is stored stays as it is,
  /// and some libraries open it only with the compression that it has (docs/storage-wiredtiger.md).
  public var compression: String?
  /// The path of the library to load instead of the system's, for engines that load one.
  public var libraryPath: String?
  /// Whether the file is a new one that is filled, closed and then opened again, with no other user. Engines
  /// then skip the work that protects the file from failed writes. A failed write may leave the file broken.
  public var isBulkLoad: Bool
  /// Who may use a new file, if it takes the place of another one. Nil for what the umask allows.
  package var access: FileAccess?

  /// 40 MiB. This holds some ten thousand documents completely. A process that reads and writes them uses
  /// less than 81 MiB of private memory.
  public static let defaultCacheBytes = 40 << 20

  /// Makes options; see the properties.
  public init(
    creation: FileCreation = .openOrCreate, isReadOnly: Bool = false, durability: Durability = .normal,
    key: [UInt8]? = nil, cacheBytes: Int = EngineOptions.defaultCacheBytes, libraryPath: String? = nil,
    isBulkLoad: Bool = false, compression: String? = nil
  ) {
    self.creation = creation
    self.isReadOnly = isReadOnly
    self.durability = durability
    self.key = key
    self.cacheBytes = cacheBytes
    self.libraryPath = libraryPath
    self.isBulkLoad = isBulkLoad
    self.compression = compression
  }
}

/// A kind of engine that can be selected by name.
///
/// A new engine needs one `EngineType` and one type that conforms to `StorageEngine`.
public struct EngineType: Sendable {
  /// The name that selects the engine: `sqlite`, `lmdb`, `sqlcipher`.
  public let name: String
  /// The extension of the engine's files, without the dot: `sqlite`, `mdb`.
  public let fileExtension: String
  /// Whether the engine encrypts. An engine that encrypts requires a key.
  public let encrypts: Bool
  /// The longest absolute path of a file that the engine can make, in bytes. Nil if only the operating system limits it.
  public let longestPath: Int?
  /// What `EngineOptions.compression` can be, by the names of the engine's library, without compression first. Empty if the engine can't
  /// compress.
  public let compressions: [String]
  /// Opens or creates the file at a path. Throws `invalidArgument` for a compression that the engine doesn't have.
  public let open: @Sendable (_ path: String, _ options: EngineOptions) throws -> any StorageEngine

  /// For an engine that encrypts records but not the pages around them: whether a page of the file holds only
  /// structure and no data.
  ///
  /// The page has 4,096 bytes and its offset is a multiple of 4,096. Nil if the engine encrypts the whole
  /// file.
  public let isStructure: (@Sendable (_ page: UnsafeRawBufferPointer, _ offset: Int) -> Bool)?

  /// What an engine has whose databases are on servers. Nil if they are files.
  package var server: EngineServer?

  /// Makes a kind of engine; see the properties.
  public init(
    name: String, fileExtension: String, encrypts: Bool, longestPath: Int? = nil,
    compressions: [String] = [],
    isStructure: (@Sendable (_ page: UnsafeRawBufferPointer, _ offset: Int) -> Bool)? = nil,
    open: @escaping @Sendable (_ path: String, _ options: EngineOptions) throws -> any StorageEngine
  ) {
    self.name = name
    self.fileExtension = fileExtension
    self.encrypts = encrypts
    self.longestPath = longestPath
    self.isStructure = isStructure
    self.compressions = compressions
    self.open = { path, options in
      if let compression = options.compression, !compressions.contains(compression) {
        let known = compressions.isEmpty ? "it has none" : "it can be \(compressions.joined(separator: ", "))"
        throw StorageError(
          .invalidArgument, "the engine \(name) doesn't have the compression \"\(compression)\": \(known)",
          path: path)
      }
      return try open(path, options)
    }
  }
}

/// Sizes and counts of an engine's file.
public struct EngineStatistics: Sendable {
  /// The size of the file and of the files beside it (a write-ahead log), in bytes.
  public var fileBytes: Int
  /// The size of a page, in bytes.
  public var pageBytes: Int
  /// The number of unused pages in the file.
  public var freePages: Int
  /// The number of pages in the file.
  public var totalPages: Int
  /// The number of entries in each keyspace, by name.
  public var entries: [String: Int]
  /// The number of snapshots open in this process.
  public var openReaders: Int

  /// Makes statistics; see the properties.
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
