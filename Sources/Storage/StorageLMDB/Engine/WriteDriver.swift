import CLMDB
import Storage

/// LMDB's write transaction as `GroupCommit` drives it. Members are child transactions.
///
/// `@unchecked Sendable`: the queue admits one thread at a time.
package final class WriteDriver: WriteGroup, @unchecked Sendable {
  private unowned(unsafe) let environment: Environment
  private var leader: LMDBWriteTransaction?
  private var member: LMDBWriteTransaction?
  /// Begins and ends a transaction.
  private let thread = ThreadChecker("a write transaction of LMDB")

  package init(_ environment: Environment) { self.environment = environment }

  package func begin() throws -> any WriteTransaction { try beginLeader() }

  package func beginLeader() throws -> LMDBWriteTransaction {
    let leader = try environment.beginWrite()
    thread.enter()
    self.leader = leader
    return leader
  }

  package func commit() throws {
    guard let leader else { return }
    self.leader = nil
    leader.bodyEnded()
    thread.leave()
    try environment.commit(leader)
  }

  package func abort() {
    guard let leader else { return }
    self.leader = nil
    leader.bodyEnded()
    thread.leave()
    environment.abort(leader)
  }

  package func beginMember() throws -> any WriteTransaction { try beginMemberPart() }

  package func beginMemberPart() throws -> LMDBWriteTransaction {
    guard let leader else { throw environment.error(.closed, "the write transaction has ended") }
    leader.bodyEnded()
    var child: OpaquePointer?
    let result = mdb_txn_begin(environment.handle, leader.transaction, 0, &child)
    guard result == 0, let child else {
      throw leader.failed(result, "a write could not join the open transaction")
    }
    let member = LMDBWriteTransaction(child, environment, leader.catalog, leader.newHandles)
    self.member = member
    return member
  }

  package func keepMember() throws {
    guard let member, let leader else { return }
    self.member = nil
    member.bodyEnded()
    // A failed commit has aborted the child.
    let result = mdb_txn_commit(member.transaction)
    if result != 0 { throw member.failed(result, "a write could not be committed") }
    leader.adopt(member)
  }

  package func abortMember() {
    guard let member else { return }
    self.member = nil
    member.bodyEnded()
    mdb_txn_abort(member.transaction)
  }

  package var isBroken: Bool { leader?.isBroken ?? false }

  package var breakage: StorageError? { leader?.failure }
}
