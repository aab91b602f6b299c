// Commands of the child process for the tests of what belongs to one thread.
//
//   threads right         uses an object on its own thread, on one after another; prints "alive"
//   threads other         asserts on a thread that doesn't have the object
//   threads two           lets a thread take an object that another one has
//   threads leave         lets a thread give up an object that another one has
//   threads workers       uses outside of workers what their jobs use

import ChildSupport
import System

enum ThreadsCommands: ChildCommands {
  static let name = "threads"
  static let usage = "right|other|two|leave|workers"

  /// An object that belongs to one thread.
  private final class Confined: Sendable {
    let thread = ThreadChecker("the child's object")
    let workers = Workers()

    /// Runs `body` on another thread, and waits for it.
    func elsewhere(_ body: @escaping @Sendable (Confined) -> Void) {
      let done = CountingSemaphore()
      workers.enqueue { [self] in
        body(self)
        done.signal()
      }
      done.wait()
    }
  }

  static func run(_ arguments: [String]) throws {
    let object = Confined()
    switch arguments {
    case ["right"]:
      for _ in 0..<2 {
        object.thread.enter()
        object.thread.assertCurrent()
        object.thread.leave()
        object.elsewhere {
          $0.workers.assertCurrent("the child's workers")
          $0.thread.enter()
          $0.thread.assertCurrent()
          $0.thread.leave()
        }
      }
    case ["other"]:
      object.thread.enter()
      object.elsewhere { $0.thread.assertCurrent() }
    case ["two"]:
      object.thread.enter()
      object.elsewhere { $0.thread.enter() }
    case ["leave"]:
      object.thread.enter()
      object.elsewhere { $0.thread.leave() }
    case ["workers"]:
      object.elsewhere { _ in }
      object.workers.assertCurrent("the child's workers")
    default: throw WrongUsage()
    }
    say("alive")
  }
}
