import Storage

/// A fault in a database.
public struct IntegrityFault: Sendable, Hashable, CustomStringConvertible {
  /// The faulty object: `document 'x'`, `keyspace changes`, `blob sha1-…`, `engine`.
  public let subject: String
  /// The problem with it.
  public let problem: String

  /// Creates a fault.
  package init(_ subject: String, _ problem: String) {
    self.subject = subject
    self.problem = problem
  }

  /// The subject and the problem in one line.
  public var description: String {
    "\(subject): \(problem)".replacing("\n", with: " ")
  }
}

/// An additional part of an integrity check. For example, an index checks that its entries match the
/// documents (`DocumentStore.addIntegrityChecker`).
package protocol IntegrityChecker: Sendable {
  /// The subject that it checks, as in the fault that is reported when it fails: `index 'byName'`.
  var subject: String { get }

  /// Reports each fault to `check`. Checks everything if `check.isDeep`, otherwise only what is cheap. A
  /// thrown error becomes a fault of `subject`, except for errors that `check` threw.
  func check(_ check: IntegrityCheck) throws
}

/// A running check with its snapshot and its faults. Use it on one thread at a time.
package final class IntegrityCheck {
  /// The snapshot that all parts of the check read.
  package let transaction: any ReadTransaction
  /// The documents of that snapshot.
  package let documents: DocumentSnapshot
  /// Whether everything is read.
  package let isDeep: Bool
  private let limit: Int
  private let progress: (Int) throws -> Void
  private(set) var faults: [IntegrityFault] = []
  private var steps = 0

  /// The maximum number of faults is reached.
  struct LimitReached: Error {}
  /// An error that `progress` threw.
  struct Stopped: Error { let reason: any Error }

  init(
    _ transaction: any ReadTransaction, _ documents: DocumentSnapshot, isDeep: Bool, limit: Int,
    progress: @escaping (Int) throws -> Void
  ) {
    self.transaction = transaction
    self.documents = documents
    self.isDeep = isDeep
    self.limit = limit
    self.progress = progress
  }

  /// The number of faults that it can still take.
  package var room: Int { limit - faults.count }

  /// Records a fault. When the maximum number of faults is reached it throws an error, which the caller must
  /// pass on.
  package func report(_ subject: String, _ problem: String) throws {
    guard faults.count < limit else { throw LimitReached() }
    faults.append(IntegrityFault(subject, problem))
    if faults.count == limit { throw LimitReached() }
  }

  /// Counts an examined entry. When the check must stop it throws an error, which the caller must pass on.
  package func step() throws {
    steps += 1
    guard steps & 0xFF == 0 else { return }
    do { try progress(steps) } catch { throw Stopped(reason: error) }
  }

  /// Runs a part. An error that ends the part becomes a fault of `subject`, and the check continues.
  package func part(_ subject: String, _ body: () throws -> Void) throws {
    do { try body() } catch let error as LimitReached { throw error } catch let error as Stopped {
      throw error
    } catch {
      try report(subject, "can't be read: \(error)")
    }
  }
}

/// A set of sequences, stored as pages of bits. A sequence takes a few bytes, even if one of them is far from
/// the others.
struct SequenceSet {
  private var pages: [UInt64: [UInt64]] = [:]
  private(set) var count = 0
  private static let emptyPage = [UInt64](repeating: 0, count: 64)

  /// Inserts a sequence. Returns false if it was a member already.
  mutating func insert(_ sequence: UInt64) -> Bool {
    let bit = UInt64(1) << (sequence & 63)
    let word = Int(sequence >> 6 & 63)
    let page = sequence >> 12
    var isNew = false
    func set(_ words: inout [UInt64]) {
      isNew = words[word] & bit == 0
      words[word] |= bit
    }
    set(&pages[page, default: SequenceSet.emptyPage])
    if isNew { count += 1 }
    return isNew
  }

  func contains(_ sequence: UInt64) -> Bool {
    guard let page = pages[sequence >> 12] else { return false }
    return page[Int(sequence >> 6 & 63)] & (UInt64(1) << (sequence & 63)) != 0
  }
}
