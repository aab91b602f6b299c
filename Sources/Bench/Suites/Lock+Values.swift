import Storage

extension Lock {
  /// Returns the value of a name. Makes it, without the lock, if there is none yet.
  func value<Value: Sendable>(of name: String, _ make: () throws -> Value) rethrows -> Value
  where State == [String: Value] {
    if let known = withLock({ $0[name] }) { return known }
    let made = try make()
    withLock { $0[name] = made }
    return made
  }
}
