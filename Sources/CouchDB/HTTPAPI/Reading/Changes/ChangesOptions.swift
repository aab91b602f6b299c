import Bytes
import Fleece
import Views

/// The options of `_changes`, with CouchDB's meaning and its answers to wrong ones.
struct ChangesOptions: Sendable {
  /// How changes are sent.
  enum Feed: String, Sendable {
    /// Those that there are.
    case normal
    /// Those that there are; if there are none, it waits for one.
    case longpoll
    /// It goes on, a change a line.
    case continuous
    /// It goes on, in the form of server-sent events.
    case eventsource
  }

  /// Where changes begin.
  enum Start: Sendable, Equatable {
    /// Behind the last one.
    case now
    /// Behind a sequence.
    case sequence(UInt64)
  }

  private(set) var feed = Feed.normal
  private(set) var since = Start.sequence(0)
  /// The most changes. That of CouchDB, which `seq_interval` counts down from.
  private(set) var limit = 1_000_000_000_000_000
  private(set) var isDescending = false
  /// Whether all leaves are listed, not the current revision alone.
  private(set) var listsAllLeaves = false
  private(set) var includesDocuments = false
  private(set) var document = CouchDBDocumentOptions()
  /// Seconds between two signs of life; nil: none are sent, and the feed ends after `timeout`.
  private(set) var heartbeat: Double?
  /// Seconds without a change after which a feed without heartbeat ends.
  private(set) var timeout = maximumSeconds
  /// Every how manieth change has its sequence.
  private(set) var sequenceInterval: Int?
  /// 1.x: without tombstones.
  private(set) var isActiveOnly = false
  /// The name of the filter.
  private(set) var filter: String?

  /// The longest time between two signs of life, and the longest wait, in seconds.
  static let maximumSeconds = 60.0

  /// Reads the options in a query string. `lastEventID` is the header of that name, which counts for server-sent events. `sequences` are
  /// those of the database.
  init(
    _ query: [(name: String, value: String)], lastEventID: String?, _ sequences: CouchDBSequences
  ) throws {
    var style: String?
    for (name, value) in query {
      switch name.lowercased() {
      case "feed":
        guard let feed = value == "live" ? .continuous : Feed(rawValue: value) else {
          throw CouchDBError(
            400, "bad_request",
            "Supported `feed` types: normal, continuous, live, longpoll, eventsource")
        }
        self.feed = feed
      case "since", "last-event-id": since = try Self.start(value, sequences)
      case "limit":
        let limit = try Self.integer(value)
        self.limit = limit < 0 ? ChangesOptions.unlimited : limit
      case "descending": isDescending = value == "true"
      case "style": style = value
      case "include_docs": includesDocuments = value == "true"
      case "conflicts": document.includesConflicts = value == "true"
      case "attachments": document.includesAttachments = value == "true"
      case "att_encoding_info": document.includesEncodings = value == "true"
      case "heartbeat": heartbeat = try Self.heartbeat(value)
      case "timeout":
        timeout = min(Double(max(0, try Self.integer(value))) / 1_000, Self.maximumSeconds)
      case "seq_interval":
        guard let interval = Int(value), interval > 0 else {
          throw CouchDBError(400, "bad_request", "invalid_seq_interval")
        }
        sequenceInterval = interval
      case "active_only": isActiveOnly = value == "true"
      case "filter": filter = value.isEmpty ? nil : value
      default: break
      }
    }
    if feed == .eventsource, let lastEventID { since = try Self.start(lastEventID, sequences) }
    switch style {
    case nil, "main_only": break
    case "all_docs": listsAllLeaves = true
    case let other?:
      throw CouchDBError(500, "error", "`style` must be main_only or all_docs, not \(other.prefix(100))")
    }
  }

  private static let unlimited = 1_000_000_000_000_000

  /// A sequence of this database or of another one, with quotes or not; `now` is the last one.
  private static func start(_ text: String, _ sequences: CouchDBSequences) throws -> Start {
    var text = text[...]
    if text.utf8.count > 1, text.hasPrefix("\""), text.hasSuffix("\"") { text = text.dropFirst().dropLast() }
    if text == "now" { return .now }
    guard let sequence = sequences.number(text) else {
      throw CouchDBError(400, "bad_request", "Malformed sequence supplied in 'since' parameter.")
    }
    return .sequence(sequence)
  }

  /// CouchDB answers 500 to what isn't an integer.
  private static func integer(_ text: String) throws -> Int {
    if let number = Int(text) { return number }
    let digits = text.hasPrefix("-") || text.hasPrefix("+") ? text.dropFirst() : text[...]
    guard !digits.isEmpty, digits.utf8.allSatisfy({ $0 &- 0x30 < 10 }) else {
      throw CouchDBError(500, "unknown_error", "badarg")
    }
    return text.hasPrefix("-") ? -1 : unlimited
  }

  private static func heartbeat(_ text: String) throws -> Double {
    if text == "true" { return maximumSeconds }
    guard let milliseconds = Int(text) else {
      throw CouchDBError(
        400, "bad_request",
        "Invalid heartbeat value. Expecting a positive integer value (in milliseconds).")
    }
    guard milliseconds > 0 else {
      throw CouchDBError(
        400, "bad_request", "The heartbeat value should be a positive integer (in milliseconds).")
    }
    return min(Double(milliseconds) / 1_000, maximumSeconds)
  }
}
