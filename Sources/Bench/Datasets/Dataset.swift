import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A data set that the bench knows by name.
package struct Dataset: Sendable {
  /// Where the documents come from.
  package enum Origin: Sendable {
    /// A file below the directory in `TOUCHSTONE_DATA`.
    case file(relativePath: String)
    /// Generated when needed.
    case generated
  }

  /// The name that selects it.
  package let name: String
  /// A sentence that describes it.
  package let summary: String
  /// Where the documents come from.
  package let origin: Origin
  /// The number of documents without the option `--docs`.
  package let documents: Int
  /// The number of documents of each type, if it has types.
  package let types: [(name: String, documents: Int)]
  /// The size of its lines with newlines, uncompressed, in bytes.
  package let jsonBytes: Int
  /// The SHA-256 of those bytes, in lower-case hex.
  package let sha256: String
  /// The license.
  package let license: String
  /// Where people can get it.
  package let source: String

  /// The path of the file; nil if it has none, or the file isn't on this machine.
  package func path(environment: DataDirectory = .fromEnvironment) -> String? {
    guard case .file(let relativePath) = origin, let directory = environment.path else { return nil }
    let path = "\(directory)/\(relativePath)"
    return access(path, R_OK) == 0 ? path : nil
  }

  /// Whether it can be read on this machine.
  package func isAvailable(environment: DataDirectory = .fromEnvironment) -> Bool {
    if case .generated = origin { return true }
    return path(environment: environment) != nil
  }
}

/// The directory of data sets that aren't part of the project.
package struct DataDirectory: Sendable {
  /// The name of the environment variable.
  package static let variable = "TOUCHSTONE_DATA"

  /// The path; nil if there is none.
  package let path: String?

  /// Makes a directory.
  package init(path: String?) { self.path = path }

  /// The directory in `TOUCHSTONE_DATA`. Its path is nil if the variable is unset or empty.
  package static var fromEnvironment: DataDirectory {
    DataDirectory(path: EnvironmentVariable.value(variable))
  }
}
