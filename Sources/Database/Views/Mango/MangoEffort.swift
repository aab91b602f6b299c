/// How much one document's conditions may take. Used by one thread at a time.
final class MangoEffort {
  /// The steps of regular expressions for one document, in ICU's units of about a millisecond.
  static let ofDocument: Int32 = 2_000

  /// Whether nobody waits for the result any more. It is asked from time to time.
  @exclusivity(unchecked) var isCancelled: () -> Bool = { false }
  /// Whether that was so. Results since then mean nothing.
  @exclusivity(unchecked) private(set) var wasCancelled = false
  @exclusivity(unchecked) private var left = MangoEffort.ofDocument
  /// The steps of the match that runs.
  private var taken: Int32 = 0
  @exclusivity(unchecked) private var conditions = 0

  /// Begins with a document.
  func begin() {
    left = Self.ofDocument
    wasCancelled = false
  }

  /// Counts a condition. False when nobody waits any more.
  @inline(__always)
  func goesOn() -> Bool {
    conditions &+= 1
    return conditions & 255 != 0 ? !wasCancelled : look()
  }

  @inline(never)
  private func look() -> Bool {
    if !wasCancelled { wasCancelled = isCancelled() }
    return !wasCancelled
  }

  /// Begins a match. False if the document has none left.
  func beginMatch() -> Bool {
    taken = 0
    return left > 0 && goesOn()
  }

  /// Counts the steps of a match.
  func endMatch() { left -= taken }

  /// Whether a match goes on. ICU calls this after each step, with their number, and before it tries another place, without one.
  static func goesOn(_ context: UnsafeRawPointer?, _ steps: Int32?) -> Int8 {
    guard let context else { return 1 }
    let effort = Unmanaged<MangoEffort>.fromOpaque(context).takeUnretainedValue()
    guard let steps else { return effort.goesOn() ? 1 : 0 }
    effort.taken = steps
    return steps < effort.left && effort.look() ? 1 : 0
  }
}
