import FoundationEssentials
import Query
import Touchstone

/// `touchstone expire`: shows and sets when documents are purged.
struct ExpireCommand: Subcommand {
  private static let action = Positional("ACTION", "list, show, set, clear or purge").choosing(
    ["list", "show", "set", "clear", "purge"])
  private static let ids = Positional("ID", "The documents' IDs, for show, set and clear", count: .any)
  private static let date = Option<Date>(
    "at", "DATE", "For set: the date, such as 2027-01-31 or 2027-01-31T12:00:00Z", parse: { try date($0) })
  private static let time = Option<Double>(
    "after", "TIME", "For set: the time from now: 90s, 15m, 12h or 30d", parse: { try seconds($0) })
  private static let limit = Option(
    "limit", "N", in: 0...Int.max, "For list: the maximum number of documents")

  static let usage = Usage(
    "expire", "Shows and sets when documents are purged by themselves",
    positionals: [DatabaseArguments.database, action, ids],
    options: [date, time, limit, DatabaseArguments.json] + DatabaseArguments.readingOptions,
    examples: [
      "touchstone expire travel set session_1 session_2 --after 12h",
      "touchstone expire travel list --limit 10",
      "touchstone expire travel show session_1", "touchstone expire travel clear session_1",
    ],
    notes: """
      An expired document is purged soon after its date by whoever has the database open, or by the next open.
      That leaves no tombstone, and others don't learn of it. purge does it now. list shows the earliest first.
      The status of show is 1 if the document doesn't expire.
      """)

  private enum Action {
    case list(Int)
    case show([String])
    case set([String], Date)
    case clear([String])
    case purge
  }

  private let database: DatabaseArguments
  private let action: Action
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    asJSON = arguments[DatabaseArguments.json]
    let word = try arguments.required(Self.action)
    let ids = arguments.all(Self.ids)
    let date = try arguments.value(Self.date)
    let seconds = try arguments.value(Self.time)
    let limit = try arguments.value(Self.limit)
    guard word == "set" || (date == nil && seconds == nil) else {
      throw UsageError("--at and --after work only with set")
    }
    guard word == "list" || limit == nil else { throw UsageError("--limit works only with list") }
    switch word {
    case "list", "purge":
      if let extra = ids.first { throw UsageError("unexpected argument '\(extra)'") }
      action = word == "list" ? .list(limit ?? .max) : .purge
    case "show", "set", "clear":
      guard !ids.isEmpty else { throw UsageError("ID is missing") }
      guard word == "set" else {
        action = word == "show" ? .show(ids) : .clear(ids)
        return
      }
      guard (date == nil) != (seconds == nil) else { throw UsageError("set needs --at DATE or --after TIME") }
      action = .set(ids, date ?? Date(timeIntervalSinceNow: seconds ?? 0))
    default: throw UsageError("'\(word)' isn't list, show, set, clear or purge")
    }
  }

  func run(_ output: StandardOutput) throws {
    let database = try database.open()
    switch action {
    case .list(let limit):
      try print(database.expirations(limit: limit).map { ($0.documentID, $0.date) }, output)
    case .show(let ids):
      var dates: [(String, Date)] = []
      for id in ids {
        guard let date = try database.expiration(of: id) else {
          let isThere = try database.document(id, includeDeleted: true) != nil
          throw Refusal(
            isThere
              ? "the document '\(id)' doesn't expire" : "there is no document '\(id)' in \(database.path)")
        }
        dates.append((id, date))
      }
      try print(dates, output)
    case .set(let ids, let date):
      try database.inBatch { for id in ids { try database.setExpiration(of: id, at: date) } }
    case .clear(let ids):
      try database.inBatch { for id in ids { try database.setExpiration(of: id, at: nil) } }
    case .purge:
      let count = try database.purgeExpired()
      let object: JSONObjectText = ["purged": count]
      try output.line(asJSON ? object.jsonText : "purged \(TextTable.counted(count, "document"))")
    }
    try database.close()
  }

  private func print(_ dates: [(id: String, date: Date)], _ output: StandardOutput) throws {
    guard !asJSON else {
      for (id, date) in dates {
        let object: JSONObjectText = ["id": id, "expires": Self.text(date)]
        try output.line(object.jsonText)
      }
      return
    }
    var table = TextTable(["", ""])
    for (id, date) in dates { table.add(Self.text(date), id) }
    try output.lines(table.lines)
  }

  /// The date in UTC with milliseconds, as they are stored.
  private static func text(_ date: Date) -> String {
    date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
  }

  private static func date(_ text: String) throws -> Date {
    // Foundation takes 30 February for a day in March.
    if let milliseconds = DateText.milliseconds(of: text) {
      return Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
    }
    throw UsageError("'\(text)' isn't a date, such as 2027-01-31 or 2027-01-31T12:00:00Z")
  }

  private static func seconds(_ text: String) throws -> Double {
    let units: [Character: Double] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
    guard let unit = text.last.flatMap({ units[$0] }), let number = Double(text.dropLast()), number >= 0,
      number * unit < 1e11
    else { throw UsageError("'\(text)' isn't a time, such as 90s, 15m, 12h or 30d") }
    return number * unit
  }
}
