import Storage

/// The engines of this module, to be chosen by name.
public enum LMDBEngines {
  static let encryptedName = "lmdb-encrypted"

  /// LMDB: name `lmdb`, files `NAME.mdb`. It takes no key.
  public static let lmdb = EngineType(name: "lmdb", fileExtension: "mdb", encrypts: false) { path, options in
    try LMDBEngine(path: path, options: options)
  }

  /// LMDB with a key: name `lmdb-encrypted`, files `NAME.emdb`, everything in them encrypted with AES-256-GCM under keys
  /// derived from the 32 bytes of `EngineOptions.key`.
  public static let encrypted = EngineType(
    name: encryptedName, fileExtension: "emdb", encrypts: true, isStructure: OuterPage.isStructure
  ) { path, options in
    try LMDBEncryptedEngine(path: path, options: options)
  }
}
