/// The operations of an engine that keeps its data in its own files. The protocol is optional; use
/// `StorageEngine.maintenance`.
public protocol EngineMaintenance: StorageEngine {
  /// The current sizes and counts.
  func statistics() throws -> EngineStatistics

  /// Writes a complete copy of the last commit to a new file at `path`, without unused pages.
  ///
  /// Readers and the writer may work meanwhile. The copy is encrypted with the same key if this engine is
  /// encrypted. It is synced when this call returns. Throws `alreadyExists` if there is a file at `path`. A
  /// failed backup leaves no file.
  func backup(to path: String) throws

  /// Whether `compact()` can return space. If false, use `backup(to:)` and replace the file with the copy.
  /// The caller, who names the files, has to do this.
  var compactsInPlace: Bool { get }

  /// Returns unused space to the file system. Readers may work meanwhile. Throws `unsupported` if the engine
  /// can't do this in place.
  func compact() throws

  /// Checks every page with the library's own checks. Returns one line per fault, and no lines if the file is
  /// sound.
  func checkIntegrity() throws -> [String]
}
