#if canImport(Glibc)
  import Glibc
#endif

/// Finds a data set by the name or path that a user typed.
package enum DatasetLookup {
  /// Returns the path of a known data set's file, or the given path. `-` is standard input.
  ///
  /// Throws `notHere` for a known data set that isn't on this machine or is generated. Throws
  /// `unknownDataset` if there is no such name and no such file.
  package static func path(
    of nameOrPath: String, environment: DataDirectory = .fromEnvironment
  ) throws -> String {
    if let dataset = KnownDatasets.dataset(named: nameOrPath) {
      if let path = dataset.path(environment: environment) { return path }
      guard case .file(let relativePath) = dataset.origin else {
        throw DatasetError(.notHere, "\(dataset.name) is generated and has no file")
      }
      let place =
        environment.path.map { "\($0)/\(relativePath)" } ?? "$\(DataDirectory.variable)/\(relativePath)"
      let hint = environment.path == nil ? ", and \(DataDirectory.variable) is not set" : ""
      throw DatasetError(
        .notHere,
        "the data set \(dataset.name) isn't on this machine; it must be in \(place)\(hint). Its source is: \(dataset.source)"
      )
    }
    if nameOrPath == "-" || access(nameOrPath, F_OK) == 0 { return nameOrPath }
    let names = KnownDatasets.datasets.map(\.name).joined(separator: ", ")
    throw DatasetError(
      .unknownDataset, "there is neither a file nor a data set '\(nameOrPath)'; known data sets are \(names)")
  }

  /// Opens the documents of a data set by name, or of a file of JSON lines or CSV by path. They are streamed.
  ///
  /// Without a format, the name of the file tells it. `documents` is the number of documents to generate. Other data sets return all documents.
  package static func open(
    _ nameOrPath: String, documents: Int? = nil, seed: UInt64 = SyntheticTravel.defaultSeed,
    idProperty: String = "_id", format: Format? = nil, environment: DataDirectory = .fromEnvironment
  ) throws -> any RecordSource {
    if let dataset = KnownDatasets.dataset(named: nameOrPath), case .generated = dataset.origin {
      return try SyntheticTravel(documentCount: documents ?? dataset.documents, seed: seed)
    }
    let path = try path(of: nameOrPath, environment: environment)
    if format ?? .of(path) == .csv { return try CSVSource(path: path, idProperty: idProperty) }
    return try JSONLinesSource(path: path, idProperty: idProperty)
  }

  /// The formats of files with documents.
  package enum Format: String, Sendable {
    case jsonl
    case csv

    /// The format that a name tells: CSV if it ends with `.csv` or `.csv.gz`.
    package static func of(_ path: String) -> Format {
      let name = path.lowercased()
      return name.hasSuffix(".csv") || name.hasSuffix(".csv.gz") ? .csv : .jsonl
    }
  }
}
