import Storage
import StorageLMDB

extension LMDBEngines {
  static let encryptedName = "lmdb-encrypted"

  /// LMDB with a key, with the name `lmdb-encrypted` and files `NAME.emdb`. All data are encrypted with
  /// AES-256-GCM. The keys are derived from the 32 bytes of `EngineOptions.key`.
  package static let encrypted = EngineType(
    name: encryptedName, fileExtension: "emdb", encrypts: true, isStructure: OuterPage.isStructure
  ) { path, options in
    try LMDBEncryptedEngine(path: path, options: options)
  }
}
