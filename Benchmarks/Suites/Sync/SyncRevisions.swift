import Datasets
import Touchstone

/// Revisions as sync brings them, and what has to come of each.
enum SyncRevisions {
  /// A revision to apply, and what has to be afterwards.
  struct Incoming: Sendable {
    let revision: PulledRevision
    let outcome: Outcome
    /// The ID of the current revision afterwards.
    let winner: String
  }

  /// What has to come of a revision.
  enum Outcome: Sendable {
    /// The document was not here.
    case added
    /// The document has a new revision.
    case changed
    /// The document has one more live branch.
    case conflicted
    /// Nothing: it is here.
    case known
  }

  /// Generations between what is here and a revision with a deep history.
  static let deepHistory = 50

  /// The generation at which a document is here.
  static let storedGeneration = 2

  /// The digits that begin the suffix of what is here: a branch beside it wins when its own are greater.
  private enum Branch: String { case losing = "0", stored = "8", winning = "f" }

  /// A revision ID, as long as a real one; the same for the same numbers.
  private static func revisionID(_ generation: Int, _ number: Int, _ branch: Branch = .stored) -> String {
    var random = SeededRandom(seed: UInt64(number), stream: 0, index: UInt64(generation))
    let digits = HotelDocument.hex(random.next()) + HotelDocument.hex(random.next())
    return "\(generation)-\(branch.rawValue)\(digits)0000000"
  }

  /// The current revision of a document after it was updated up to a generation.
  static func current(_ number: Int, generation: Int) -> String { revisionID(generation, number) }

  /// A revision on the main line of a document, with so many of its ancestors.
  private static func pulled(
    _ number: Int, generation: Int, ancestors: Int, _ branch: Branch = .stored
  ) -> PulledRevision {
    let history =
      [revisionID(generation, number, branch)]
      + (1...ancestors).map { revisionID(generation - $0, number) }
    return PulledRevision(
      id: HotelDocument.id(number), history: history,
      body: .json(HotelDocument.json(number, version: generation)))
  }

  /// A document as it is here, or comes for the first time.
  static func new(_ number: Int) -> Incoming {
    let revision = pulled(number, generation: storedGeneration, ancestors: 1)
    return Incoming(revision: revision, outcome: .added, winner: revision.history[0])
  }

  /// The next revision of a document that is here at the generation before.
  static func update(_ number: Int, generation: Int = storedGeneration + 1) -> Incoming {
    let revision = pulled(number, generation: generation, ancestors: 2)
    return Incoming(revision: revision, outcome: .changed, winner: revision.history[0])
  }

  /// A revision that is here.
  static func known(_ number: Int) -> Incoming {
    let revision = pulled(number, generation: storedGeneration, ancestors: 1)
    return Incoming(revision: revision, outcome: .known, winner: revision.history[0])
  }

  /// A revision beside the one that is here.
  static func conflicting(_ number: Int, wins: Bool) -> Incoming {
    let revision = pulled(
      number, generation: storedGeneration, ancestors: 1, wins ? .winning : .losing)
    return Incoming(
      revision: revision, outcome: .conflicted,
      winner: wins ? revision.history[0] : current(number, generation: storedGeneration))
  }

  /// A revision far after the one that is here, with everything between.
  static func deep(_ number: Int) -> Incoming {
    let revision = pulled(number, generation: storedGeneration + deepHistory, ancestors: deepHistory)
    return Incoming(revision: revision, outcome: .changed, winner: revision.history[0])
  }
}
