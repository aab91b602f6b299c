// Compares our answers with recorded ones: status, headers, members and values. These may differ, and nothing else:
//
//   revision IDs, digests, entity tags, sequences, IDs of new documents    learned at their place (LearnedTokens), equal from then on;
//                                                                          an order that follows from them isn't compared
//   times, sizes, shards                                                   the member is there, with the same kind of value
//   integers over 64 bits                                                  equal as doubles
//   error texts of scripts                                                 there, and not empty
//   order of members, blanks between them

import Fleece

/// Something in our answer that isn't what was recorded.
struct AnswerDifference {
  /// Where: `status`, `header NAME`, `body.rows[3].id`.
  let place: String
  let recorded: String
  let ours: String
}

struct AnswerComparison {
  var tokens = LearnedTokens()
  /// The values, headers and statuses compared since the start.
  private(set) var compared = 0
  /// What differs in the exchange that is compared.
  private(set) var differences: [AnswerDifference] = []

  /// Members of which only the kinds of values are compared.
  var kindsOnly: Set<String> = []

  /// Compares an answer with the recorded one, and returns the differences.
  mutating func compare(
    _ exchange: RecordedExchange, target: String, status: Int, headers: [(name: String, value: String)],
    body: [UInt8]
  ) -> [AnswerDifference] {
    differences = []
    func header(_ name: String) -> String? { headers.first { $0.name.lowercased() == name }?.value }
    expect(exchange.status == status, "status", "\(exchange.status)", "\(status) \(Self.short(body))")
    guard exchange.status == status else { return differences }
    compareHeaders(exchange, target, header)
    guard exchange.method != "HEAD", exchange.status != 304 else { return differences }
    if exchange.isFeed, !exchange.query.contains("feed=longpoll") {
      compareFeed(exchange, body)
    } else {
      var (recorded, body) = (exchange.answerBody, body)
      // A feed that the client has closed ends somewhere between heartbeats.
      if exchange.ended != nil {
        while recorded.last == UInt8(ascii: "\n") { recorded.removeLast() }
        while body.last == UInt8(ascii: "\n") { body.removeLast() }
      }
      compare(
        AnswerContent(recorded, exchange.answerHeader), AnswerContent(body, header), "body",
        isScriptError: exchange.status == 500)
    }
    return differences
  }

  // MARK: Headers

  /// Headers that must be equal, both present or both absent. Left out: `Date`, `Server`, `Content-Length`, `Transfer-Encoding` and
  /// `Connection`, which the listener makes; `Expires`, `X-Couch-Request-ID`, `X-CouchDB-Body-Time`, `X-Couch-Stack-Hash`: times and
  /// random numbers; `Vary`, which CouchDB doesn't send.
  private static let comparedHeaders = [
    "Location", "Accept-Ranges", "Content-Range", "Content-Encoding", "Content-Security-Policy",

    "X-Couch-Update-NewRev", "X-Couch-Id", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials",
    "Access-Control-Max-Age",
  ]
  /// Headers whose values are lists without an order.
  private static let listHeaders = [
    "Allow", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers",
  ]

