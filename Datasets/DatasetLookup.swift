#if canImport(Glibc)
  import Glibc
#endif

/// From what a person typed to documents.
public enum DatasetLookup {
  /// The file of a known data set or of a path, `-` for standard input.
  ///
  /// Throws `notHere` for a known one that is not on this machine (or is generated, and so has no file) and
  /// `unknownDataset` when there is neither such a name nor such a file.
  public static func path(
    of nameOrPath: String, environment: DataDirectory = .fromEnvironment
  ) throws -> String {
    if let dataset = Manifest.dataset(named: nameOrPath) {
      if let path = dataset.path(environment: environment) { return path }
      guard case .file(let relativePath) = dataset.origin else {
        throw DatasetError(.notHere, "\(dataset.name) is generated and has no file")
      }
      let place =
        environment.path.map { "\($0)/\(relativePath)" } ?? "$\(DataDirectory.variable)/\(relativePath)"
      let hint = environment.path == nil ? ", and \(DataDirectory.variable) is not set" : ""
      throw DatasetError(
        .notHere,
        "\(dataset.name) is not here: it is looked for in \(place)\(hint). Get it from: \(dataset.source)")
    }
    if nameOrPath == "-" || access(nameOrPath, F_OK) == 0 { return nameOrPath }
    let names = Manifest.datasets.map(\.name).joined(separator: ", ")
    throw DatasetError(
      .unknownDataset, "there is no data set and no file '\(nameOrPath)'; known are \(names)")
  }

  /// The documents of a data set by name, or of a file of JSON lines by path, streaming.
  ///
  /// `documents` is for generated sets how many to make; of others all come.
  public static func open(
    _ nameOrPath: String, documents: Int? = nil, seed: UInt64 = SyntheticTravel.defaultSeed,
    idProperty: String = "_id", environment: DataDirectory = .fromEnvironment
  ) throws -> any RecordSource {
    if let dataset = Manifest.dataset(named: nameOrPath), case .generated = dataset.origin {
      return try SyntheticTravel(documentCount: documents ?? dataset.documents, seed: seed)
    }
    return try JSONLinesSource(
      path: path(of: nameOrPath, environment: environment), idProperty: idProperty)
  }
}
