import Storage

/// The progress of an operation that rewrites a database: a conversion, an encryption or a copy.
public struct ConversionProgress: Sendable, Equatable {
  /// The steps of the operation.
  public enum Phase: String, Sendable {
    /// A zip file is unpacked.
    case unpacking
    /// Documents and indexes are copied.
    case copying
    /// Blobs are copied or re-encrypted.
    case blobs
    /// The new files are read back and compared with the source.
    case verifying
  }

  /// The current step.
  public var phase: Phase
  /// The amount done: entries of the storage engine, or bytes for blobs and zip files.
  public var done: Int
  /// The total amount, in the same unit as `done`.
  public var total: Int

  /// Receives the progress several times a second. If it throws, the operation ends and changes nothing.
  public typealias Handler = (ConversionProgress) throws -> Void
}
