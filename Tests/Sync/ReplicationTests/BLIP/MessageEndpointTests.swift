import Bytes
import Documents
import Foundation
import Storage
import StorageConformance
import TestSupport
import Testing
import Touchstone
import Transport

@testable import Replication
@testable import ReplicationBLIP

/// A transport of an app: pieces of at most `pieceBytes` go to the other end on its thread, each after a while.
private final class PieceConnection: MessageEndpointConnection {
  struct State {
    var connection: ReplicatorConnection?
    var waiting: [[UInt8]] = []
    var isClosed = false
    var hasOtherClosed = false
    var closeError: (any Error)?
    var sentPieces = 0
    var sentBytes = 0
    /// After so many bytes of both ends together nothing arrives any more.
    var cut: ByteCut?
    /// The piece whose sending fails, and how.
    var failure: (piece: Int, error: MessagingError)?
    var openError: MessagingError?
  }
  let state = Lock(State())
  private let pieceBytes: Int
  private let delayMicroseconds: UInt32
  private let workers = Workers()
  private let other = Lock<Other>(Other())
  private struct Other { weak var end: PieceConnection? }

  private init(_ pieceBytes: Int, _ delayMicroseconds: UInt32) {
    self.pieceBytes = pieceBytes
    self.delayMicroseconds = delayMicroseconds
  }

  static func pair(pieceBytes: Int = .max, delayMicroseconds: UInt32 = 0) -> (
    PieceConnection, PieceConnection
  ) {
    let a = PieceConnection(pieceBytes, delayMicroseconds)
    let b = PieceConnection(pieceBytes, delayMicroseconds)
    a.other.withLock { $0.end = b }
    b.other.withLock { $0.end = a }
    return (a, b)
  }

  func open(_ connection: ReplicatorConnection, _ completion: @escaping @Sendable (MessagingError?) -> Void) {
    let (waiting, error, hasOtherClosed) = state.withLock { state in
      state.connection = connection
      defer { state.waiting = [] }
      return (state.waiting, state.openError, state.hasOtherClosed)
    }
    for piece in waiting { connection.receive(piece) }
    completion(error)
    if hasOtherClosed { connection.close() }
  }

  func send(_ message: [UInt8], _ completion: @escaping @Sendable (MessagingError?) -> Void) {
    workers.enqueue { [self] in
      for start in stride(from: 0, to: message.count, by: min(pieceBytes, message.count)) {
        let piece = Array(message[start..<min(message.count, start + min(pieceBytes, message.count))])
        let failure = state.withLock { state in
          state.sentPieces += 1
          state.sentBytes += piece.count
          return state.failure.flatMap { $0.piece == state.sentPieces ? $0.error : nil }
        }
        if let failure { return completion(failure) }
        if let cut = state.withLock({ $0.cut }) {
          let left = cut.take(piece.count)
          if left < piece.count {
            if left > 0 { other.withLock { $0.end }?.take(Array(piece[..<left])) }
            return completion(MessagingError("the connection is cut", isRecoverable: true))
          }
        }
        if delayMicroseconds > 0 { usleep(delayMicroseconds) }
        guard let end = other.withLock({ $0.end }) else {
          return completion(MessagingError("the other end is gone", isRecoverable: true))
        }
        end.take(piece)
      }
      completion(nil)
    }
  }

  private func take(_ piece: [UInt8]) {
    let connection = state.withLock { state in
      if state.connection == nil { state.waiting.append(piece) }
      return state.connection
    }
    guard let connection else { return }
    let taken = CountingSemaphore()
    connection.receive(piece) { taken.signal() }
    taken.wait()
  }

  func close(_ error: (any Error)?, _ completion: @escaping @Sendable () -> Void) {
    state.withLock { state in
      state.isClosed = true
      state.closeError = error
    }
    other.withLock { $0.end }?.otherEndHasClosed()
    completion()
  }

  /// Both ends together carry no more than `cut` lets through.
  func cut(by cut: ByteCut) {
    for end in [self, other.withLock { $0.end }] { end?.state.withLock { $0.cut = cut } }
  }

  func otherEndHasClosed() {
    workers.enqueue { [self] in
      let connection = state.withLock { state in
        state.hasOtherClosed = true
        return state.connection
      }
      connection?.close()
    }
  }
}

/// Lets so many bytes through.
private final class ByteCut: Sendable {
  private let left: Lock<Int>
  init(after count: Int) { left = Lock(count) }
  /// Takes at most `count` bytes, and returns how many.
  func take(_ count: Int) -> Int {
    left.withLock { left in
      let taken = min(left, count)
      left -= taken
      return taken
    }
  }
}

@Suite("Transports of the app's own") struct MessageEndpointTests {
  private let databases = TestDatabases()

