import Documents
import Logs
import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

// A session's checkpoint: where it begins, what its marks are worth, and the saves.

extension Session {
  /// Whether the mark of the change's document says what the remote has. It may be of a remote that was replaced since, if the
  /// checkpoints differ or there was none.
  func trustsMark(of change: PushChange) -> Bool { change.sequence > checkpointer.unproven }

  /// Whether all marks are trusted.
  var trustsMarks: Bool { checkpointer.unproven == 0 }

  /// Whether this session is the one that forgets earlier ones.
  var isReset: Bool { configuration.resetsCheckpoint && !checkpointer.wasReset }

  func readCheckpoint() throws -> Checkpoint? {
    checkpointer.stored = try database.replicating { [checkpointer] in try checkpointer.readStored($0) }
    guard !isReset, let stored = checkpointer.stored?.checkpoint else { return nil }
    checkpointer.openConflicts = stored.conflicts
    return stored
  }

  /// Takes note that revisions will be marked. If this session breaks off before it saves a checkpoint, and the other side is restored
  /// as it was at the last one, the checkpoints are equal and the marks are wrong. So the one that is stored here says that they are
  /// doubted. Without one they are anyway.
  func willMark() throws {
    guard !checkpointer.hasMarked else { return }
    checkpointer.hasMarked = true
    guard var stored = checkpointer.stored, stored.checkpoint.unproven != .max else { return }
    stored.checkpoint.unproven = .max
    let (id, json) = (stored.id, stored.checkpoint.json(time: Int(time(nil))))
    try database.replicatingChanges { try $0.setSyncCheckpoint(id, json) }
    checkpointer.stored = stored
  }

  func scheduleSave() {
    guard checkpointer.isDirty, !checkpointer.isScheduled else { return }
    checkpointer.isScheduled = true
    checkpointer.token = configuration.timer.schedule(after: configuration.checkpointDelay) { [weak self] in
      self?.enqueue { session in
        session.checkpointer.isScheduled = false
        session.saveCheckpoint()
      }
    }
  }

  /// Saves the checkpoint, there and then here, unless a save runs.
  func saveCheckpoint() {
    guard checkpointer.canSave, checkpointer.isDirty else {
      if isFinishing, !checkpointer.isSaving { end(outcome) }
      return
    }
    checkpointer.isSaving = true
    checkpointer.hasMarked = false
    let checkpoint = checkpointer.next(
      places: peer.exchangesLeaves ? SavedPlace.maximumCount : SavedPlace.maximumCountElsewhere)
    let time = Int(time(nil))
    let json = checkpoint.json(time: time, forPeer: true)
    peer.setCheckpoint(checkpointer.id, json, basedOn: checkpointer.revision) { [weak self] result in
      self?.enqueue { session in
        session.checkpointer.isSaving = false
        switch result {
        case .success(let revision):
          session.checkpointer.revision = revision
          session.checkpointer.saved = checkpoint
          (session.checkpointer.pushes, session.checkpointer.pulls) = (checkpoint.pushes, checkpoint.pulls)
          try session.store(checkpoint, time)
          session.checkpointer.conflicts = 0
          session.hasProgressed = true
        case .failure(let error) where error.code == 409 && session.checkpointer.conflicts < 3:
          session.checkpointer.hasMarked = session.checkpointer.stored?.checkpoint.unproven == .max
          // Another session has saved one. Its revision is asked for, and the save is done again.
          session.checkpointer.conflicts += 1
          session.checkpointer.canSave = false
          session.peer.checkpoint(session.checkpointer.id) { [weak session] result in
            session?.enqueue { session in
              guard case .success(let stored) = result else { return session.endSaving() }
              session.checkpointer.revision = stored?.revision ?? ""
              session.checkpointer.canSave = true
              session.saveCheckpoint()
            }
          }
          return
        case .failure(let error):
          session.checkpointer.hasMarked = session.checkpointer.stored?.checkpoint.unproven == .max
          Log.write(
            .warning, .sync, session.database.path, "a replication can't save its checkpoint: \(error)")
          return session.endSaving()
        }
        if session.isFinishing { session.saveCheckpoint() } else { session.scheduleSave() }
      }
    }
  }

  /// Stores here what is saved on the other side.
  private func store(_ checkpoint: Checkpoint, _ time: Int) throws {
    var checkpoint = checkpoint
    // Something was marked meanwhile.
    if checkpointer.hasMarked { checkpoint.unproven = .max }
    let (id, json) = (checkpointer.id, checkpoint.json(time: time))
    try database.replicatingChanges { try $0.setSyncCheckpoint(id, json) }
    checkpointer.stored = (id, checkpoint)
  }

  private func endSaving() { if isFinishing { end(outcome) } }
}
