import Bytes
import Storage
import StorageMemory

/// The values of many keys of a keyspace, read in one request.
final class FoundValues {
  /// The maximum number of keys of a request.
  static let most = 1_000

  private let transaction: PostgresTransaction
  let keyspace: Keyspace
  private var answer: Answer?
  /// The rows of the answer, by key.
  private var rows: [ByteString: Int] = [:]
  /// The keys that were asked for.
  private var asked: Set<ByteString> = []

  init(_ transaction: PostgresTransaction, _ keyspace: Keyspace) {
    self.transaction = transaction
    self.keyspace = keyspace
  }

  /// Whether any keys were asked for.
  var hasAsked: Bool { answer != nil }

  /// Reads the values of keys. It forgets those before.
  func ask(_ keys: [[UInt8]]) throws {
    var array = ArrayParameter(capacity: keys.reduce(0) { $0 + $1.count + 4 })
    for key in keys { key.withUnsafeBytes { array.append($0) } }
    array.finish()
    let answer = try transaction.reporting {
      try transaction.locked { try $0.run(.getMany, [.integer(keyspace.number), .array(array)]) }
    }
    asked = Set(keys.map { ByteString($0) })
    rows.removeAll(keepingCapacity: true)
    for row in 0..<answer.count { rows[ByteString(answer.bytes(row, 0))] = row }
    self.answer = answer
  }

  /// Lends the value of a key that was asked for. Returns false if there is none.
  func lend(_ key: RawSpan, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool {
    if let own = transaction.unsent(keyspace.number).record(at: key) {
      guard UnsentMark.isPut(own.mark) else { return false }
      transaction.beginLending()
      defer { transaction.endLending() }
      try own.withBytes { _, value in try body(value) }
      return true
    }
    guard let answer, let row = rows[ByteString([UInt8](copying: key))] else { return false }
    // A large value, which the answer doesn't have.
    guard !answer.isNull(row, 1) else { return try transaction.read(key, in: keyspace, body) }
    transaction.beginLending()
    defer { transaction.endLending() }
    try withExtendedLifetime(answer) { try body(answer.bytes(row, 1).bytes) }
    return true
  }

  func wasAsked(_ key: RawSpan) -> Bool { asked.contains(ByteString([UInt8](copying: key))) }

  /// Lends the value of a key, which is read now.
  func read(_ key: RawSpan, _ body: (_ value: RawSpan) throws -> Void) throws {
    _ = try transaction.read(key, in: keyspace, body)
  }
}

/// The values that a scan of another keyspace refers to. It guesses the keys that the next entries name from the place of the
/// last one, and reads their values together. A wrong guess costs time and nothing else.
final class FollowedValues {
  /// The number of entries that are guessed at first. It grows with every right guess.
  private static let firstGuess = 8
  /// The number of wrong guesses after which there are no more.
  private static let wrongGuesses = 3

  private let values: FoundValues
  private let stream: EntryStream
  private var guess = FollowedValues.firstGuess
  private var wrong = 0

  init(_ values: FoundValues, _ stream: EntryStream) {
    self.values = values
    self.stream = stream
  }

  /// Lends the value at the key that is `place` of an entry's key or value.
  func lend(
    _ bytes: RawSpan, _ place: Range<Int>, isInKey: Bool, _ body: (_ value: RawSpan) throws -> Void
  ) throws {
    let key = bytes.extracting(place)
    try PostgresEngine.check(key, in: values.keyspace)
    if !values.wasAsked(key) {
      if values.hasAsked { wrong += 1 }
      guard wrong < Self.wrongGuesses else { return try values.read(key, body) }
      var keys = guesses(bytes, place, isInKey: isInKey)
      // A last entry alone is read as any other key.
      guard !keys.isEmpty else { return try values.read(key, body) }
      keys.append([UInt8](copying: key))
      try values.ask(keys)
    } else {
      wrong = 0
    }
    _ = try values.lend(key, body)
  }

  /// The keys of the next entries, if they are at the same place of their entries: as far from the beginning and the end, or as
  /// long and as far from the end.
  private func guesses(_ bytes: RawSpan, _ place: Range<Int>, isInKey: Bool) -> [[UInt8]] {
    let behind = bytes.byteCount - place.upperBound
    var keys: [[UInt8]] = []
    stream.lookAhead(guess) { key, value in
      let entry = isInKey ? key : value
      let end = entry.count - behind
      for start in Set([place.lowerBound, end - place.count]) where start >= 0 && start < end {
        let key = [UInt8](entry[start..<end])
        if (try? PostgresEngine.check(key.span.bytes, in: values.keyspace)) != nil { keys.append(key) }
      }
    }
    guess = min(FoundValues.most / 2 - 1, guess * 4)
    return keys
  }
}