  private func endpoint(
    _ listener: MessageEndpointListener, pieceBytes: Int = .max, delayMicroseconds: UInt32 = 0,
    _ change: @escaping @Sendable (PieceConnection, _ number: Int) -> Void = { _, _ in }
  ) -> (MessageEndpoint, Lock<[PieceConnection]>) {
    let made = Lock<[PieceConnection]>([])
    let endpoint = MessageEndpoint(uid: "UID:123", listener.protocolType) {
      let (here, there) = PieceConnection.pair(pieceBytes: pieceBytes, delayMicroseconds: delayMicroseconds)
      let number = made.withLock { made in
        made += [here, there]
        return made.count / 2
      }
      change(here, number)
      listener.accept(there)
      return here
    }
    return (endpoint, made)
  }

  private func run(
    _ local: Database, _ endpoint: MessageEndpoint, timer: any CallTimer = SystemTimer()
  )
    throws -> Outcome
  {
    var configuration = ReplicatorConfiguration(local, .messageEndpoint(endpoint))
    configuration.skipsTombstonesOfFirstPull = false
    configuration.timer = timer
    return try ReplicationTests.run(configuration)
  }

  @Test("documents and blobs go both ways, as messages and as bytes", arguments: MessageProtocol.allCases)
  func bothWays(_ type: MessageProtocol) throws {
    let (a, b) = (try databases.open(.lmdb), try databases.open(.sqlite))
    for number in 0..<300 { try a.save("a\(number)", ["n": .int(Int64(number)), "text": "some text"]) }
    for number in 0..<200 { try b.save("b\(number)", ["n": .int(Int64(number))]) }
    var document = MutableDocument(id: "blob")
    document.set(try Blob((0..<150_000).map { UInt8(truncatingIfNeeded: $0 &* $0) }), forKey: "data")
    try a.save(&document)
    let listener = MessageEndpointListener(b, type)
    let (endpoint, made) = endpoint(listener)
    expect(endpoint.uid, equals: "UID:123")
    let outcome = try run(a, endpoint)
    expect(outcome.status.error == nil && outcome.pushed.count == 301 && outcome.pulled.count == 200)
    try expectEqual(a, b)
    eventually { made.withLock { $0 }.allSatisfy { $0.state.withLock { $0.isClosed } } }
    expect(made.withLock { $0 }[0].state.withLock { $0.closeError } == nil)
    eventually { listener.connectionCount == 0 }
    // The checkpoint is known by the endpoint's ID.
    try expect(run(a, endpoint).status.progress.total, equals: 0)
  }

  @Test("bytes may come in pieces of 20, slowly, as over Bluetooth") func smallPieces() throws {
    let (a, b) = (try databases.open(.lmdb), try databases.open(.lmdb))
    for number in 0..<40 { try a.save("a\(number)", ["n": .int(Int64(number))]) }
    for number in 0..<20 { try b.save("b\(number)", ["n": .int(Int64(number))]) }
    let listener = MessageEndpointListener(b, .byteStream)
    let (endpoint, made) = endpoint(listener, pieceBytes: 20, delayMicroseconds: 300)
    let outcome = try run(a, endpoint)
    expect(outcome.status.error == nil && outcome.pushed.count == 40 && outcome.pulled.count == 20)
    try expectEqual(a, b)
    expect(made.withLock { $0 }[0].state.withLock { $0.sentPieces } > 50)
  }

  @Test(
    "after a recoverable error another connection is made, after another one it stops",
    arguments: [true, false])
  func errors(_ isRecoverable: Bool) throws {
    let (a, b) = (try databases.open(.lmdb), try databases.open(.lmdb))
    for number in 0..<100 { try a.save("a\(number)", ["n": .int(Int64(number))]) }
    let listener = MessageEndpointListener(b, .messageStream)
    let error = MessagingError("the radio is off", isRecoverable: isRecoverable)
    let (endpoint, made) = endpoint(listener) { connection, number in
      if number == 1 { connection.state.withLock { $0.failure = (3, error) } }
      if number == 2 { connection.state.withLock { $0.openError = error } }
    }
    let timer = ImmediateTimer()
    let outcome = try run(a, endpoint, timer: timer)
    if isRecoverable {
      expect(outcome.status.error == nil && outcome.pushed.count == 100)
      expect(made.withLock { $0.count } == 6 && timer.delays.prefix(2) == [2, 4])
      try expectEqual(a, b)
    } else {
      expect(outcome.status.error?.domain == .webSocket && outcome.status.error?.code == 4002)
      expect(outcome.status.error?.message == "the radio is off" && made.withLock { $0.count } == 2)
    }
    eventually { listener.connectionCount == 0 }
  }

  @Test("a session that is cut at any byte is completed by the next one") func cuts() throws {
    let length = try cutSession(after: .max)
    expect(length > 2_000)
    // Every byte in a long run.
    let step = isLong ? 1 : max(1, length / 60)
    for count in stride(from: 0, to: length, by: step) { _ = try cutSession(after: count) }
  }

