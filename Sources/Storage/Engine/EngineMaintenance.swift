/// What an engine that keeps its data in files of its own can do with them. Optional: whoever needs it asks for
/// `StorageEngine.maintenance`.
public protocol EngineMaintenance: StorageEngine {
  /// Sizes and counts, as of now.
  func statistics() throws -> EngineStatistics

  /// Writes a whole copy of the last commit, without unused pages, to a new file at `path`, beside readers
  /// and the writer. Encrypted when this one is, with the same key. Throws `alreadyExists` when there is a
  /// file; leaves none when it fails. The copy is synced when this returns.
  func backup(to path: String) throws

  /// Whether `compact()` gives space back. When false, the way is `backup(to:)` and a change of files, which
  /// is the business of whoever names the files.
  var compactsInPlace: Bool { get }

  /// Gives unused space back to the file system, beside readers. Throws `unsupported` when the engine
  /// can't do that in place.
  func compact() throws

  /// Looks at every page with the library's own checks. Empty when it is sound; else one line a fault.
  func checkIntegrity() throws -> [String]
}
