#if POSTGRES
  import Foundation
  import Storage
  import StoragePostgres
  import TestTools

  /// The engine on PostgreSQL for tests of what is above the engines, whose databases are folders: the data file says where on
  /// the server of the process the entries are. It can be copied, moved and removed as others can, and its schema stays.
  package final class PointedEngine: EngineMaintenance {
    package static let type = EngineType(name: "postgres", fileExtension: "postgres", encrypts: false) {
      try PointedEngine(path: $0, options: $1)
    }

    package let location: String
    private let base: any StorageEngine

    private init(path: String, options: EngineOptions) throws {
      location = path
      guard options.key == nil else {
        throw StorageError(.notEncrypted, "the engine postgres can't encrypt", path: path)
      }
      guard access(path, F_OK) == 0 else {
        guard options.creation != .openExisting, !options.isReadOnly else {
          throw StorageError(.notFound, "there is no file", path: path)
        }
        var options = options
        options.creation = .createNew
        base = try Self.make(path) { try PostgresEngines.postgres.open($0, options) }
        return
      }
      guard options.creation != .createNew else {
        throw StorageError(.alreadyExists, "there is a file", path: path)
      }
      guard let data = FileManager.default.contents(atPath: path) else {
        throw StorageError(.permissionDenied, "the file can't be read", path: path)
      }
      let pointed = String(decoding: data, as: UTF8.self)
      guard pointed.hasPrefix("postgres://") else {
        throw StorageError(.notADatabase, "the file names no server", path: path)
      }
      var existing = options
      existing.creation = .openExisting
      base = try PostgresEngines.postgres.open(pointed, existing)
    }

    /// Makes a file that names a new schema, and what `body` makes there.
    private static func make<Result>(_ path: String, _ body: (_ location: String) throws -> Result) throws
      -> Result
    {
      let location = try PostgresServer.shared.get().location(UUID().uuidString)
      let file = Glibc.open(path, O_CREAT | O_EXCL | O_WRONLY, 0o666)
      guard file >= 0 else {
        throw StorageError(
          errno == EEXIST ? .alreadyExists : errno == EACCES ? .permissionDenied : .notFound,
          "the file can't be made", path: path)
      }
      defer { _ = Glibc.close(file) }
      do {
        let result = try body(location)
        _ = Glibc.write(file, location, location.utf8.count)
        return result
      } catch {
        unlink(path)
        throw error
      }
    }

    package var name: String { base.name }
    package var library: String { base.library }
    package var limits: EngineLimits { base.limits }
    package var durability: Durability { base.durability }
    package var isReadOnly: Bool { base.isReadOnly }
    package var settings: [(name: String, value: String)] { base.settings }
    package func beginRead() throws -> any ReadTransaction { try base.beginRead() }
    package func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws
      -> Bool
    {
      try base.read(key, in: keyspace, body)
    }
    package func write(_ body: (any WriteTransaction) throws -> Void) throws { try base.write(body) }
    package func close() throws { try base.close() }

    package func statistics() throws -> EngineStatistics { try base.maintenance.statistics() }
    package func backup(to path: String) throws {
      try Self.make(path) { try base.maintenance.backup(to: $0) }
    }
    package var compactsInPlace: Bool { (try? base.maintenance.compactsInPlace) ?? false }
    package func compact() throws { try base.maintenance.compact() }
    package func checkIntegrity() throws -> [String] { try base.maintenance.checkIntegrity() }
  }
#endif
