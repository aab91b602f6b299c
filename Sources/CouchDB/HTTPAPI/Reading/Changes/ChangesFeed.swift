import HTTP
import Logs
import Storage
import Touchstone

// The bodies of feeds, as CouchDB's. A sign of life comes before the first wait, at each heartbeat, and when a commit has woken the feed
// and its filter chooses nothing.
//
//   longpoll    := '{"results":[' LF  [ row ( ',' CR LF row )* ]  LF '],' LF '"last_seq":' seq ',"pending":' number '}' LF LF
//   continuous  := ( row LF )*  [ '{"last_seq":' seq ',"pending":' number '}' LF LF ]
//   eventsource := ( 'data: ' row LF 'id: ' seq LF LF )*
//   sign        := LF    of an eventsource, but for the first one: 'event: heartbeat' LF 'data: ' LF LF

/// A feed of changes that waits for more. It has no thread while it waits for a commit, for its time or for the client.
///
/// It runs on one thread at a time: `phase` says whether anybody has it. What happens meanwhile is noted, and looked at before it waits
/// again, so any number of commits make one run. A feed that waits for the client doesn't read.
final class ChangesFeed: TimedFeed {
  enum Phase {
    /// A thread has it, or the client is waited for.
    case running
    case waiting
    case ended
  }

  struct State {
    var phase = Phase.running
    /// There may be changes that weren't looked at.
    var hasNews = true
    /// Whether that was seen at a commit, and is told to the client.
    var isWoken = false
    /// Its time has come.
    var isDue = false
    var isClosed = false
    var isTimed = false
    /// When its time comes.
    var deadline = 0.0
    /// Whether anything but the beginning was sent.
    var hasSent = false
    var sink: (any HTTPBodySink)?
    var grant: StandingRights.Grant?
  }

  let reader: ChangesReader
  let watches: DatabaseWatches
  private let watch: DatabaseWatch
  private let database: Database
  private let interval: Double
  private let rights: StandingRights
  private let user: UserContext
  private let right: Right
  let state = Lock(State())

  /// Makes a feed whose reader has read its first slice. It ends when the user hasn't got the right any more.
  init(
    _ reader: ChangesReader, _ database: Database, _ watches: DatabaseWatches, _ rights: StandingRights,
    _ user: UserContext, _ right: Right
  ) {
    self.reader = reader
    self.database = database
    self.watches = watches
    self.rights = rights
    self.user = user
    self.right = right
    watch = watches.watch(database)
    interval = reader.options.heartbeat ?? reader.options.timeout
  }

  /// Begins to send.
  func start(_ sink: any HTTPBodySink, _ origin: any HTTPRequestOrigin) {
    state.withLock { state in
      state.sink = sink
      state.deadline = watches.timers.timer.now + interval
    }
    // The time of a request isn't that of a feed, which lasts as long as its client and its database.
    reader.checkWanted = { [weak self] in
      guard let self, !hasEnded else {
        throw HTTPBodyError.clientGone
      }
    }
    do { try watch.add(self, to: database) } catch { state.withLock { $0.isClosed = true } }
    if let grant = rights.grant(user, right, database, { [weak self] _ in self?.close() }) {
      state.withLock { $0.grant = grant }
    }
    origin.onCancel { [weak self] in self?.end(isWhole: false) }
    watches.workers.enqueue { [self] in send(first: true) }
  }

  /// Whether it has nothing to do.
  var isWaiting: Bool { state.withLock { $0.phase == .waiting } }

  /// Whether it has nothing to do, and has looked at all that was committed.
  var isCurrent: Bool {
    guard let last = try? database.lastSequence else { return false }
    // A feed that waits has no thread that moves its reader.
    return state.withLock { $0.phase == .waiting && reader.position >= last }
  }

  // MARK: Events

  /// Something was committed.
  func wake() {
    notice {
      $0.hasNews = true; $0.isWoken = true
    }
  }

  /// The database is closed, or who follows it may not read it any more.
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

  // MARK: Running

  private enum Next {
    case read
    case finish
    case sign
    case wait
    case gone
  }

