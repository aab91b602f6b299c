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

/// A feed of changes that waits for more: for commits.
final class ChangesFeed: WaitingFeed {
  struct Signs {
    /// Whether news were seen at a commit, and are told to the client.
    var isWoken = false
    /// Whether anything but the beginning was sent.
    var hasSent = false
  }

  let reader: ChangesReader
  let watches: DatabaseWatches
  private let watch: DatabaseWatch
  private let database: Database
  let interval: Double
  let rights: StandingRights
  private let user: UserContext
  private let right: Right
  let state = Lock(FeedState(own: Signs()))

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
    begin(sink)
    // The time of a request isn't that of a feed, which lasts as long as its client and its database.
    reader.checkWanted = { [weak self] in
      guard let self, !hasEnded else {
        throw HTTPBodyError.clientGone
      }
    }
    do { try watch.add(self, to: database) } catch { state.withLock { $0.isClosed = true } }
    holdRight(user, right, database)
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
      $0.hasNews = true
      $0.own.isWoken = true
    }
  }

  func leave() { watch.remove(self) }

  // MARK: Running

  private enum Next {
    case read
    case finish
    case sign
    case wait
    case gone
  }

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
        defer { (state.hasNews, state.own.isWoken) = (false, false) }
        reader.begin()
        return (.read, state.own.isWoken)
      }
      if state.isDue {
        state.isDue = false
        return (reader.options.heartbeat == nil ? .finish : .sign, false)
      }
      if !state.own.hasSent { return (.sign, false) }
      reader.rest()
      return (.wait, false)
    }
    switch next {
    case .gone: break
    case .finish: finish()
    case .sign:
      // The time of a feed begins with it, not with the first sign.
      let isFirst = state.withLock { !$0.own.hasSent }
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
    if reader.text.count > 0 { state.withLock { $0.own.hasSent = true } }
    offer(bytes)
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
    finish(tail)
  }

  private var hasEnded: Bool { state.withLock { $0.phase == .ended } }
}
