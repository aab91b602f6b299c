import Fleece
import HTTP
import Storage
import Touchstone
import Views

// The bodies of `_db_updates`, as CouchDB's:
//
//   row         := '{"db_name":' name ',"type":' kind ',"seq":' seq '}'
//   normal, longpoll := '{"results":[' LF  [ row ( ',' CR LF row )* ]  LF '],' LF '"last_seq":' seq '}' LF
//   continuous  := ( row LF )*  [ '{"last_seq":' seq '}' LF ]
//   eventsource := ( 'data: ' row LF 'id: ' seq LF LF )*
//   heartbeat   := LF    of an eventsource: 'event: heartbeat' LF 'data: ' LF LF

/// Writes events of databases, as the options of a request want them.
struct DatabaseUpdatesWriter {
  let feed: ChangesOptions.Feed
  let sequences: CouchDBSequences
  private(set) var left: Int
  private(set) var rows = 0
  private var text = ""

  init(_ options: ChangesOptions, _ sequences: CouchDBSequences) {
    feed = options.feed
    left = options.limit
    self.sequences = sequences
  }

  /// Writes an event, unless there are enough.
  mutating func append(_ event: DatabaseUpdates.Event) {
    guard left > 0 else { return }
    left -= 1
    let sequence = sequences.text(event.sequence)
    let row =
      "{\"db_name\":\(event.name.jsonText),\"type\":\"\(event.kind.rawValue)\",\"seq\":\"\(sequence)\"}"
    switch feed {
    case .normal, .longpoll: text += (rows > 0 ? ",\r\n" : "") + row
    case .continuous: text += row + "\n"
    case .eventsource: text += "data: \(row)\nid: \(sequence)\n\n"
    }
    rows += 1
  }

  /// What comes before all rows.
  var head: String { feed == .normal || feed == .longpoll ? "{\"results\":[\n" : "" }

  /// What comes behind all rows, with the sequence from which a client goes on.
  func tail(_ last: UInt64) -> String {
    switch feed {
    case .normal, .longpoll: "\n],\n\"last_seq\":\"\(sequences.text(last))\"}\n"
    case .continuous: "{\"last_seq\":\"\(sequences.text(last))\"}\n"
    case .eventsource: ""
    }
  }

  /// Takes what was written.
  mutating func take() -> [UInt8] {
    defer { text = "" }
    return Array(text.utf8)
  }
}

/// A feed of `_db_updates` that waits for more: for events of databases.
final class DatabaseUpdatesFeed: WaitingFeed {
  struct Place {
    var writer: DatabaseUpdatesWriter
    /// The events up to here were looked at.
    var position: UInt64
  }

  private let updates: DatabaseUpdates
  let watches: DatabaseWatches
  let rights: StandingRights
  private let heartbeat: Double?
  let interval: Double
  let state: Lock<FeedState<Place>>

  init(
    _ updates: DatabaseUpdates, after sequence: UInt64, _ options: ChangesOptions, _ watches: DatabaseWatches,
    _ rights: StandingRights
  ) {
    self.updates = updates
    self.watches = watches
    self.rights = rights
    heartbeat = options.heartbeat
    interval = options.heartbeat ?? options.timeout
    state = Lock(FeedState(own: Place(writer: .init(options, updates.sequences), position: sequence)))
  }

  /// Begins to send. It ends when the user doesn't administer the server any more.
  func start(_ sink: any HTTPBodySink, _ user: UserContext, _ origin: any HTTPRequestOrigin) {
    begin(sink)
    updates.add(self)
    holdRight(user, .serverAdmin, nil)
    origin.onCancel { [weak self] in self?.end(isWhole: false) }
    // The head of the answer leaves with the first bytes.
    offer(Array(state.withLock { $0.own.writer.head }.utf8))
  }

  // MARK: Events

  /// Something has happened to a database.
  func wake() { notice { $0.hasNews = true } }

  func leave() { updates.remove(self) }

  // MARK: Running

  private enum Next {
    case send([UInt8])
    case finish
    case wait(Double?)
    case gone
  }

  func run() {
    let next = state.withLock { state -> Next in
      if state.phase == .ended { return .gone }
      let isLongPoll = state.own.writer.feed == .longpoll
      if state.isClosed || state.own.writer.left == 0 || isLongPoll && state.own.writer.rows > 0 {
        return .finish
      }
      if state.hasNews {
        state.hasNews = false
        let (events, last) = updates.events(after: state.own.position)
        state.own.position = last
        for event in events {
          state.own.writer.append(event)
          if state.own.writer.left == 0 {
            state.own.position = event.sequence
            break
          }
        }
        return .send(state.own.writer.take())
      }
      if state.isDue || state.deadline <= watches.timers.timer.now {
        state.isDue = false
        let sign = state.own.writer.feed == .eventsource ? "event: heartbeat\ndata: \n\n" : "\n"
        return heartbeat == nil ? .finish : .send(Array(sign.utf8))
      }
      state.phase = .waiting
      guard !state.isTimed else { return .wait(nil) }
      state.isTimed = true
      return .wait(state.deadline)
    }
    switch next {
    case .send(let bytes): offer(bytes)
    case .finish: finish()
    case .wait(let deadline): if let deadline { watches.timers.call(self, at: deadline) }
    case .gone: break
    }
  }

  private func finish() { finish(state.withLock { $0.own.writer.tail($0.own.position) }) }
}
