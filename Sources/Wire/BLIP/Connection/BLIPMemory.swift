import System

/// The memory that the messages of many connections may take together.
///
/// Counted is what peers make this side keep: requests that are being received or aren't answered, and what was said to be kept for
/// them. While there is no more, or a connection has its part, nothing more of it is received: the peer waits. Those that wait go on
/// in the order in which they came, one frame each time. Those that hold little have a reserve, so that small messages go on whatever
/// others do; one whose frame turns out large there ends.
///
/// Peers may also keep memory without going on. When nobody has gone on for a time although some wait, the connections that have held
/// most all the while are told to end, until a quarter is free. One that doesn't end, because its thread is at something else, keeps what it
/// has: the next time others have to.
package final class BLIPMemory: Sendable {
  /// What a connection is known by here. The memory's lock guards it.
  final class Account: @unchecked Sendable {
    fileprivate let goOn: @Sendable () -> Void
    fileprivate let evict: @Sendable () -> Void
    fileprivate var held = 0
    fileprivate var toSend = 0
    /// The most that it has held.
    fileprivate var most = 0
    /// The least that it has held since the last look.
    fileprivate var lowest = 0
    fileprivate var isWaiting = false
    /// Whether it waited at the last look.
    fileprivate var hasWaited = false
    /// Whether it was told to go on, and hasn't yet.
    fileprivate var isNext = false
    /// Whether its last frame was admitted by the reserve.
    fileprivate var usesReserve = false
    /// Whether it was told to end.
    fileprivate var isEnding = false

    fileprivate init(_ goOn: @escaping @Sendable () -> Void, _ evict: @escaping @Sendable () -> Void) {
      self.goOn = goOn
      self.evict = evict
    }
  }

  private struct State {
    var held = 0
    var toSend = 0
    var accounts: [ObjectIdentifier: Account] = [:]
    /// In the order in which they go on.
    var waiting: [Account] = []
    /// How many have gone on, now and at the last look.
    var goings = 0
    var earlierGoings = 0
    var isWatched = false
  }

  /// What there is by default, in bytes.
  package static let defaultBytes = 256 << 20
  /// After a connection that has held more than this, memory that is free goes back to the system.
  private static let returnedBytes = 16 << 20
  /// For connections that have no memory of their own.
  package static let shared = BLIPMemory()

  /// What there is for all connections, in bytes. A frame that has begun may exceed it, on each thread that receives.
  package let total: Int
  /// What there is for one connection.
  package let part: Int
  /// What there is beyond `total` for connections that hold less than `little`.
  private let reserve: Int
  private let little: Int
  private let patience: Double
  private let state = Lock(State())
  private let watcher = Workers()
  private let ended = CountingSemaphore()

  /// Makes a memory. A connection has at most half of it. `patience` is how long nobody may go on, in seconds.
  package init(bytes: Int = BLIPMemory.defaultBytes, patience: Double = 10) {
    total = max(bytes, 1)
    part = max(total / 2, 1)
    reserve = total / 4
    little = min(64 << 10, total / 2_048)
    self.patience = patience
  }

  /// What is held by all connections, in bytes.
  package var held: Int { state.withLock { $0.held } }
  /// The number of connections that wait.
  package var waitingCount: Int { state.withLock { $0.waiting.count } }
  /// The number of connections that were told to end and haven't yet.
  package var endingCount: Int { state.withLock { $0.accounts.values.count(where: \.isEnding) } }
  /// Whether so much waits to be sent that connections had better send less at a time.
  package var isShort: Bool { state.withLock { $0.toSend > total / 2 } }

  /// Begins a connection. `goOn` says that `admits` may be asked again, `evict` that it has to end.
  func open(_ goOn: @escaping @Sendable () -> Void, evict: @escaping @Sendable () -> Void) -> Account {
    let account = Account(goOn, evict)
    state.withLock { $0.accounts[ObjectIdentifier(account)] = account }
    return account
  }

  /// Whether a frame may be received. Otherwise the account waits.
  func admits(_ account: Account) -> Bool {
    let (isAdmitted, isUnwatched) = state.withLock { state in
      guard state.accounts[ObjectIdentifier(account)] != nil, !account.isEnding else { return (false, false) }
      let isNext = account.isNext
      account.isNext = false
      if mayGoOn(account, state), isNext || !state.waiting.contains(where: { mayGoOn($0, state) }) {
        if isNext { state.goings += 1 }
        account.usesReserve = false
        return (true, false)
      }
      if mayUseReserve(account, state) {
        account.usesReserve = true
        return (true, false)
      }
      if !account.isWaiting {
        account.isWaiting = true
        account.hasWaited = false
        if isNext { state.waiting.insert(account, at: 0) } else { state.waiting.append(account) }
      }
      defer { state.isWatched = true }
      return (false, !state.isWatched)
    }
    if isUnwatched { watch() }
    return isAdmitted
  }

  private func mayGoOn(_ account: Account, _ state: State) -> Bool {
    state.held < total && account.held < part
  }

  private func mayUseReserve(_ account: Account, _ state: State) -> Bool {
    account.held < little && state.held < total + reserve
  }

  /// Takes note of what a connection holds now, and of the messages that it waits to send.
  func update(_ account: Account, held: Int, toSend: Int) {
    let (following, victim) = state.withLock { state -> (Account?, Account?) in
      guard state.accounts[ObjectIdentifier(account)] != nil else { return (nil, nil) }
      state.held += held - account.held
      state.toSend += toSend - account.toSend
      account.held = held
      account.toSend = toSend
      account.most = max(account.most, held)
      account.lowest = min(account.lowest, held)
      if account.usesReserve, held > 2 * little, state.held >= total, !account.isEnding {
        account.isEnding = true
        return (nil, account)
      }
      return (takeNext(&state), nil)
    }
    following?.goOn()
    victim?.evict()
  }

  /// Whether there is room for so many bytes more, which a connection is about to keep. Connections on several threads may be told so of
  /// the same room.
  func hasRoom(for bytes: Int) -> Bool { state.withLock { $0.held <= total - bytes } }

  /// Ends a connection.
  func close(_ account: Account) {
    let following = state.withLock { state -> Account? in
      guard state.accounts.removeValue(forKey: ObjectIdentifier(account)) != nil else { return nil }
      state.held -= account.held
      state.toSend -= account.toSend
      if account.isWaiting { state.waiting.removeAll { $0 === account } }
      return takeNext(&state)
    }
    if account.most > Self.returnedBytes { FreedMemory.giveBackSoon() }
    following?.goOn()
  }

  /// Takes the first one that may go on. It says what it holds then, and the next one is taken.
  private func takeNext(_ state: inout State) -> Account? {
    let index = state.waiting.firstIndex {
      state.held < total ? mayGoOn($0, state) : mayUseReserve($0, state)
    }
    guard let index else { return nil }
    let account = state.waiting.remove(at: index)
    account.isWaiting = false
    account.isNext = true
    return account
  }

  // MARK: Those that don't go on

  deinit { ended.signal() }

  private func watch() {
    watcher.enqueue { [weak self, ended, patience] in
      guard !ended.wait(seconds: patience), let self, self.evictStuck() else { return }
      self.watch()
    }
  }

  /// Looks at those that wait, and ends connections if nobody has gone on since the last look. Returns false if none waits.
  @discardableResult
  func evictStuck() -> Bool {
    let (victims, isWatched) = state.withLock { state -> ([Account], Bool) in
      guard !state.waiting.isEmpty else {
        state.isWatched = false
        return ([], false)
      }
      // Those that wait for themselves.
      var victims = state.waiting.filter { $0.hasWaited && $0.lowest >= part }
      if state.held >= total, state.goings == state.earlierGoings, state.waiting[0].hasWaited {
        var freed = victims.reduce(0) { $0 + $1.held }
        for account in state.accounts.values.sorted(by: { $0.lowest > $1.lowest })
        where account.lowest > 0 && !account.isEnding && state.held - freed > total / 4 * 3
          && !victims.contains(where: { $0 === account })
        {
          victims.append(account)
          freed += account.held
        }
      }
      for account in victims {
        account.isEnding = true
        account.isWaiting = false
      }
      state.waiting.removeAll(where: \.isEnding)
      for account in state.accounts.values {
        account.lowest = account.held
        account.hasWaited = account.isWaiting
      }
      state.earlierGoings = state.goings
      return (victims, true)
    }
    for account in victims { account.evict() }
    return isWatched
  }
}
