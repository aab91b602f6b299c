import Expectations
import Storage
import StorageConformance
import Testing

@testable import BLIP
import Transport

@Suite("The memory of many connections", .timeLimit(.minutes(10))) struct MemoryTests {
  /// An account, and what it was told.
  private final class Party: Sendable {
    let told = Lock((goOns: 0, evictions: 0))
    let account: BLIPMemory.Account
    init(_ memory: BLIPMemory, held: Int = 0) {
      account = memory.open(
        { [told] in told.withLock { $0.goOns += 1 } },
        evict: { [told] in told.withLock { $0.evictions += 1 } })
      memory.update(account, held: held, toSend: 0)
    }
    var goOns: Int { told.withLock { $0.goOns } }
    var evictions: Int { told.withLock { $0.evictions } }
    var isEvicted: Bool { evictions > 0 }
  }

  /// Nobody is evicted but by a call.
  private func memory(_ bytes: Int = 100) -> BLIPMemory { BLIPMemory(bytes: bytes, patience: 1_000_000) }

  @Test("While nothing is left, connections wait, and go on one after the other in their order")
  func order() {
    let memory = memory()
    let holders = [Party(memory, held: 40), Party(memory, held: 40), Party(memory, held: 30)]
    let waiters = (0..<3).map { _ in Party(memory) }
    for waiter in waiters { expect(!memory.admits(waiter.account)) }
    expect(memory.held == 110 && memory.waitingCount == 3)
    memory.update(holders[0].account, held: 30, toSend: 0)
    // Still nothing.
    expect(waiters.allSatisfy { $0.goOns == 0 })
    memory.update(holders[0].account, held: 20, toSend: 0)
    expect(waiters.map(\.goOns), equals: [1, 0, 0])
    // One that comes later waits behind those that wait.
    expect(!memory.admits(holders[0].account))
    expect(memory.admits(waiters[0].account))
    memory.update(waiters[0].account, held: 5, toSend: 0)
    expect(waiters.map(\.goOns), equals: [1, 1, 0])
    expect(memory.admits(waiters[1].account))
    memory.update(waiters[1].account, held: 20, toSend: 0)
    expect(memory.held == 115 && waiters.map(\.goOns) == [1, 1, 0])
    memory.close(waiters[1].account)
    expect(waiters.map(\.goOns), equals: [1, 1, 1])
    for party in holders + waiters { memory.close(party.account) }
    expect(memory.held == 0 && memory.waitingCount == 0)
  }

  @Test("One that was told to go on and finds nothing stays the first")
  func first() {
    let memory = memory()
    let holder = Party(memory, held: 45)
    let other = Party(memory, held: 55)
    let waiters = [Party(memory), Party(memory)]
    for waiter in waiters { expect(!memory.admits(waiter.account)) }
    memory.update(holder.account, held: 40, toSend: 0)
    memory.update(other.account, held: 60, toSend: 0)
    expect(!memory.admits(waiters[0].account))
    memory.update(holder.account, held: 30, toSend: 0)
    expect(waiters.map(\.goOns), equals: [2, 0])
  }

  @Test("A connection that has its part waits for itself, and no other does")
  func part() {
    let memory = memory()
    let (large, small) = (Party(memory, held: 50), Party(memory, held: 10))
    expect(!memory.admits(large.account))
    expect(memory.admits(small.account))
    memory.update(large.account, held: 49, toSend: 0)
    expect(large.goOns == 1 && memory.admits(large.account))
  }

  @Test("What a connection is about to keep has room beside what all hold, or hasn't")
  func room() {
    let memory = memory()
    let (one, other) = (Party(memory, held: 30), Party(memory, held: 10))
    expect(memory.hasRoom(for: 60) && !memory.hasRoom(for: 61))
    memory.close(one.account)
    expect(memory.hasRoom(for: 90) && !memory.hasRoom(for: 91))
    memory.close(other.account)
    expect(memory.hasRoom(for: 100) && !memory.hasRoom(for: 101))
  }

  @Test("Those that have held most all the while end when nobody goes on")
  func eviction() {
    let memory = memory()
    let holders = [Party(memory, held: 20), Party(memory, held: 45), Party(memory, held: 35)]
    let waiter = Party(memory)
    expect(!memory.admits(waiter.account))
    memory.evictStuck()
    // It may have begun to wait just now.
    expect(holders.allSatisfy { !$0.isEvicted })
    // What it takes for a moment doesn't count.
    memory.update(holders[1].account, held: 60, toSend: 0)
    memory.update(holders[1].account, held: 45, toSend: 0)
    expect(holders[1].goOns == 0 && waiter.goOns == 0)
    memory.evictStuck()
    expect(holders.map(\.isEvicted) == [false, true, false] && !waiter.isEvicted)
    memory.close(holders[1].account)
    expect(waiter.goOns == 1 && memory.admits(waiter.account))
  }

  @Test("One that was told to end isn't chosen again, and nobody waits for it")
  func ending() {
    let memory = memory()
    let holders = [Party(memory, held: 45), Party(memory, held: 35), Party(memory, held: 20)]
    let waiter = Party(memory)
    // The first one waits too, in front of the other.
    expect(!memory.admits(holders[0].account) && !memory.admits(waiter.account))
    for _ in 0..<2 { memory.evictStuck() }
    expect(holders.map(\.isEvicted) == [true, false, false] && memory.endingCount == 1)
    expect(memory.waitingCount == 1 && !memory.admits(holders[0].account))
    // It doesn't end.
    memory.evictStuck()
    expect(holders.map(\.evictions), equals: [1, 1, 0])
    memory.close(holders[1].account)
    expect(waiter.goOns == 1 && memory.admits(waiter.account) && holders[0].goOns == 0)
    memory.close(holders[0].account)
    expect(memory.held == 20 && memory.endingCount == 0)
  }

  @Test("Nobody ends while somebody goes on, and one that gives back is spared")
  func spared() {
    let memory = memory()
    let (flowing, stuck, waiter) = (Party(memory, held: 48), Party(memory, held: 48), Party(memory, held: 4))
    expect(!memory.admits(waiter.account))
    memory.evictStuck()
    memory.update(flowing.account, held: 10, toSend: 0)
    expect(memory.admits(waiter.account))
    memory.update(flowing.account, held: 60, toSend: 0)
    memory.update(waiter.account, held: 4, toSend: 0)
    expect(!memory.admits(waiter.account))
    memory.evictStuck()
    expect(!flowing.isEvicted && !stuck.isEvicted && !waiter.isEvicted)
    memory.update(flowing.account, held: 0, toSend: 0)
    memory.update(flowing.account, held: 60, toSend: 0)
    expect(!memory.admits(waiter.account))
    memory.evictStuck()
    memory.evictStuck()
    expect(stuck.isEvicted || flowing.isEvicted)
  }

  @Test("Those that hold little go on when nothing is left, and end if their next frame is large")
  func reserve() {
    let memory = memory(1 << 20)
    let hog = Party(memory, held: 1 << 20)
    let waiter = Party(memory, held: 4_096)
    let (small, sly) = (Party(memory), Party(memory))
    expect(!memory.admits(hog.account) && !memory.admits(waiter.account))
    for held in [100, 0, 200, 400, 511] {
      expect(memory.admits(small.account))
      memory.update(small.account, held: held, toSend: 0)
    }
    expect(memory.admits(sly.account))
    memory.update(sly.account, held: 2_000, toSend: 0)
    expect(sly.evictions == 1 && memory.endingCount == 1 && !memory.admits(sly.account))
    // It may end late, and is told once.
    memory.update(sly.account, held: 3_000, toSend: 0)
    expect(sly.evictions == 1 && small.evictions == 0)
    // The reserve has an end, and those that wait for it go on as soon as there is some.
    let others = Party(memory, held: 256 << 10)
    expect(!memory.admits(small.account))
    memory.update(others.account, held: 0, toSend: 0)
    expect(small.goOns == 1 && waiter.goOns == 0 && memory.admits(small.account))
    // With memory for all, a large frame is none of its business.
    memory.update(hog.account, held: 0, toSend: 0)
    expect(memory.admits(small.account))
    memory.update(small.account, held: 300_000, toSend: 0)
    expect(small.evictions, equals: 0)
  }

  @Test("One that waits for itself alone ends")
  func stuckAlone() {
    let memory = memory()
    let (stuck, other) = (Party(memory, held: 60), Party(memory, held: 10))
    expect(!memory.admits(stuck.account))
    for _ in 0..<2 {
      memory.evictStuck()
      expect(memory.admits(other.account))
    }
    expect(stuck.isEvicted && !other.isEvicted)
    memory.close(stuck.account)
    expect(memory.held == 10 && !memory.evictStuck())
  }

  @Test("Everything goes through little memory, in both directions at once")
  func littleMemory() async throws {
    let memory = memory(40_000)
    let (left, right) = PipeTransport.pair()
    let server = BLIPConnection(right, name: "server", memory: memory)
    server.onRequest("echo") { request in
      request.reply(BLIPReply(body: .bytes(Array(request.message.body))))
    }
    server.start()
    let client = BLIPConnection(left, name: "client")
    client.start()
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<300 {
        group.addTask {
          let body = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: number * 10)
          var request = request("echo", body, urgent: number % 3 == 0, compressed: number % 2 == 0)
          request.isUrgent = number % 3 == 0
          return try await Array(client.send(request).body) == body
        }
      }
      for try await isEqual in group { expect(isEqual) }
    }
    while memory.held > 0 { await Task.yield() }
    client.close()
    _ = await server.waitUntilClosed()
    expect(memory.held, equals: 0)
  }
}
