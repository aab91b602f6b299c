import Expectations
import Foundation
import Synchronization
import Testing

@testable import BenchmarkKit

/// Other programs, and what they say.
struct ProgramTests {
  @Test func signalsDontEndAReadOfWhatAProgramSays() throws {
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in }
    // Without SA_RESTART: a read that waits ends with EINTR.
    sigaction(SIGUSR2, &action, nil)
    let reader = pthread_self()
    let isDone = Atomic(false)
    let sender = DispatchGroup()
    DispatchQueue.global().async(group: sender) {
      while !isDone.load(ordering: .relaxed) {
        pthread_kill(reader, SIGUSR2)
        usleep(5_000)
      }
    }
    defer {
      isDone.store(true, ordering: .relaxed)
      sender.wait()
    }
    let outcome = try Program.run("/bin/sh", ["-c", "sleep 0.3; echo said"])
    expect(outcome.status == 0 && outcome.output == "said\n")
  }
}
