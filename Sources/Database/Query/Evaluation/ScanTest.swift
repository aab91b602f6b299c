import Fleece

/// A test of a document's body that a filter needs to be TRUE. It is fast, and refuses most documents of a
/// scan before a row is made for them.
///
/// It points into a context and a program. It is valid for one run.
struct ScanTest: BitwiseCopyable {
  /// The first step of the path. It has to lead to a value.
  var first: PathMove
  /// The other steps.
  let rest: UnsafeBufferPointer<PathMove>
  /// The text that the value has to equal. Nil accepts any value.
  let text: TextSlice?

  /// The same path, with a text to compare with.
  func with(text: TextSlice) -> ScanTest {
    ScanTest(first: first, rest: rest, text: text)
  }

  /// Whether the filter may be TRUE for a body, whose encoder needed `sharedKeyCount` shared keys.
  @inline(__always)
  mutating func mayPass(_ body: UnsafeValue, _ sharedKeyCount: Int) -> Bool {
    guard var value = body.value(at: &first, sharedKeyCount: sharedKeyCount) else { return false }
    guard let text else { return true }
    if !rest.isEmpty {
      guard let found = value.value(at: rest) else { return false }
      value = found
    }
    guard let utf8 = value.utf8, utf8.count == text.count else { return false }
    return TextSlice(utf8).equals(text)
  }
}

extension ScanTest {
  /// Nil for a path without steps.
  init?(path: UnsafeMutableBufferPointer<PathMove>, text: TextSlice?) {
    guard let first = path.first else { return nil }
    self.init(first: first, rest: UnsafeBufferPointer(rebasing: path.dropFirst()), text: text)
  }
}

extension PathNode {
  /// A test that the property exists.
  func existence(_ source: Int, _ context: EvaluationContext) -> ScanTest? {
    guard let path, self.source == source else { return nil }
    return ScanTest(path: context.paths[path], text: nil)
  }
}

/// A list of tests, all of which a body has to pass. The test that refused the last body runs first, because
/// one test often refuses most bodies.
struct ScanTests: BitwiseCopyable {
  private let tests: UnsafeMutablePointer<ScanTest>
  private let count: Int

  /// Nil for an empty list.
  init?(_ list: [ScanTest], _ arena: EvaluationArena) {
    if list.isEmpty { return nil }
    tests = arena.allocate(list.count, of: ScanTest.self)
    count = list.count
    for (index, test) in list.enumerated() { (tests + index).initialize(to: test) }
  }

  /// Whether the filter may be TRUE for a body, whose encoder needed `sharedKeyCount` shared keys.
  @inline(__always)
  func mayPass(_ body: UnsafeValue, _ sharedKeyCount: Int) -> Bool {
    guard tests.pointee.mayPass(body, sharedKeyCount) else { return false }
    return count == 1 || passesOthers(body, sharedKeyCount)
  }

  @inline(never)
  private func passesOthers(_ body: UnsafeValue, _ sharedKeyCount: Int) -> Bool {
    for index in 1..<count where !tests[index].mayPass(body, sharedKeyCount) {
      (tests[0], tests[index]) = (tests[index], tests[0])
      return false
    }
    return true
  }
}
