/// A step of a simulation. Workers are counted from 0; what a step names is found when it is done, so that a script
/// from which steps are left out still makes sense.
package enum Step: Codable, Equatable, Sendable {
  /// One worker does an operation.
  case one(worker: Int, Operation)
  /// A save on top of the current revision of the document, or of the one before the last change of the worker's.
  case saveOnCurrent(worker: Int, id: String, isStale: Bool, Content, overHTTP: Bool? = nil)
  /// A revision from elsewhere, on top of the current one or as another root.
  case applyForeign(
    worker: Int, id: String, suffix: String, onCurrent: Bool, isDeleted: Bool, Content, overHTTP: Bool? = nil)
  /// The current revision wins over the others.
  case resolve(worker: Int, id: String)
  /// All workers that may write increment one document at the same time.
  case incrementTogether(id: String, times: Int)
  /// All workers that may write save documents of their own at the same time.
  case saveTogether([[String: Content]])
  /// A worker is killed that long after it was told to save, and starts again.
  case kill(worker: Int, microseconds: Int, id: String, Content)
  /// A worker closes the database, and opens it again.
  case reopen(worker: Int)
  /// All workers close the database, and it goes to another engine.
  case convert(engine: String)
}
