import Storage

/// What all transactions over LMDB share. It tracks whether they are open and how many closures hold lent
/// bytes.
///
/// Both variables are read in every call, so a class declares them `@exclusivity(unchecked) final`: a check of
/// exclusive access would cost as much as the rest of the call.
package protocol LendingTransaction: AnyObject {
  var environment: Environment { get }
  var isOpen: Bool { get set }
  /// The number of closures that bytes are lent to. Only this protocol's extension changes it.
  var lent: Int { get set }

  /// Called when the transaction has ended and the last closure has returned.
  func returned()
}

extension LendingTransaction {
  package var lendsBytes: Bool {
    @inlinable @inline(__always) get { lent > 0 }
  }

  /// Whether bytes are lent to a closure besides the one of a load, which may write.
  package var lendsWhileLoading: Bool {
    @inlinable @inline(__always) get { lent > 1 }
  }

  @inlinable @inline(__always)
  package func beginLending() { lent &+= 1 }

  @inlinable @inline(__always)
  package func endLending() {
    lent &-= 1
    if _slowPath(!isOpen), lent == 0 { returned() }
  }

  /// Ends a snapshot. Inside a closure that bytes are lent to, the end takes effect when the closure has
  /// returned.
  @inlinable @inline(__always)
  package func endSnapshot() {
    guard isOpen else { return }
    isOpen = false
    if !lendsBytes { returned() }
  }

  @inlinable @inline(__always)
  package func checkOpen() throws {
    if !isOpen { throw ended() }
  }

  // MARK: Errors, out of line

  @inline(never)
  package func ended() -> StorageError {
    environment.error(.closed, "the transaction was used after its end")
  }

  @inline(never)
  package func lentBytes(_ what: String) -> StorageError {
    environment.error(
      .bytesAreLent,
      "\(what) isn't possible inside a closure that bytes are lent to; do it after the closure has returned")
  }
}