  private mutating func compareHeaders(
    _ exchange: RecordedExchange, _ target: String, _ ours: (String) -> String?
  ) {
    for name in Self.comparedHeaders {
      let (recorded, mine) = (exchange.answerHeader(name), ours(name.lowercased()))
      if recorded == nil, mine == nil { continue }
      let isEqual = recorded != nil && mine != nil && tokens.match(recorded ?? "", mine ?? "")
      expect(isEqual, "header \(name)", recorded, mine)
    }
    // What CouchDB forbids caches is forbidden here, and what it shows to pages is shown; more may be.
    for name in ["Cache-Control", "Access-Control-Expose-Headers"] {
      func items(_ text: String?) -> Set<String> {
        Set((text ?? "").split(separator: ",").map { $0.trimmingPrefix(" ").lowercased() })
      }
      let (recorded, mine) = (exchange.answerHeader(name), ours(name.lowercased()))
      expect(items(recorded).isSubset(of: items(mine)), "header \(name)", recorded, mine)
    }
    for name in Self.listHeaders {
      func list(_ text: String?) -> [String]? {
        text?.split { $0 == "," || $0 == " " }.map { $0.lowercased() }.sorted()
      }
      let (recorded, mine) = (exchange.answerHeader(name), ours(name.lowercased()))
      if recorded == nil, mine == nil { continue }
      expect(list(recorded) == list(mine), "header \(name)", recorded, mine)
    }
    if exchange.method != "HEAD" || exchange.status == 200 {
      let (recorded, mine) = (exchange.answerHeader("content-type"), ours("content-type"))
      if recorded != nil || mine != nil, exchange.status != 304 {
        expect(
          Self.withoutBoundary(recorded) == Self.withoutBoundary(mine), "header Content-Type", recorded, mine)
      }
    }
    let (tag, mine) = (exchange.answerHeader("etag"), ours("etag"))
    if tag != nil || mine != nil {
      expect((tag == nil) == (mine == nil), "header ETag", tag, mine)
      if let tag, let mine {
        // The tag of a document is its revision.
        let isRevision = tag.dropFirst().prefix { $0 != "-" }.allSatisfy(\.isNumber) && tag.contains("-")
        if isRevision { expect(tokens.match(tag, mine), "header ETag", tag, mine) }
        tokens.learn(tag: tag, mine, of: target)
      }
    }
    let (cookie, own) = (exchange.answerHeader("set-cookie"), ours("set-cookie"))
    if cookie != nil || own != nil {
      expect(Self.cookie(cookie) == Self.cookie(own), "header Set-Cookie", cookie, own)
    }
  }

  private static func withoutBoundary(_ type: String?) -> String? {
    type?.split(separator: ";").map { $0.trimmingPrefix(" ") }.filter { !$0.hasPrefix("boundary=") }
      .joined(separator: ";").lowercased()
  }

  /// The name of a cookie, and whether it has a value.
  private static func cookie(_ text: String?) -> String? {
    text.map { $0.prefix { $0 != "=" } + ($0.contains("=;") ? " without a value" : " with a value") }.map(
      String.init)
  }

  // MARK: Bodies

  private mutating func compare(
    _ recorded: AnswerContent, _ ours: AnswerContent, _ place: String, isScriptError: Bool = false
  ) {
    switch (recorded, ours) {
    case (.json(let recorded), .json(let ours)):
      if isScriptError, recorded["error"].string != nil {
        expect(
          ours["error"].string?.isEmpty == false, "\(place).error", recorded["error"].string,
          ours["error"].string)
        expect(
          ours["reason"].string?.isEmpty == false, "\(place).reason", recorded["reason"].string,
          ours["reason"].string)
      } else {
        compare(recorded, ours, place)
      }
    case (.parts(let recorded), .parts(let ours)): compare(recorded, ours, place)
    case (.empty, .empty): compared += 1
    case (.bytes(let recorded), .bytes(let ours)):
      let text = String(decoding: recorded, as: UTF8.self)
      let isEqual = recorded == ours || tokens.match(text, String(decoding: ours, as: UTF8.self))
      expect(isEqual, place, Self.short(recorded), Self.short(ours))
    default: expect(false, place, Self.short(recorded), Self.short(ours))
    }
  }

  private mutating func compare(_ recorded: [AnswerPart], _ ours: [AnswerPart], _ place: String) {
    expect(recorded.count == ours.count, "\(place).parts", "\(recorded.count)", "\(ours.count)")
    guard recorded.count == ours.count else { return }
    var left = ours
    for (index, part) in recorded.enumerated() {
      let key = tokens.translated(part.key)
      let mine = left.remove(at: left.firstIndex { $0.key == key } ?? 0)
      let place = "\(place).part[\(index)]"
      for name in ["content-type", "content-disposition", "content-encoding"] {
        let (recorded, mine) = (part.header(name), mine.header(name))
        if recorded == nil, mine == nil { continue }
        expect(
          Self.withoutBoundary(recorded) == Self.withoutBoundary(mine), "\(place).header \(name)", recorded,
          mine)
      }
      compare(part.content, mine.content, place)
    }
  }