  /// Replicates two small databases over a byte stream that is cut after so many bytes, completes that over another one,
  /// and returns the bytes that the first one carried.
  private func cutSession(after count: Int) throws -> Int {
    let (a, b) = (try Database.inMemory(), try Database.inMemory())
    for number in 0..<12 {
      try a.save("a\(number)", ["n": .int(Int64(number)), "text": "some text to send"])
    }
    for number in 0..<8 { try b.save("b\(number)", ["n": .int(Int64(number))]) }
    try a.save("both", ["from": "a"])
    try b.save("both", ["from": "b"])
    try b.save("gone", ["n": 1])
    try b.delete("gone")
    let listener = MessageEndpointListener(b, .byteStream)
    let cut = ByteCut(after: count)
    let (first, made) = endpoint(listener) { connection, _ in connection.cut(by: cut) }
    var configuration = ReplicatorConfiguration(a, .messageEndpoint(first))
    configuration.maximumRetries = 0
    configuration.skipsTombstonesOfFirstPull = false
    _ = try ReplicationTests.run(configuration)
    let sent = made.withLock { $0 }.reduce(0) { sum, end in sum + end.state.withLock { $0.sentBytes } }
    for end in made.withLock({ $0 }) { end.otherEndHasClosed() }
    eventually { listener.connectionCount == 0 }
    for database in [a, b] { try expect(database.check(deep: true), equals: [], "cut after \(count)") }
    let (second, _) = endpoint(listener)
    configuration.target = .messageEndpoint(second)
    try expect(ReplicationTests.run(configuration).status.error == nil, "cut after \(count)")
    try expectEqual(a, b, "cut after \(count)")
    eventually { listener.connectionCount == 0 }
    try a.close()
    try b.close()
    return sent
  }

  @Test("a listener that closes ends its connections, and the other side may come back") func closing() throws
  {
    let (a, b) = (try databases.open(.lmdb), try databases.open(.lmdb))
    try a.save("a", ["n": 1])
    let listener = MessageEndpointListener(b, .messageStream)
    let (endpoint, made) = endpoint(listener)
    var configuration = ReplicatorConfiguration(a, .messageEndpoint(endpoint))
    configuration.isContinuous = true
    configuration.timer = ImmediateTimer()
    let replicator = Replicator(configuration)
    replicator.start()
    eventually { (try? b.documentCount) == 1 && replicator.status.activity == .idle }
    listener.closeAll()
    eventually { made.withLock { $0.count } == 4 && replicator.status.activity == .idle }
    try b.save("b", ["n": 1])
    eventually { (try? a.documentCount) == 2 }
    let second = made.withLock { $0 }[3]
    listener.close(second)
    eventually { made.withLock { $0.count } == 6 }
    replicator.stop()
    eventually { replicator.status.activity == .stopped && listener.connectionCount == 0 }
  }

  @Test(
    "bytes that are no frames, and messages that are no BLIP, end the connection",
    arguments: MessageProtocol.allCases)
  func garbage(_ type: MessageProtocol) throws {
    let b = try databases.open(.lmdb)
    var random = SeededGenerator(seed: 11)
    for _ in 0..<50 {
      let listener = MessageEndpointListener(b, type)
      let (here, there) = PieceConnection.pair()
      listener.accept(there)
      listener.accept(there)
      let bytes = (0..<1 + random.below(300)).map { _ in UInt8(random.below(256)) }
      eventually { there.state.withLock { $0.connection } != nil }
      for _ in 0..<20 { there.state.withLock { $0.connection }?.receive(bytes) }
      there.state.withLock { $0.connection }?.close()
      eventually { there.state.withLock { $0.isClosed } && listener.connectionCount == 0 }
      withExtendedLifetime(here) {}
    }
    try expect(b.check(deep: true), equals: [])
  }

  @Test("an app that gives too much at once loses the connection") func tooMuch() throws {
    let pair = PieceConnection.pair()
    let transport = EndpointTransport(pair.0, .messageStream, isActive: true)
    transport.open { _ in }
    let part = [UInt8](repeating: 0, count: 8 << 20)
    for _ in 0..<9 { transport.received(part, nil) }
    let ends = Lock<[TransportClose?]>([])
    transport.send([[1]]) { end in ends.withLock { $0.append(end) } }
    expect(ends.withLock { $0.first??.code }, equals: 1009)
  }
}

/// A time in which every delay is over at once.
final class ImmediateTimer: CallTimer {
  private let state = Lock<[Double]>([])
  private let workers = Workers()
  var now: Double { 0 }
  var delays: [Double] { state.withLock { $0 } }
  func schedule(after seconds: Double, _ body: @escaping @Sendable () -> Void) -> TimerToken {
    // Checkpoints that are saved later, and ends that are waited for, don't count.
    let isCancelled = Lock(false)
    guard [2, 4, 8, 16].contains(seconds) else { return TimerToken {} }
    state.withLock { $0.append(seconds) }
    workers.enqueue { if !isCancelled.withLock({ $0 }) { body() } }
    return TimerToken { isCancelled.withLock { $0 = true } }
  }
}
