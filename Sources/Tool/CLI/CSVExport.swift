import Bytes
import Datasets
import Storage
import Touchstone

/// Writes documents as CSV (RFC 4180): a header with the names of all properties, then a record for each document, by ID.
/// `CSVValue` says which field a value is.
struct CSVExport {
  /// More columns than this are no table any more.
  static let mostColumns = 5_000

  /// The names of the columns: `_id`, then the properties, those that most documents have first.
  private let names: [String]
  private let writer: ByteWriter

  /// Reads the names of all properties of the snapshot, and writes the header.
  init(_ snapshot: DocumentSnapshot, to writer: ByteWriter, shouldStop: () -> Bool) throws {
    var counts: [ByteString: Int] = [:]
    var json: [UInt8] = []
    try snapshot.forEachDocument(order: .ascending) { document in
      guard !shouldStop() else { throw Interrupted("the export is incomplete") }
      for (name, _) in try Self.members(document, &json) { counts[ByteString(name), default: 0] += 1 }
      guard counts.count <= Self.mostColumns else {
        throw UsageError(
          "the documents have more than \(Self.mostColumns) different properties, too many for columns; use JSON lines, or "
            + "'touchstone query --format csv' for some of them")
      }
      return true
    }
    let found = counts.map { (name: $0.key.string, count: $0.value) }
    names = found.sorted { ($1.count, $0.name) < ($0.count, $1.name) }.map(\.name)
    self.writer = writer
    try write((["_id"] + names).map { $0.isEmpty ? "\"\"" : $0.csvField })
  }

  /// Writes a document.
  func write(_ document: DocumentView, _ json: inout [UInt8]) throws {
    let members = try Self.members(document, &json)
    var fields = [document.id.csvField]
    for name in names {
      switch members[name] {
      case nil: fields.append("")
      case .string(let text)?: fields.append(CSVValue.field(ofString: text))
      case let value?: fields.append(CSVValue.field(ofJSON: try value.canonicalJSON()))
      }
    }
    try write(fields)
  }

  private func write(_ fields: [String]) throws {
    var line = fields.joined(separator: ",") + "\r"
    try line.withUTF8 { try writer.writeLine(UnsafeRawBufferPointer($0)) }
  }

  private static func members(_ document: DocumentView, _ json: inout [UInt8]) throws -> JSONObject {
    json.removeAll(keepingCapacity: true)
    try document.writeJSON(into: &json)
    return try json.withUnsafeBytes { try JSONValue(json: $0) }.object ?? [:]
  }
}
