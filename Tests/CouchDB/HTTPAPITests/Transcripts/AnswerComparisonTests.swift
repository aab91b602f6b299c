import Fleece
import TestSupport
import Testing

/// The comparison itself: it accepts what the recorded server says and what only names things otherwise, and finds every changed value.
@Suite(
  .enabled(
    if: recordingFolder != nil, "TOUCHSTONE_DATA is not set: there are no recorded exchanges to compare"))
struct AnswerComparisonTests {
  /// All recordings, or every eighth one in a short run.
  private static let names = Recording.names.enumerated().filter {
    isLong || $0.offset % times(8, sanitized: 4, long: 1) == 0
  }.map(\.element)

  @Test(
    "a recorded answer equals itself, and itself with other revisions and sequences",
    arguments: names)
  func equal(_ name: String) throws {
    var (same, renamed) = (AnswerComparison(), AnswerComparison())
    for exchange in try Recording(name).exchanges {
      let differences = same.compare(
        exchange, target: exchange.target, status: exchange.status, headers: exchange.answerHeaders,
        body: exchange.answerBody)
      expect(differences.isEmpty, "\(name) [\(exchange.number)]: \(differences)")
      guard let body = String(validating: exchange.answerBody, as: UTF8.self) else { continue }
      let headers = exchange.answerHeaders.map { (name: $0.name, value: Self.renamed($0.value)) }
      let others = renamed.compare(
        exchange, target: exchange.target, status: exchange.status, headers: headers,
        body: Array(Self.renamed(body).utf8))
      expect(others.isEmpty, "\(name) [\(exchange.number)]: \(others)")
    }
    expect(same.compared > 0)
  }

  @Test("every changed value is found", arguments: names)
  func changed(_ name: String) throws {
    var found = 0
    for exchange in try Recording(name).exchanges where exchange.method != "HEAD" && !exchange.isFeed {
      guard exchange.status < 300, exchange.answerHeader("content-type") == "application/json",
        let body = try? exchange.answerBody.withUnsafeBytes({ try JSONValue(json: $0) })
      else { continue }
      for (place, changed) in Self.changes(body, "body") {
        var comparison = AnswerComparison()
        let differences = comparison.compare(
          exchange, target: exchange.target, status: exchange.status, headers: exchange.answerHeaders,
          body: try changed.jsonText())
        let isFound = !differences.isEmpty
        expect(isFound, "\(name) [\(exchange.number)]: a change of \(place) isn't found")
        found += 1
      }
    }
    if name.hasPrefix("api-") { expect(found > 0) }
  }

  @Test func headersAreCompared() throws {
    let exchange = try #require(
      try Recording("api-01-server-and-database").exchanges.first { $0.status == 201 })
    for name in ["Location", "Content-Type", "Cache-Control"] {
      var comparison = AnswerComparison()
      let headers = exchange.answerHeaders.filter { $0.name != name }
      let differences = comparison.compare(
        exchange, target: exchange.target, status: exchange.status, headers: headers,
        body: exchange.answerBody)
      expect(differences.first?.place, equals: "header \(name)")
    }
  }

  @Test func learnedTokensGoIntoRequests() {
    var tokens = LearnedTokens()
    func expectAnswer(_ recorded: String, matches ours: String, _ isMatch: Bool = true) {
      let found = tokens.match(recorded, ours)
      expect(found, equals: isMatch, "\(recorded) and \(ours)")
    }
    func expectAnswer(_ recorded: String, becomes ours: String, isEscaped: Bool = false) {
      let found = tokens.translate(request: recorded, isEscaped: isEscaped)
      expect(found, equals: ours)
    }
    let hash = "0785e9eb543380151003dc452c3a001a"
    let mine = String(repeating: "ab", count: 20)
    expectAnswer("1-\(hash)", matches: "1-\(mine)")
    expectAnswer("1-\(hash)", matches: "1-\(hash)", false)
    expectAnswer("2-\(hash)", matches: "1-\(mine)", false)
    expectAnswer(
      "/db/a?open_revs=%5B%221-\(hash)%22%5D", becomes: "/db/a?open_revs=%5B%221-\(mine)%22%5D",
      isEscaped: true)
    // A hash that only the client knows stays what it is.
    let foreign = String(repeating: "b", count: 32)
    expectAnswer(#"{"ids":["\#(foreign)","\#(hash)"]}"#, becomes: #"{"ids":["\#(foreign)","\#(mine)"]}"#)
    expectAnswer("2-\(foreign)", matches: "2-\(mine)", false)
    let sequence = "12-g1AAAABPeJzLYWBgYMxgTmEQTM4vTc5ISXIwNDLXMwBC"
    expectAnswer(sequence, matches: "7")
    expectAnswer("since=\(sequence)&limit=1", becomes: "since=7&limit=1", isEscaped: true)
    expectAnswer("md5-3Qax109EQguDOe4Ve6IIBA==", matches: "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=")
  }

  /// A text with other revisions and sequences.
  private static func renamed(_ text: String) -> String {
    text.replacing(/\b([0-9]+)-g[12][A-Za-z0-9_\-]{20,}/) { "\($0.1)" }
      .replacing(/\b([0-9a-f]{32})\b/) { "\(String($0.1.reversed()))01234567" }
  }

  /// The value with each one of its first leaves changed. Left out is what may differ.
  private static func changes(_ value: JSONValue, _ place: String) -> [(String, JSONValue)] {
    switch value {
    case .object(let object):
      let free = [
        "instance_start_time", "_local_seq", "encoded_length", "disk_format_version", "uuid", "sizes",
        "cluster", "compact_running",
      ]
      return object.filter { !free.contains($0.key) && !($0.key == "update_seq" && $0.value.string == nil) }
        .flatMap { name, member in
          changes(member, "\(place).\(name)").map { place, changed in
            var copy = object
            copy[name] = changed
            return (place, .object(copy))
          }
        }
    case .array(let items):
      var found = items.prefix(2).enumerated().flatMap { index, item in
        changes(item, "\(place)[\(index)]").map { place, changed in
          var copy = items
          copy[index] = changed
          return (place, JSONValue.array(copy))
        }
      }
      found.append(("\(place).count", .array(items + [.null])))
      return found
    case .string(let text): return [(place, .string(text + "?"))]
    case .bool(let flag): return [(place, .bool(!flag))]
    case .int(let number): return [(place, .int(number &+ 1))]
    default: return [(place, .string("changed"))]
    }
  }
}
