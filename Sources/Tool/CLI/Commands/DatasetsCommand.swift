import Datasets

/// `touchstone datasets`: lists the data sets that the bench knows by name.
struct DatasetsCommand: Subcommand {
  static let usage = Usage(
    "datasets", "Lists the known data sets, their sources, and which are on this machine",
    options: [DatabaseArguments.json], examples: ["touchstone datasets"],
    notes: "Data sets that are files must be in the directory that the variable TOUCHSTONE_DATA names.")

  private let asJSON: Bool

  init(_ arguments: Arguments) throws { asJSON = arguments[DatabaseArguments.json] }

  func run(_ output: StandardOutput) throws {
    if asJSON {
      for dataset in KnownDatasets.datasets { try output.line(Self.json(dataset).jsonText) }
      return
    }
    var table = TextTable([("NAME", .left), ("DOCUMENTS", .right), ("BYTES", .right), ("HERE", .left)])
    for dataset in KnownDatasets.datasets {
      table.add(
        dataset.name, TextTable.grouped(dataset.documents), TextTable.grouped(dataset.jsonBytes),
        Self.place(dataset))
    }
    try output.lines(table.lines)
    for dataset in KnownDatasets.datasets {
      try output.line("\n\(dataset.name): \(dataset.summary)")
      if !dataset.types.isEmpty {
        let types = dataset.types.map { "\(TextTable.grouped($0.documents)) \($0.name)" }
        try output.line("  types    \(types.joined(separator: ", "))")
      }
      try output.line("  licence  \(dataset.license)")
      try output.line("  source   \(dataset.source)")
      if !dataset.sha256.isEmpty { try output.line("  SHA-256  \(dataset.sha256)") }
    }
  }

  private static func place(_ dataset: Dataset) -> String {
    switch dataset.origin {
    case .generated: "generated"
    case .file: dataset.path() ?? "no"
    }
  }

  private static func json(_ dataset: Dataset) -> JSONObjectText {
    var types: JSONObjectText = [:]
    for type in dataset.types { types.add(type.name, type.documents) }
    return [
      "name": dataset.name, "summary": dataset.summary, "documents": dataset.documents,
      "jsonBytes": dataset.jsonBytes, "sha256": dataset.sha256, "types": types,
      "available": dataset.isAvailable(), "path": dataset.path(), "license": dataset.license,
      "source": dataset.source,
    ]
  }
}
