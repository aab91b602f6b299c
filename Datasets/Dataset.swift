import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A data set that the bench knows by name.
public struct Dataset: Sendable {
  /// Where the documents come from.
  public enum Origin: Sendable {
    /// A file below the directory in `TOUCHSTONE_DATA`.
    case file(relativePath: String)
    /// Generated when needed.
    case generated
  }

  /// The name that selects it.
  public let name: String
  /// A sentence that describes it.
  public let summary: String
  /// Where the documents come from.
  public let origin: Origin
  /// The number of documents without the option `--docs`.
  public let documents: Int
  /// The number of documents of each type, if it has types.
  public let types: [(name: String, documents: Int)]
  /// The size of its lines with newlines, uncompressed, in bytes.
  public let jsonBytes: Int
  /// The SHA-256 of those bytes, in lower-case hex.
  public let sha256: String
  /// The license.
  public let license: String
  /// Where people can get it.
  public let source: String

  /// The path of the file; nil if it has none, or the file isn't on this machine.
  public func path(environment: DataDirectory = .fromEnvironment) -> String? {
    guard case .file(let relativePath) = origin, let directory = environment.path else { return nil }
    let path = "\(directory)/\(relativePath)"
    return access(path, R_OK) == 0 ? path : nil
  }

  /// Whether it can be read on this machine.
  public func isAvailable(environment: DataDirectory = .fromEnvironment) -> Bool {
    if case .generated = origin { return true }
    return path(environment: environment) != nil
  }
}

/// The directory of data sets that aren't part of the project.
public struct DataDirectory: Sendable {
  /// The name of the environment variable.
  public static let variable = "TOUCHSTONE_DATA"

  /// The path; nil if there is none.
  public let path: String?

  /// Makes a directory.
  public init(path: String?) { self.path = path }

  /// The directory in `TOUCHSTONE_DATA`. Its path is nil if the variable is unset or empty.
  public static var fromEnvironment: DataDirectory {
    DataDirectory(path: EnvironmentVariable.value(variable))
  }
}
