import Testing
@testable import Touchstone

@testable import Blobs

/// The engines that every test of documents with blobs runs on.
let allEngines: [EngineName] = [.sqlite, .lmdb, .sqlcipher, .sqlcipherPlain, .lmdbEncrypted]

func options(_ engine: EngineName, durability: Durability = .none) throws -> DatabaseOptions {
  var options = DatabaseOptions(engine: engine, durability: durability)
  if try Engines.type(engine).encrypts { options.key = try .raw([UInt8](repeating: 7, count: 32)) }
  return options
}

/// Runs `body` with an empty database on an engine.
func withDatabase(
  _ engine: EngineName, _ change: (inout DatabaseOptions) -> Void = { _ in },
  _ body: (Database) throws -> Void
) throws {
  let directory = TemporaryDirectory()
  var options = try options(engine)
  change(&options)
  let database = try Database.open("test", in: directory.path, options: options)
  try body(database)
  try database.close()
}

extension Database {
  var blobStore: BlobStore {
    get throws {
      guard let blobs = try store.blobs else { throw DocumentError(.notFound, "there is no place for blobs") }
      return blobs
    }
  }

  /// How many blobs have a file.
  var blobFileCount: Int { get throws { try blobStore.files().count } }
}

func documentCode(of body: () throws -> Void) -> DocumentError.Code? {
  do {
    try body()
    return nil
  } catch { return (error as? DocumentError)?.code }
}
