import Fleece

/// What a document's body has to have for a filter to be TRUE, as far as its bytes tell at a glance: most documents of a
/// scan are refused by it, before a row is made of them.
///
/// It points into a context and a program, for one run.
struct ScanTest: BitwiseCopyable {
  /// The first step of a path: it has to lead somewhere.
  private let first: PathMove
  /// The others.
  private let rest: UnsafeBufferPointer<PathMove>
  /// The text that it has to be; nil is any value.
  let text: TextSlice?

  /// Nil for a path without steps.
  init?(path: UnsafeBufferPointer<PathMove>, text: TextSlice?) {
    guard let first = path.first else { return nil }
    self.first = first
    rest = UnsafeBufferPointer(rebasing: path.dropFirst())
    self.text = text
  }

  /// The same path with a text.
  func with(text: TextSlice) -> ScanTest {
    ScanTest(first: first, rest: rest, text: text)
  }

  private init(first: PathMove, rest: UnsafeBufferPointer<PathMove>, text: TextSlice) {
    self.first = first
    self.rest = rest
    self.text = text
  }

  /// Whether the filter may be TRUE of a body, whose encoder needed so many shared keys.
  @inline(__always)
  func mayPass(_ body: UnsafeValue, _ sharedKeyCount: Int) -> Bool {
    guard var value = body.value(at: first, sharedKeyCount: sharedKeyCount) else { return false }
    guard let text else { return true }
    if !rest.isEmpty {
      guard let found = value.value(at: rest) else { return false }
      value = found
    }
    guard let utf8 = value.utf8, utf8.count == text.count else { return false }
    return TextSlice(utf8).equals(text)
  }
}

extension PathNode {
  /// That there is such a property.
  func existence(_ source: Int, _ context: EvaluationContext) -> ScanTest? {
    guard let path, self.source == source else { return nil }
    return ScanTest(path: context.paths[path], text: nil)
  }
}

/// Tests of which each has to be passed. That which refused the last row is asked first: where one refuses most rows, it
/// is mostly the only one.
struct ScanTests: BitwiseCopyable {
  private let tests: UnsafeMutablePointer<ScanTest>
  private let count: Int

  /// Nil for none.
  init?(_ list: [ScanTest], _ arena: EvaluationArena) {
    if list.isEmpty { return nil }
    tests = arena.allocate(list.count, of: ScanTest.self)
    count = list.count
    for (index, test) in list.enumerated() { (tests + index).initialize(to: test) }
  }

  /// Whether the filter may be TRUE of a body, whose encoder needed so many shared keys.
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
