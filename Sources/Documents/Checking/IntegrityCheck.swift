import Storage

/// Something in a database that isn't as it has to be.
public struct IntegrityFault: Sendable, Hashable, CustomStringConvertible {
  /// What it is about: `document 'x'`, `keyspace changes`, `blob sha1-…`, `engine`.
  public let subject: String
  /// What is wrong with it.
  public let problem: String

  /// A fault of that subject.
  public init(_ subject: String, _ problem: String) {
    self.subject = subject
    self.problem = problem
  }

  /// Both in one line.
  public var description: String {
    "\(subject): \(problem)".replacing("\n", with: " ")
  }
}

/// Part of a check, for what is kept beside the documents: an index looks whether its entries are those that the
/// documents give (`DocumentStore.addIntegrityChecker`).
public protocol IntegrityChecker: Sendable {
  /// What it looks at, as the subject of a fault that stops it: `index 'byName'`.
  var subject: String { get }

  /// Reports each fault to `check`; looks at everything when `check.isDeep`, else at what is cheap. What is thrown
  /// becomes a fault of `subject`, but for what `check` threw.
  func check(_ check: IntegrityCheck) throws
}

/// A check under way: one snapshot, and where faults go. One thread at a time.
public final class IntegrityCheck {
  /// The snapshot that all parts of the check look at.
  public let transaction: any ReadTransaction
  /// The documents of that snapshot.
  public let documents: DocumentSnapshot
  /// Whether everything is to be read.
  public let isDeep: Bool
  private let limit: Int
  private let progress: (Int) throws -> Void
  private(set) var faults: [IntegrityFault] = []
  private var steps = 0

  /// There are more faults than anybody reads.
  struct LimitReached: Error {}
  /// What the progress threw.
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

  /// How many faults it still takes.
  public var room: Int { limit - faults.count }

  /// Takes note of a fault. Throws when there are enough: let it through.
  public func report(_ subject: String, _ problem: String) throws {
    guard faults.count < limit else { throw LimitReached() }
    faults.append(IntegrityFault(subject, problem))
    if faults.count == limit { throw LimitReached() }
  }

  /// Says that another entry was looked at. Throws when the check is to stop: let it through.
  public func step() throws {
    steps += 1
    guard steps & 0xFF == 0 else { return }
    do { try progress(steps) } catch { throw Stopped(reason: error) }
  }

  /// Runs a part; what stops it is a fault of `subject`, and the others go on.
  func part(_ subject: String, _ body: () throws -> Void) throws {
    do { try body() } catch let error as LimitReached { throw error } catch let error as Stopped {
      throw error
    } catch {
      try report(subject, "can't be read: \(error)")
    }
  }
}

/// Sequences in pages of bits: a few bytes each, also when one of them is far off.
struct SequenceSet {
  private var pages: [UInt64: [UInt64]] = [:]
  private(set) var count = 0
  private static let emptyPage = [UInt64](repeating: 0, count: 64)

  /// False when it was there already.
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
