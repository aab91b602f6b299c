import Documents
import Logs
import Storage
import Touchstone

/// What the service keeps of each database that clients read: who waits for changes, and counts of entries.
final class DatabaseWatches: Sendable {
  /// Run feeds. They read a slice at a time, and never wait for a client.
  let workers = Workers(maximum: 8)
  let timers: SharedFeedTimer
  private let watches = Lock<[ObjectIdentifier: DatabaseWatch]>([:])

  init(_ timer: any CallTimer) { timers = SharedFeedTimer(timer) }

  /// The watch of a database. It ends when the database is closed.
  func watch(_ database: Database) -> DatabaseWatch {
    let id = ObjectIdentifier(database)
    if let known = watches.withLock({ $0[id] }) { return known }
    let watch = DatabaseWatch(timers.timer)
    let (kept, isNew) = watches.withLock { watches in
      if let known = watches[id] { return (known, false) }
      watches[id] = watch
      return (watch, true)
    }
    guard isNew else { return kept }
    _ = database.addCloseHandler { [weak self] in self?.close(id) }
    // It may have been closed before the handler was there.
    if !database.isOpenForReplication { close(id) }
    return kept
  }

  private func close(_ id: ObjectIdentifier) { watches.withLock { $0.removeValue(forKey: id) }?.close() }

  /// The feeds that are open.
  private var feeds: [ChangesFeed] { watches.withLock { Array($0.values) }.flatMap(\.feeds) }

  /// The numbers of feeds that are open, and of those among them that wait for a commit or for their time.
  var counts: (open: Int, waiting: Int) {
    let feeds = feeds
    return (feeds.count, feeds.count { $0.isWaiting })
  }

  /// Whether all feeds that are open have looked at all that was committed, and wait.
  var isCurrent: Bool { feeds.allSatisfy(\.isCurrent) }
}

/// One database that clients read. A commit wakes those who wait, by one observer for all.
final class DatabaseWatch: Sendable {
  private struct State {
    var feeds: [ObjectIdentifier: ChangesFeed] = [:]
    var observer: ChangeObserver?
    var isClosed = false
  }

  let ranks: EntryRanks
  private let partitioned = Lock<Bool?>(nil)
  private let state = Lock(State())
  /// Held while the observer is made or ended.
  private let observing = Lock(())

  init(_ timer: any CallTimer) { ranks = EntryRanks(timer) }

  /// Whether the database is partitioned. An empty one may still become that, by the process that makes it; so what is read is kept when
  /// there is a document.
  func isPartitioned(_ database: Database) throws -> Bool {
    if let known = partitioned.withLock({ $0 }) { return known }
    let isEmpty = try database.lastSequence == 0
    let isPartitioned = try database.replicating { try $0.isPartitioned() }
    if isPartitioned || !isEmpty { partitioned.withLock { $0 = isPartitioned } }
    return isPartitioned
  }

  /// Adds a feed, which is woken after commits from now on. Throws if the database is closed.
  func add(_ feed: ChangesFeed, to database: Database) throws {
    let isClosed = state.withLock { state in
      if !state.isClosed { state.feeds[ObjectIdentifier(feed)] = feed }
      return state.isClosed
    }
    if isClosed { return feed.close() }
    do { try observe(database) } catch {
      remove(feed)
      throw error
    }
  }

  private func observe(_ database: Database) throws {
    try observing.withLock { _ in
      guard state.withLock({ $0.observer == nil && !$0.feeds.isEmpty }) else { return }
      let observer = try database.observeForReplication { [weak self] in self?.wake() }
      state.withLock { $0.observer = observer }
    }
  }

  /// Removes a feed that has ended.
  func remove(_ feed: ChangesFeed) {
    state.withLock { _ = $0.feeds.removeValue(forKey: ObjectIdentifier(feed)) }
    observing.withLock { _ in
      let observer = state.withLock { state in
        guard state.feeds.isEmpty else { return nil as ChangeObserver? }
        defer { state.observer = nil }
        return state.observer
      }
      observer?.cancel()
    }
  }

  private func wake() {
    for feed in state.withLock({ Array($0.feeds.values) }) { feed.wake() }
  }

  /// Ends the feeds: the database is closed.
  func close() {
    let feeds = state.withLock { state in
      state.isClosed = true
      state.observer = nil
      defer { state.feeds = [:] }
      return Array(state.feeds.values)
    }
    for feed in feeds { feed.close() }
  }

  /// The feeds that wait for changes, or bring them.
  var feeds: [ChangesFeed] { state.withLock { Array($0.feeds.values) } }
}
