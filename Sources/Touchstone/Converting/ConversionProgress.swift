import Storage

/// How far an operation is that writes a database anew: a conversion, an encryption, a copy.
public struct ConversionProgress: Sendable, Equatable {
  /// What is being done.
  public enum Phase: String, Sendable {
    /// A zip file is unpacked.
    case unpacking
    /// Documents and indexes are copied.
    case copying
    /// Blobs are copied, or encrypted anew.
    case blobs
    /// What was written is read back and compared.
    case verifying
  }

  /// What is being done.
  public var phase: Phase
  /// Entries of the storage engine that are done; of blobs and of zip files, bytes.
  public var done: Int
  /// How many there are.
  public var total: Int

  /// Is told how far it is, several times a second; what it throws ends the operation, and nothing has changed then.
  public typealias Handler = (ConversionProgress) throws -> Void
}
