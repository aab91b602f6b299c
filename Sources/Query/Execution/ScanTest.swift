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
  func mayPass(_ body: Value, _ sharedKeyCount: Int) -> Bool {
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

extension ScanTest {
  /// Of two that both have to hold, that which refuses more.
  static func stronger(_ left: ScanTest?, _ right: @autoclosure () -> ScanTest?) -> ScanTest? {
    if let left, left.text != nil { return left }
    guard let right = right() else { return left }
    return right.text != nil ? right : left ?? right
  }
}
