import Storage

/// The LMDB engines, for selection by name. `StorageEncrypted` adds `encrypted`.
package enum LMDBEngines {
  /// LMDB, with the name `lmdb` and files `NAME.mdb`. It takes no key.
  package static let lmdb = EngineType(name: "lmdb", fileExtension: "mdb", encrypts: false) { path, options in
    try LMDBEngine(path: path, options: options)
  }
}
