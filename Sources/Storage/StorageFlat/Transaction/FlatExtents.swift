import Bytes

/// How far keyspaces reach: how many entries they have, and their greatest keys. Only what a write transaction asked for is in it.
///
/// The engine keeps it from one write transaction to the next, since nobody else writes the directory meanwhile. A transaction
/// takes it, and gives it back when it has committed. After any other end it is gone, and read again.
struct FlatExtents {
  var counts: [Int: Int] = [:]
  /// The greatest keys of keyspaces that were appended to, with their prefixes.
  var greatest: [Int: [UInt8]] = [:]

  /// Whether a key is greater than all keys of its keyspace, whose greatest one is known.
  func isGreatest(_ key: UnsafeRawBufferPointer, in number: Int) -> Bool {
    guard let last = greatest[number] else { return false }
    return last.withUnsafeBytes { compareBytes($0, key) } < 0
  }

  /// Notes that a key is there.
  mutating func noteWrite(of key: UnsafeRawBufferPointer, in number: Int) {
    if isGreatest(key, in: number) { noteGreatest(key, in: number) }
  }

  /// Notes a key that is the greatest one.
  mutating func noteGreatest(_ key: UnsafeRawBufferPointer, in number: Int) {
    greatest[number, default: []].removeAll(keepingCapacity: true)
    greatest[number, default: []].append(contentsOf: key)
  }

  /// Notes that a key isn't there any more.
  mutating func noteDeletion(of key: UnsafeRawBufferPointer, in number: Int) {
    if let last = greatest[number], last.elementsEqual(key) { greatest[number] = nil }
  }

  mutating func forget(_ number: Int) {
    counts[number] = nil
    greatest[number] = nil
  }
}
