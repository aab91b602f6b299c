import Fleece

/// What a document's body has to have for a filter to be TRUE, as far as its bytes tell at a glance: most documents of a
/// scan are refused by it, before a row is made of them.
///
/// It points into a context and a program, for one run.
struct ScanTest: BitwiseCopyable {
  /// A property that has to be there.
  let path: UnsafeBufferPointer<PathMove>
  /// The text that it has to be; nil is any value.
  let text: TextSlice?

  /// Whether the filter may be TRUE.
  @inline(__always)
  func mayPass(_ body: Value) -> Bool {
    guard let value = body.value(at: path) else { return false }
    guard let text else { return true }
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
