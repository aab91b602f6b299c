import Fleece

/// CouchDB's rule for reduce functions of design documents: a long result has to be much shorter than what the function got.
///
/// A function that collects values, instead of reducing them, would make results as long as all rows.
struct ReduceLimit: Sendable {
  /// Results up to this length aren't looked at.
  static let threshold = 5_000
  /// How much longer the input has to be.
  static let ratio = 2

  /// The length of the function's text in the request, but for the text itself: its escapes.
  private let escapes: Int

  init(function: String) {
    var json: [UInt8] = []
    json.append(jsonString: function)
    escapes = ReduceLimit.length(json) - 2 - function.utf16.count
  }

  /// Throws `doesNotShrink`. The lengths are those of the lines that CouchDB and its script engine exchange, in UTF-16.
  func check(_ result: [UInt8], keys: [UInt8], values: [UInt8], rereduce: Bool) throws {
    guard result.count > ReduceLimit.threshold else { return }
    // `[result]`
    let output = ReduceLimit.length(result) + 2
    guard output > ReduceLimit.threshold else { return }
    let input: Int
    if rereduce {
      // `["rereduce",["function"],values]`
      input = 18 + ReduceLimit.length(values)
    } else {
      // `["reduce",["function"],[[[key,id],value],...]]`
      input = 15 + ReduceLimit.length(keys) + ReduceLimit.length(values) + 2 * (try ReduceLimit.count(values))
    }
    guard output * ReduceLimit.ratio > input + escapes else { return }
    throw ViewReduceError(
      .doesNotShrink,
      "Reduce output must shrink more rapidly: input size: \(input + escapes) output size: \(output)")
  }

  /// The number of items of a JSON array.
  private static func count(_ text: [UInt8]) throws -> Int {
    try text.withUnsafeBytes { text in
      var count = 0
      var scanner = JSONScanner(text)
      try scanner.array { scanner in
        _ = try scanner.skip()
        count += 1
      }
      return count
    }
  }

  private static func length(_ text: [UInt8]) -> Int { String(decoding: text, as: UTF8.self).utf16.count }
}
