/// The turn to do some work in the background of a database: one has it at a time, of all processes and of all that ask in one process.
///
/// May be used from any thread. Calls wait for each other.
package protocol WorkTurn: AnyObject, Sendable {
  /// Whether it can be lost while its process runs. Whoever gets it after another one then lets that one notice first.
  var canBeLost: Bool { get }
  /// Takes the turn if nobody has it, and returns whether it is held. Throws `closed` after `giveBack()`.
  func take() throws -> Bool
  /// Whether it was held ever since it was taken.
  func isStillHeld() throws -> Bool
  /// Lets others have it. It can't be taken again; make another one.
  func giveBack()
}
