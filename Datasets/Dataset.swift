import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A set of documents that the bench knows by name: what it is, and where it comes from.
public struct Dataset: Sendable {
  /// Where its bytes are.
  public enum Origin: Sendable {
    /// A file below the directory that `TOUCHSTONE_DATA` names.
    case file(relativePath: String)
    /// Made on the spot.
    case generated
  }

  /// The name it is chosen by.
  public let name: String
  /// What it is, in a sentence.
  public let summary: String
  /// Where its bytes are.
  public let origin: Origin
  /// Documents in all, as it comes without `--docs`.
  public let documents: Int
  /// Documents of each type, where it has types.
  public let types: [(name: String, documents: Int)]
  /// Bytes of its lines with their line ends, uncompressed.
  public let jsonBytes: Int
  /// SHA-256 of those bytes, lower-case hex.
  public let sha256: String
  /// Under which terms it may be used.
  public let license: String
  /// Where a person gets it.
  public let source: String

  /// The file, when it is one and is on this machine.
  public func path(environment: DataDirectory = .fromEnvironment) -> String? {
    guard case .file(let relativePath) = origin, let directory = environment.path else { return nil }
    let path = "\(directory)/\(relativePath)"
    return access(path, R_OK) == 0 ? path : nil
  }

  /// Whether it can be read here and now.
  public func isAvailable(environment: DataDirectory = .fromEnvironment) -> Bool {
    if case .generated = origin { return true }
    return path(environment: environment) != nil
  }
}

/// The directory that holds data sets which are not part of the project.
public struct DataDirectory: Sendable {
  /// The environment variable that names it.
  public static let variable = "TOUCHSTONE_DATA"

  /// The directory; nil when none is named.
  public let path: String?

  /// That directory, or none.
  public init(path: String?) { self.path = path }

  /// What `TOUCHSTONE_DATA` says; nothing when it is unset or empty.
  public static var fromEnvironment: DataDirectory {
    DataDirectory(path: EnvironmentVariable.value(variable))
  }
}
