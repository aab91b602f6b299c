import BenchmarkKit
import Datasets
import Storage
import Touchstone

/// The data that the workloads of the suite `http` share.
final class HTTPData: Sendable {
  static let name = "documents"
  static let batch = 1_000
  /// The design document with the view that is queried.
  static let design = "_design/bench"

  let dataset: LoadedDataset
  private let context: SuiteContext
  /// The rate of the listener with fixed bytes, in requests a second, once it is known.
  let fixedRate = Lock<Double?>(nil)

  init(_ context: SuiteContext) throws {
    self.context = context
    dataset = try context.dataset(for: "http")
  }

  /// The documents of all requests but those that write many.
  var requests: Int { max(1, min(20_000, dataset.count)) }

  /// A database with all documents and the view, which is copied for each run.
  func filled(_ engine: ProbedEngine, in directory: String) throws -> Database {
    let source = try context.fixtures.directory("http \(engine.type.name)") { path in
      let database = try context.open(Self.name, engine, in: path)
      try dataset.save(in: database)
      let map = "function (doc) { emit(doc.name || null, null) }"
      try database.save(Self.design, ["views": ["names": ["map": .string(map)]], "language": "javascript"])
      try database.close()
    }
    try Fixtures.copy(source, to: directory)
    return try context.open(Self.name, engine, in: directory)
  }

  func empty(_ engine: ProbedEngine, in directory: String) throws -> Database {
    try context.open(Self.name, engine, in: directory)
  }

  /// The target of a document.
  func target(_ number: Int) -> String { "/\(Self.name)/\(Self.escaped(dataset.idText(number)))" }

  private static func escaped(_ text: String) -> String {
    var result = ""
    for byte in text.utf8 {
      let isPlain = byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || byte == 0x5F || byte == 0x2D
      result +=
        isPlain
        ? String(UnicodeScalar(byte)) : "%" + String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
    }
    return result
  }

  /// The JSON of a document for PUT.
  func body(_ number: Int) -> [UInt8] { Array(dataset.json(number)) }

  /// The bodies of `_bulk_docs` with all documents.
  func bulks() -> [[UInt8]] {
    stride(from: 0, to: dataset.count, by: Self.batch).map { first in
      var json = Array("{\"docs\":[".utf8)
      for number in first..<min(first + Self.batch, dataset.count) {
        if number > first { json.append(UInt8(ascii: ",")) }
        let document = dataset.json(number)
        json += Array("{\"_id\":\"\(dataset.idText(number))\"".utf8)
        if document.count > 2 { json.append(UInt8(ascii: ",")) }
        json += document.dropFirst()
      }
      return json + Array("]}".utf8)
    }
  }
}