  private mutating func compare(_ recorded: JSONValue, _ ours: JSONValue, _ place: String) {
    switch (recorded, ours) {
    case (.object(let recorded), .object(let ours)): compare(recorded, ours, place)
    case (.array(let recorded), .array(let ours)): compare(recorded, ours, place)
    case (.string(let recorded), .string(let ours)):
      expect(tokens.match(recorded, ours), place, recorded, ours)
    default:
      // 1 and 1.0 are one number, and an integer over 64 bits is the nearest double.
      let isEqual = recorded == ours || recorded.double != nil && recorded.double == ours.double
      expect(isEqual, place, Self.short(recorded), Self.short(ours))
    }
  }

  private mutating func compare(_ recorded: JSONObject, _ ours: JSONObject, _ place: String) {
    for (name, value) in recorded {
      let place = "\(place).\(name)"
      guard let mine = ours[name] else {
        expect(false, place, Self.short(value), nil)
        continue
      }
      if kindsOnly.contains(name) {
        expect(Self.kind(value) == Self.kind(mine), place, Self.short(value), Self.short(mine))
        continue
      }
      switch name {
      case "instance_start_time", "_local_seq", "encoded_length", "disk_format_version", "uuid",
        "compact_running":
        expect(Self.kind(value) == Self.kind(mine), place, Self.short(value), Self.short(mine))
      case "update_seq" where value.string == nil:
        expect(Self.kind(value) == Self.kind(mine), place, Self.short(value), Self.short(mine))
      case "sizes", "cluster":
        let names = (Self.names(value), Self.names(mine))
        expect(names.0 == names.1, place, Self.short(value), Self.short(mine))
      default: compare(value, mine, place)
      }
    }
    for (name, value) in ours where recorded[name] == nil {
      expect(false, "\(place).\(name)", nil, Self.short(value))
    }
  }

  private mutating func compare(_ recorded: [JSONValue], _ ours: [JSONValue], _ place: String) {
    expect(recorded.count == ours.count, "\(place).count", "\(recorded.count)", "\(ours.count)")
    guard recorded.count == ours.count else { return }
    var left = ours
    // Revisions come in the order of their IDs.
    let isOfRevisions = !recorded.contains { Self.revision($0) == nil }
    let ids = isOfRevisions ? nil : pairedIDs(recorded, ours, place)
    for (index, value) in recorded.enumerated() {
      var place = "\(place)[\(index)]"
      var found = 0
      if isOfRevisions, let revision = Self.revision(value) {
        let wanted = tokens.translated(revision)
        found = left.firstIndex { Self.revision($0) == wanted } ?? 0
        place += " (\(revision.prefix(12)))"
      } else if let id = ids?[index] {
        found = left.firstIndex { $0["id"].string == id } ?? 0
      }
      var mine = left.remove(at: found)
      // Sequences come in their order, whichever documents they belong to.
      if ids != nil, let sequence = ours[index].object?["seq"] { mine["seq"] = sequence }
      compare(value, mine, place)
    }
  }

  /// Our IDs of the documents that recorded rows are about, if both have a row for each of the same documents, but in another order.
  /// That is a difference, except for documents whose IDs the servers have made.
  private mutating func pairedIDs(_ recorded: [JSONValue], _ ours: [JSONValue], _ place: String) -> [String]?
  {
    let wanted = recorded.compactMap { $0["id"].string }.map(tokens.translated)
    let found = ours.compactMap { $0["id"].string }
    guard wanted.count == recorded.count, wanted != found, Set(wanted).count == wanted.count,
      wanted.sorted() == found.sorted()
    else { return nil }
    let made = Set(zip(recorded, wanted).filter { $0["id"].string != $1 }.map(\.1))
    let (left, right) = (wanted.filter { !made.contains($0) }, found.filter { !made.contains($0) })
    expect(left == right, "\(place).order", left.joined(separator: " "), right.joined(separator: " "))
    return wanted
  }

