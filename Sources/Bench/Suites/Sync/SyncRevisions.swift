import Bytes
import Datasets
import Touchstone

/// Revisions as sync receives them, and the expected outcome of each.
enum SyncRevisions {
  /// A revision to apply and its expected outcome.
  struct Incoming: Sendable {
    let revision: PulledRevision
    let outcome: Outcome
    /// The ID of the document's current revision after the apply.
    let winner: String
  }

  /// The expected outcome of a revision.
  enum Outcome: Sendable {
    /// The document is new.
    case added
    /// The document has a new revision.
    case changed
    /// The document has another live branch.
    case conflicted
    /// Nothing changes: the revision is known.
    case known
  }

  /// The number of generations between the stored revision and one with a deep history.
  static let deepHistory = 50

  /// The generation of stored documents.
  static let storedGeneration = 2

  /// The first digit of a revision's suffix. A branch wins over the stored one if its digit is greater.
  private enum Branch: String { case losing = "0", stored = "8", winning = "f" }

  /// A revision ID, as long as a real one. Equal arguments give equal IDs.
  private static func revisionID(_ generation: Int, _ number: Int, _ branch: Branch = .stored) -> String {
    var random = SeededRandom(seed: UInt64(number), stream: 0, index: UInt64(generation))
    let digits = Hex.text(random.next(), digits: 16) + Hex.text(random.next(), digits: 16)
    return "\(generation)-\(branch.rawValue)\(digits)0000000"
  }

  /// The ID of a document's current revision after updates up to that generation.
  static func current(_ number: Int, generation: Int) -> String { revisionID(generation, number) }

  /// A revision on the main branch of a document, with that number of ancestors.
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

  /// The stored revision of a document, or the first one of a new document.
  static func new(_ number: Int) -> Incoming {
    let revision = pulled(number, generation: storedGeneration, ancestors: 1)
    return Incoming(revision: revision, outcome: .added, winner: revision.history[0])
  }

  /// The next revision of a document at the generation before.
  static func update(_ number: Int, generation: Int = storedGeneration + 1) -> Incoming {
    let revision = pulled(number, generation: generation, ancestors: 2)
    return Incoming(revision: revision, outcome: .changed, winner: revision.history[0])
  }

  /// A revision that is already stored.
  static func known(_ number: Int) -> Incoming {
    let revision = pulled(number, generation: storedGeneration, ancestors: 1)
    return Incoming(revision: revision, outcome: .known, winner: revision.history[0])
  }

  /// A revision that conflicts with the stored one.
  static func conflicting(_ number: Int, wins: Bool) -> Incoming {
    let revision = pulled(
      number, generation: storedGeneration, ancestors: 1, wins ? .winning : .losing)
    return Incoming(
      revision: revision, outcome: .conflicted,
      winner: wins ? revision.history[0] : current(number, generation: storedGeneration))
  }

  /// A revision many generations after the stored one, with all revisions between them.
  static func deep(_ number: Int) -> Incoming {
    let revision = pulled(number, generation: storedGeneration + deepHistory, ancestors: deepHistory)
    return Incoming(revision: revision, outcome: .changed, winner: revision.history[0])
  }
}
