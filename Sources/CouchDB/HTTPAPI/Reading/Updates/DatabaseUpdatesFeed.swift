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

/// A feed of `_db_updates` that waits for more. It has no thread while it waits for an event, for its time or for the client.
///
/// It runs on one thread at a time, as `ChangesFeed` does.
final class DatabaseUpdatesFeed: TimedFeed {
  private struct State {
    var phase = ChangesFeed.Phase.running
    var writer: DatabaseUpdatesWriter
    /// The events up to here were looked at.
    var position: UInt64
    var hasNews = true
    var isDue = false
    var isClosed = false
    var isTimed = false
    var deadline = 0.0
    var sink: (any HTTPBodySink)?
    var grant: StandingRights.Grant?
  }

  private let updates: DatabaseUpdates
  private let watches: DatabaseWatches
  private let rights: StandingRights
  private let heartbeat: Double?
  private let interval: Double
  private let state: Lock<State>

  init(
    _ updates: DatabaseUpdates, after sequence: UInt64, _ options: ChangesOptions, _ watches: DatabaseWatches,
    _ rights: StandingRights
  ) {
    self.updates = updates
    self.watches = watches
    self.rights = rights
    heartbeat = options.heartbeat
    interval = options.heartbeat ?? options.timeout
    state = Lock(State(writer: .init(options, updates.sequences), position: sequence))
  }

  /// Begins to send. It ends when the user doesn't administer the server any more.
  func start(_ sink: any HTTPBodySink, _ user: UserContext, _ origin: any HTTPRequestOrigin) {
    let head = state.withLock { state in
      state.sink = sink
      state.deadline = watches.timers.timer.now + interval
      return state.writer.head
    }
    updates.add(self)
    if let grant = rights.grant(user, .serverAdmin, nil, { [weak self] _ in self?.close() }) {
      state.withLock { $0.grant = grant }
    }
    origin.onCancel { [weak self] in self?.end(isWhole: false) }
    // The head of the answer leaves with the first bytes.
    offer(Array(head.utf8))
  }

  // MARK: Events

  /// Something has happened to a database.
  func wake() { notice { $0.hasNews = true } }

  /// The server stops, or who follows it may not any more.
  func close() { notice { $0.isClosed = true } }

  private func notice(_ note: (inout State) -> Void) {
    let runs = state.withLock { state in
      note(&state)
      guard state.phase == .waiting else { return false }
      state.phase = .running
      return true
    }
    if runs { watches.workers.enqueue { [self] in run() } }
  }

  /// Its time may have come. Returns when to ask again; nil if it asks itself.
  func tick(now: Double) -> Double? {
    let (next, runs) = state.withLock { state -> (Double?, Bool) in
      guard state.phase == .waiting else {
        state.isTimed = false
        return (nil, false)
      }
      guard state.deadline <= now + 0.001 else { return (state.deadline, false) }
      (state.isTimed, state.isDue, state.phase) = (false, true, .running)
      return (nil, true)
    }
    if runs { watches.workers.enqueue { [self] in run() } }
    return next
  }

  // MARK: Running

  private enum Next {
    case send([UInt8])
    case finish
    case wait(Double?)
    case gone
  }

  private func run() {
    let next = state.withLock { state -> Next in
      if state.phase == .ended { return .gone }
      let isLongPoll = state.writer.feed == .longpoll
      if state.isClosed || state.writer.left == 0 || isLongPoll && state.writer.rows > 0 { return .finish }
      if state.hasNews {
        state.hasNews = false
        let (events, last) = updates.events(after: state.position)
        state.position = last
        for event in events {
          state.writer.append(event)
          if state.writer.left == 0 {
            state.position = event.sequence
            break
          }
        }
        return .send(state.writer.take())
      }
      if state.isDue || state.deadline <= watches.timers.timer.now {
        state.isDue = false
        let sign = state.writer.feed == .eventsource ? "event: heartbeat\ndata: \n\n" : "\n"
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

  /// Sends bytes, and goes on when the client has taken enough of them.
  private func offer(_ bytes: [UInt8]) {
    let sink = state.withLock { state in
      if !bytes.isEmpty { state.deadline = watches.timers.timer.now + interval }
      return state.sink
    }
    guard let sink else { return }
    guard !bytes.isEmpty else { return watches.workers.enqueue { [self] in run() } }
    sink.offer(bytes) { [self] error in
      if error != nil { return end(isWhole: false) }
      watches.workers.enqueue { [self] in run() }
    }
  }

  // MARK: The end

  private func finish() {
    let (sink, tail) = state.withLock { ($0.sink, $0.writer.tail($0.position)) }
    guard let sink, !tail.isEmpty else { return end(isWhole: true) }
    sink.offer(Array(tail.utf8)) { [self] error in end(isWhole: error == nil) }
  }

  private func end(isWhole: Bool) {
    let (sink, grant) = state.withLock { state in
      state.phase = .ended
      defer { (state.sink, state.grant) = (nil, nil) }
      return (state.sink, state.grant)
    }
    if let grant { rights.end(grant) }
    updates.remove(self)
    guard let sink else { return }
    if isWhole { sink.finish() } else { sink.fail() }
  }
}