  /// Does what is to be done next, until it has to wait.
  func run() {
    let (next, isWoken) = state.withLock { state -> (Next, Bool) in
      if state.phase == .ended { return (.gone, false) }
      if state.isClosed { return (.finish, false) }
      if !reader.isDone { return (.read, false) }
      // A feed that goes backwards has an end, and so has one with a limit; a long poll ends with its first changes.
      if reader.left == 0 || reader.options.isDescending || (isLongPoll && reader.rows > 0) {
        return (.finish, false)
      }
      if state.hasNews {
        defer { (state.hasNews, state.isWoken) = (false, false) }
        reader.begin()
        return (.read, state.isWoken)
      }
      if state.isDue {
        state.isDue = false
        return (reader.options.heartbeat == nil ? .finish : .sign, false)
      }
      if !state.hasSent { return (.sign, false) }
      reader.rest()
      return (.wait, false)
    }
    switch next {
    case .gone: break
    case .finish: finish()
    case .sign:
      // The time of a feed begins with it, not with the first sign.
      let isFirst = state.withLock { !$0.hasSent }
      offer(sign(), extends: !isFirst)
    case .wait: wait()
    case .read:
      do { try reader.read() } catch {
        guard !hasEnded else { return }
        guard database.isOpenForReplication else { return finish() }
        Log.write(.warning, .network, "HTTP", "a feed of changes was cut off: \(LogText.of(error))")
        return end(isWhole: false)
      }
      send(first: false, isWoken: isWoken)
    }
  }

  private var isLongPoll: Bool { reader.options.feed == .longpoll }

  /// Sends the rows that were read.
  private func send(first: Bool, isWoken: Bool = false) {
    var bytes = first && isLongPoll ? Array("{\"results\":[\n".utf8) : []
    // Rows are a sign of life themselves. Some clients take the first line of a chunk for all of it.
    if reader.text.count == 0, isWoken || !first && isLate { bytes += sign() }
    reader.text.withBytes { bytes += $0 }
    if reader.text.count > 0 { state.withLock { $0.hasSent = true } }
    offer(bytes)
  }

  /// Sends bytes, and goes on when the client has taken enough of them.
  private func offer(_ bytes: [UInt8], extends: Bool = true) {
    if extends, !bytes.isEmpty { state.withLock { $0.deadline = watches.timers.timer.now + interval } }
    guard let sink = state.withLock({ $0.sink }) else { return }
    guard !bytes.isEmpty else { return watches.workers.enqueue { [self] in run() } }
    sink.offer(bytes) { [self] error in
      if error != nil { return end(isWhole: false) }
      watches.workers.enqueue { [self] in run() }
    }
  }

  private func wait() {
    let (hasWork, deadline) = state.withLock { state -> (Bool, Double?) in
      guard state.phase == .running else { return (false, nil) }
      if state.deadline <= watches.timers.timer.now { state.isDue = true }
      if state.hasNews || state.isClosed || state.isDue { return (true, nil) }
      state.phase = .waiting
      guard !state.isTimed else { return (false, nil) }
      state.isTimed = true
      return (false, state.deadline)
    }
    if hasWork { return run() }
    if let deadline { watches.timers.call(self, at: deadline) }
  }

  // MARK: The end

  /// Sends the end, with the sequence from which a client goes on.
  private func finish() {
    var tail = ""
    let numbers = { [self] in
      "\"last_seq\":\"\(reader.lastSequence)\",\"pending\":\((try? reader.pending()) ?? 0)}\n\n"
    }
    switch reader.options.feed {
    case .normal, .longpoll: tail = "\n],\n" + numbers()
    case .continuous: tail = "{" + numbers()
    case .eventsource: if reader.left == 0 { tail = "\n" }
    }
    guard let sink = state.withLock({ $0.sink }), !tail.isEmpty else { return end(isWhole: true) }
    sink.offer(Array(tail.utf8)) { [self] error in end(isWhole: error == nil) }
  }

  private var hasEnded: Bool { state.withLock { $0.phase == .ended } }

  private func end(isWhole: Bool) {
    let (sink, grant) = state.withLock { state in
      state.phase = .ended
      defer { (state.sink, state.grant) = (nil, nil) }
      return (state.sink, state.grant)
    }
    if let grant { rights.end(grant) }
    guard let sink else { return }
    watch.remove(self)
    if isWhole { sink.finish() } else { sink.fail() }
  }
}
