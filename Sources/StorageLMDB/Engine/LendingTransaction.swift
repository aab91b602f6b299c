import Storage

/// What all transactions of this module share: whether they are open, and how many closures bytes are lent to.
class LendingTransaction {
  unowned(unsafe) let environment: Environment
  // Read in every call; a check of exclusive access costs as much as the rest of one.
  @exclusivity(unchecked) final var isOpen: Bool
  /// Closures that bytes are lent to.
  @exclusivity(unchecked) private final var lent = 0

  init(_ environment: Environment, isOpen: Bool) {
    self.environment = environment
    self.isOpen = isOpen
  }

  /// Called when it has ended and the last closure has returned.
  func returned() {}

  final var lendsBytes: Bool {
    @inline(__always) get { lent > 0 }
  }

  /// Whether bytes are lent to more than the closure of a load, which may write.
  final var lendsWhileLoading: Bool {
    @inline(__always) get { lent > 1 }
  }

  @inline(__always)
  final func beginLending() { lent &+= 1 }

  @inline(__always)
  final func endLending() {
    lent &-= 1
    if _slowPath(!isOpen), lent == 0 { returned() }
  }

  /// Ends a snapshot; inside a closure that bytes are lent to, when that has returned.
  @inline(__always)
  final func endSnapshot() {
    guard isOpen else { return }
    isOpen = false
    if !lendsBytes { returned() }
  }

  @inline(__always)
  final func checkOpen() throws {
    if !isOpen { throw ended() }
  }

  // MARK: Errors, out of line

  @inline(never)
  final func ended() -> StorageError { environment.error(.closed, "a transaction is used after its end") }

  @inline(never)
  final func lentBytes(_ what: String) -> StorageError {
    environment.error(.bytesAreLent, "\(what) inside a closure that bytes of the transaction are lent to")
  }
}
