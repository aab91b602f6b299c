import Storage

/// The engines of this module, to be chosen by name.
public enum LMDBEngines {
  /// LMDB: name `lmdb`, files `NAME.mdb`. It takes no key.
  public static let lmdb = EngineType(name: "lmdb", fileExtension: "mdb", encrypts: false) { path, options in
    try LMDBEngine(path: path, options: options)
  }
}
