import CLMDB
import Storage
import StorageLMDB

/// The write transaction of an encrypted file as `GroupCommit` drives it. It uses LMDB's transaction and its
/// children, with the changes in memory above them.
///
/// `@unchecked Sendable`: the queue admits one thread at a time.
final class EncryptedWriteDriver: WriteGroup, @unchecked Sendable {
  private let file: EncryptedFile
  private let outer: WriteDriver
  private var write: EncryptedWrite?
  private var leader: EncryptedWriteTransaction?
  private var member: EncryptedWriteTransaction?

  init(_ file: EncryptedFile) {
    self.file = file
    outer = WriteDriver(file.environment)
  }

  func begin() throws -> any WriteTransaction {
    let transaction = try outer.beginLeader()
    do {
      let write = try EncryptedWrite(file, transaction)
      let leader = EncryptedWriteTransaction(write)
      self.write = write
      self.leader = leader
      return leader
    } catch {
      outer.abort()
      throw error
    }
  }

  func commit() throws {
    guard let write, let leader else { return }
    self.write = nil
    self.leader = nil
    leader.bodyEnded()
    let number = mdb_txn_id(write.outer.transaction)
    let state: FileState?
    do { state = try write.finish() } catch {
      outer.abort()
      throw error
    }
    try outer.commit()
    write.keepInCache()
    if let state { file.publish(state, transaction: number) }
  }

  func abort() {
    write = nil
    leader?.bodyEnded()
    leader = nil
    outer.abort()
  }

  func beginMember() throws -> any WriteTransaction {
    guard let write else { throw file.error(.closed, "the write transaction has ended") }
    leader?.bodyEnded()
    // Writes the changes of the earlier parts now, because no part can undo them at this point.
    try write.spillIfLarge()
    write.beginPart(try outer.beginMemberPart())
    let member = EncryptedWriteTransaction(write)
    self.member = member
    return member
  }

  func keepMember() throws {
    guard let write, let member else { return }
    member.bodyEnded()
    if let failure = member.failure { throw failure }
    try outer.keepMember()
    self.member = nil
    write.keepPart()
  }

  func abortMember() {
    guard let write, let member else { return }
    member.bodyEnded()
    self.member = nil
    outer.abortMember()
    write.undoPart()
  }

  var isBroken: Bool { leader?.failure != nil || outer.isBroken }

  var breakage: StorageError? { leader?.failure ?? outer.breakage }
}
