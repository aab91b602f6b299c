import Query
import TestSupport

extension Database {
  /// Saves documents of JSON by their IDs.
  func fill(_ documents: [(String, String)]) throws {
    try inBatch {
      for (id, json) in documents { try save(id, .json(Array(json.utf8))) }
    }
  }

  /// The rows of a query as JSON.
  func rows(_ text: String, _ parameters: [String: JSONValue] = [:], usesIndexes: Bool = true) throws
    -> [String]
  {
    try query(text, options: .init(usesIndexes: usesIndexes)).run(parameters).map { try $0.json() }
  }

  /// The first column of a query's rows, `-` where it is no string. The same with and without indexes.
  func firstColumn(_ text: String) throws -> [String] {
    let found = try [true, false].map { usesIndexes in
      try query(text, options: .init(usesIndexes: usesIndexes)).run().map { $0[0].string ?? "-" }
    }
    expect(found[0], equals: found[1], "\(text)")
    return found[0]
  }
}

/// The results that a live query told.
final class ToldResults: Sendable {
  let results = Lock<[[String]]>([])
  private let signal = CountingSemaphore()

  func append(_ outcome: LiveQuery.Outcome) {
    let lines = (try? outcome.get().map { try $0.json() }) ?? ["failed"]
    results.withLock { $0.append(lines) }
    signal.signal()
  }

  /// The last result so far.
  var last: [String]? { results.withLock { $0.last } }

  /// Waits for the next result; false after `seconds`.
  @discardableResult
  func wait(seconds: Double = 30) -> Bool { signal.wait(seconds: seconds) }

  /// The next result, of which there has to be one.
  func next(sourceLocation: Testing.SourceLocation = #_sourceLocation) -> [String] {
    if !wait() { Issue.record("nothing was told", sourceLocation: sourceLocation) }
    return last ?? []
  }
}
