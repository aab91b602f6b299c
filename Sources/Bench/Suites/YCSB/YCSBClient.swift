import BenchmarkKit
import Fleece
import Touchstone

/// Runs the operations of a thread on a database, and checks their results.
struct YCSBClient {
  private let database: Database
  private let data: YCSBData
  private let inserts: YCSBInserts
  private let keys: [Key]

  init(_ database: Database, _ data: YCSBData, _ inserts: YCSBInserts) throws {
    self.database = database
    self.data = data
    self.inserts = inserts
    keys = try data.fieldNames.map(database.key)
  }

  /// An operation with a wrong result. The run isn't valid.
  struct Wrong: Error, CustomStringConvertible {
    let description: String
  }

  /// With `choosesLatest`, the number of a request counts backwards from the last document.
  func run(_ request: YCSBRequest, choosesLatest: Bool) throws {
    var number = Int(request.number)
    switch request.operation {
    case .insert:
      number = inserts.take()
      try save(number, Int(request.body))
      inserts.acknowledge(number)
    case .update: try save(number, Int(request.body))
    case .read:
      if choosesLatest { number = max(0, inserts.acknowledged - 1 - number) }
      try read(data.ids[number])
    case .scan: try scan(number, Int(request.length))
    case .readModifyWrite: try change(data.ids[number], Int(request.body))
    }
  }

  private func save(_ number: Int, _ body: Int) throws {
    try data.body(body).withUnsafeBytes { _ = try database.save(data.ids[number], json: $0) }
  }

  /// Reads a document and all of its fields.
  private func read(_ id: String) throws {
    guard let document = try database.document(id) else {
      throw Wrong(description: "there is no document \(id)")
    }
    guard document.id == id else { throw Wrong(description: "asked for \(id), got \(document.id)") }
    for key in keys {
      guard document[key].string?.utf8.count == YCSBData.fieldBytes else {
        throw Wrong(description: "a field of \(id) isn't \(YCSBData.fieldBytes) bytes long")
      }
    }
  }

  /// Reads consecutive documents from an ID on, with all of their fields.
  private func scan(_ number: Int, _ length: Int) throws {
    let start = data.ids[number]
    var found = 0
    try database.read { snapshot in
      try snapshot.enumerate(AllDocuments(from: start, limit: length)) { document in
        guard found > 0 || document.id >= start else {
          throw Wrong(description: "a scan from \(start) began with \(document.id)")
        }
        for key in keys {
          guard document[key]?.string?.utf8.count == YCSBData.fieldBytes else {
            throw Wrong(description: "a field of \(document.id) isn't \(YCSBData.fieldBytes) bytes long")
          }
        }
        found += 1
        return true
      }
    }
    // New documents may be among them. All loaded documents must be found.
    let least = number < data.remaining.count ? min(length, Int(data.remaining[number])) : 0
    guard (least...length).contains(found) else {
      throw Wrong(description: "a scan of \(length) from \(start) gave \(found)")
    }
  }

  /// Reads a document, changes a field, and saves it. Repeats this after a conflict.
  private func change(_ id: String, _ body: Int) throws {
    let name = data.fieldNames[body % YCSBData.fieldCount]
    _ = try database.update(id, attempts: 1_000) { document in
      guard document.count == YCSBData.fieldCount,
        data.fieldNames.allSatisfy({ document[$0].string?.utf8.count == YCSBData.fieldBytes })
      else { throw Wrong(description: "the fields of \(id) aren't what was saved") }
      document[name] = .string(data.field(body))
    }
  }
}