  /// The revision that a value is, or is about; nil if it isn't in a list of revisions of one document.
  private static func revision(_ value: JSONValue) -> String? {
    func isRevision(_ text: String) -> Bool {
      let generation = text.prefix { $0.isNumber }
      return !generation.isEmpty && text.dropFirst(generation.count).first == "-"
        && text.count > generation.count + 1
    }
    if let text = value.string { return isRevision(text) ? text : nil }
    guard let object = value.object, object.count == 1 else { return nil }
    return object["rev"]?.string ?? object["missing"]?.string ?? object["ok"]?["_rev"].string
  }

  // MARK: Feeds

  /// The rows of `feed=continuous` and `feed=eventsource`.
  private mutating func compareFeed(_ exchange: RecordedExchange, _ body: [UInt8]) {
    let isEventSource = exchange.query.contains("feed=eventsource")
    let recorded = FeedText(exchange.answerBody, isEventSource: isEventSource)
    let ours = FeedText(body, isEventSource: isEventSource)
    if recorded.heartbeats > 2, exchange.query.contains("heartbeat=") {
      expect(ours.heartbeats > 0, "body.heartbeats", "\(recorded.heartbeats)", "\(ours.heartbeats)")
    }
    expect(
      recorded.rows.count == ours.rows.count, "body.rows", "\(recorded.rows.count)", "\(ours.rows.count)")
    for (index, (recorded, ours)) in zip(recorded.rows, ours.rows).enumerated() {
      compare(recorded, ours, "body.row[\(index)]")
    }
    for (recorded, ours) in zip(recorded.ids, ours.ids) {
      expect(tokens.match(recorded, ours), "body.id", recorded, ours)
    }
  }

  // MARK: What is found

  private mutating func expect(_ isEqual: Bool, _ place: String, _ recorded: String?, _ ours: String?) {
    compared += 1
    guard !isEqual else { return }
    func text(_ text: String?) -> String { text.map { String($0.prefix(600)) } ?? "(none)" }
    differences.append(AnswerDifference(place: place, recorded: text(recorded), ours: text(ours)))
  }

  private static func kind(_ value: JSONValue) -> String {
    switch value {
    case .null: "null"
    case .bool: "bool"
    case .int, .uint, .double: "number"
    case .string, .data: "string"
    case .array: "array"
    case .object: "object"
    }
  }
  private static func names(_ value: JSONValue) -> [String] {
    value.object.map { $0.map(\.key).sorted() } ?? []
  }
  private static func short(_ value: JSONValue) -> String { String(value.description.prefix(600)) }
  private static func short(_ bytes: [UInt8]) -> String { String(decoding: bytes.prefix(300), as: UTF8.self) }
  private static func short(_ content: AnswerContent) -> String {
    switch content {
    case .empty: "(empty)"
    case .json(let value): "JSON \(short(value))"
    case .parts(let parts): "\(parts.count) parts"
    case .bytes(let bytes): "bytes \(short(bytes))"
    }
  }
}

/// What a feed has brought.
struct FeedText {
  private(set) var rows: [JSONValue] = []
  /// The IDs of events.
  private(set) var ids: [String] = []
  private(set) var heartbeats = 0

  init(_ body: [UInt8], isEventSource: Bool) {
    for line in body.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      var line = line
      if isEventSource {
        if line.starts(with: "id: ".utf8) { ids.append(String(decoding: line.dropFirst(4), as: UTF8.self)) }
        if line.starts(with: "event: heartbeat".utf8) { heartbeats += 1 }
        guard line.starts(with: "data: ".utf8), line.count > 6 else { continue }
        line = line.dropFirst(6)
      } else if line.isEmpty {
        heartbeats += 1
        continue
      }
      let row = try? line.withUnsafeBytes { try JSONValue(json: $0) }
      rows.append(row ?? .string(String(decoding: line, as: UTF8.self)))
    }
  }
}
