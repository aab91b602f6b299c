import Bytes
import Documents
import Logs
import Storage
import Touchstone
import Views

/// What has happened to the databases of a catalog, for `_db_updates`: which were made, changed and deleted.
///
/// It is in memory, and begins with the first request that asks for it: until then, commits cost nothing more. It then tells of each database
/// that is there as made and as changed. Of several events of one kind, the last one of each database is kept, as in CouchDB.
final class DatabaseUpdates: Sendable {
  /// What has happened.
  enum Kind: String, Sendable {
    case created, updated, deleted
  }

  /// An event.
  struct Event: Sendable {
    let sequence: UInt64
    let name: String
    let kind: Kind
  }

  fileprivate struct Key: Hashable {
    let name: ByteString
    let kind: Kind
  }

  fileprivate struct State {
    var last: UInt64 = 0
    var sequences: [Key: UInt64] = [:]
    /// Deletions, the oldest first. Some are there no more.
    var deletions: [(name: ByteString, sequence: UInt64)] = []
    var observed: [ByteString: (database: Database, observer: ChangeObserver?)] = [:]
    var feeds: [ObjectIdentifier: DatabaseUpdatesFeed] = [:]
    var isStopped = false
  }

  /// The most deletions that are kept.
  static let mostDeletions = 10_000

  /// How clients get its sequences: each log has a mark of its own.
  let sequences = CouchDBSequences(publicUUID: DocumentUUID.make())
  private let catalog: any DatabaseCatalog
  private let state = Lock(State())
  /// Held while it begins.
  private let hasBegun = Lock(false)

  init(_ catalog: any DatabaseCatalog) { self.catalog = catalog }

  deinit { for (_, observer) in state.withLock({ $0.observed }).values { observer?.cancel() } }

  // MARK: Following

  /// Follows the databases from now on.
  func begin() throws {
    try hasBegun.withLock { hasBegun in
      guard !hasBegun else { return }
      let names = try catalog.names()
      for name in names {
        note(name, .created)
        note(name, .updated)
      }
      catalog.follow { [weak self] name, event in self?.take(name, event) }
      // One that was made meanwhile was told twice, which does no harm.
      let known = Set(names.map { ByteString($0) })
      for name in try catalog.names() where !known.contains(ByteString(name)) { note(name, .created) }
      hasBegun = true
    }
  }

  private func take(_ name: String, _ event: CatalogEvent) {
    switch event {
    case .opened(let database): observe(name, database)
    case .created(let database):
      note(name, .created)
      observe(name, database)
    case .deleted:
      let observer = state.withLock { $0.observed.removeValue(forKey: ByteString(name))?.observer }
      observer?.cancel()
      note(name, .deleted)
    }
  }

  private func observe(_ name: String, _ database: Database) {
    let key = ByteString(name)
    let before = state.withLock { state -> ChangeObserver?? in
      guard state.observed[key]?.database !== database, !state.isStopped else { return nil }
      return .some(state.observed.updateValue((database, nil), forKey: key)?.observer)
    }
    guard let before else { return }
    before?.cancel()
    do {
      let observer = try database.observeForReplication { [weak self] in self?.note(name, .updated) }
      let isWanted = state.withLock { state in
        guard state.observed[key]?.database === database else { return false }
        state.observed[key] = (database, observer)
        return true
      }
      if !isWanted { observer.cancel() }
    } catch {
      Log.write(
        LogText.level(of: error), .network, database.path, "changes can't be followed: \(LogText.of(error))")
    }
  }

  func note(_ name: String, _ kind: Kind) {
    let feeds = state.withLock { state in
      state.last += 1
      let key = ByteString(name)
      state.sequences[Key(name: key, kind: kind)] = state.last
      if kind == .deleted {
        state.deletions.append((key, state.last))
        if state.deletions.count > Self.mostDeletions { state.forgetDeletion() }
      }
      return Array(state.feeds.values)
    }
    for feed in feeds { feed.wake() }
  }

  // MARK: Reading

  /// The number of the last event.
  var last: UInt64 { state.withLock { $0.last } }

  /// The events after a sequence, in their order, and the sequence up to which they are all.
  func events(after sequence: UInt64) -> (events: [Event], last: UInt64) {
    let (all, last) = state.withLock { state in (state.sequences, state.last) }
    let events = all.filter { $0.value > sequence }
      .map { Event(sequence: $0.value, name: $0.key.name.string, kind: $0.key.kind) }
    return (events.sorted { $0.sequence < $1.sequence }, last)
  }

  // MARK: Feeds

  /// Wakes a feed after events from now on.
  func add(_ feed: DatabaseUpdatesFeed) {
    let isStopped = state.withLock { state in
      if !state.isStopped { state.feeds[ObjectIdentifier(feed)] = feed }
      return state.isStopped
    }
    if isStopped { feed.close() }
  }

  func remove(_ feed: DatabaseUpdatesFeed) {
    state.withLock { _ = $0.feeds.removeValue(forKey: ObjectIdentifier(feed)) }
  }

  /// The number of feeds that are open.
  var feedCount: Int { state.withLock { $0.feeds.count } }

  /// Ends its feeds, and follows nothing any more.
  func stop() {
    let (feeds, observed) = state.withLock { state in
      state.isStopped = true
      defer { (state.feeds, state.observed) = ([:], [:]) }
      return (Array(state.feeds.values), Array(state.observed.values))
    }
    for (_, observer) in observed { observer?.cancel() }
    for feed in feeds { feed.close() }
  }
}

extension DatabaseUpdates.State {
  /// Forgets the oldest deletion, unless the database was deleted again, and what else is known of a database that isn't there.
  fileprivate mutating func forgetDeletion() {
    let (name, sequence) = deletions.removeFirst()
    guard sequences[.init(name: name, kind: .deleted)] == sequence else { return }
    sequences[.init(name: name, kind: .deleted)] = nil
    guard let made = sequences[.init(name: name, kind: .created)], made < sequence else { return }
    sequences[.init(name: name, kind: .created)] = nil
    sequences[.init(name: name, kind: .updated)] = nil
  }
}
