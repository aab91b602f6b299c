import Bytes

/// The sessions that users have ended. They are kept until no cookie of them would be good any more.
///
/// A user who ends very many ends all sessions of that user's, so that the memory is bounded and every log-out holds.
struct EndedSessions {
  private struct OfUser {
    /// The numbers of sessions, and until when cookies of them would have been good.
    var numbers: [UInt64: Int] = [:]
    /// Cookies that were made until this time aren't good, in seconds since 1970.
    var allUntil = Int.min
    /// Until when such a cookie would have been good.
    var forgottenAt = Int.min
  }

  /// The most sessions of one user, and of all, that are kept one by one.
  static let maximumOfUser = 1_000
  static let maximum = 100_000
  private var users: [ByteString: OfUser] = [:]
  /// How many sessions are kept one by one.
  private(set) var count = 0

  /// Whether a session was ended, with a cookie that was made at a time.
  func contains(_ number: UInt64, of user: ByteString, madeAt time: Int) -> Bool {
    guard let own = users[user] else { return false }
    return time <= own.allUntil || own.numbers[number] != nil
  }

  /// Ends a session. Its cookies would have been good until `end`.
  mutating func end(_ number: UInt64, of user: ByteString, at now: Int, until end: Int) {
    if count >= Self.maximum || users[user].map({ $0.numbers.count >= Self.maximumOfUser }) ?? false {
      forget(now)
    }
    if users[user, default: OfUser()].numbers.updateValue(end, forKey: number) == nil { count += 1 }
    if users[user].map({ $0.numbers.count > Self.maximumOfUser }) ?? false {
      endAll(of: user, at: now, until: end)
    } else if count > Self.maximum,
      let most = users.max(by: { $0.value.numbers.count < $1.value.numbers.count })
    {
      endAll(of: most.key, at: now, until: end)
    }
  }

  private mutating func endAll(of user: ByteString, at now: Int, until end: Int) {
    users[user] = OfUser(allUntil: now, forgottenAt: end)
    recount()
  }

  /// Forgets sessions of which no cookie would be good any more.
  private mutating func forget(_ now: Int) {
    users = users.compactMapValues { own in
      var own = own
      own.numbers = own.numbers.filter { $0.value > now }
      return own.numbers.isEmpty && own.forgottenAt <= now ? nil : own
    }
    recount()
  }

  private mutating func recount() { count = users.values.reduce(0) { $0 + $1.numbers.count } }
}
