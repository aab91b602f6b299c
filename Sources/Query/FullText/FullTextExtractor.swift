import Documents
import Fleece

/// Makes the texts that a document has in a full-text index. One thread at a time.
final class FullTextExtractor {
  private let columns: [CompiledExpression]
  private let condition: CompiledExpression?
  private let context: EvaluationContext
  /// How deep arrays and objects are looked into.
  static let maximumDepth = 64

  init(_ definition: FullTextIndexDefinition) throws {
    // The same can be indexed as by a value index.
    try ValueIndexDefinition(definition.expressions, where: definition.condition).checkExpressions()
    let program = EvaluationProgram()
    var columns: [CompiledExpression] = []
    for expression in definition.expressions {
      columns.append(try program.compile(expression, in: ValueIndexScope()))
    }
    self.columns = columns
    condition = try definition.condition.map { try program.compile($0, in: ValueIndexScope()) }
    context = try EvaluationContext(program)
  }

  /// The names that bodies are read with from now on.
  func begin(_ sharedKeys: SharedKeys) { context.begin(sharedKeys) }

  /// Forgets what was extracted before.
  func reset() { context.arena.reset() }

  /// The text of each column; no column when the document isn't in the index. They last as long as the body does and
  /// until `reset`.
  func texts(_ documentID: UnsafeRawBufferPointer, _ body: UnsafeValue) -> [UnsafeRawBufferPointer] {
    context.rows[0] = SourceRow(value: QueryValue(body), id: TextSlice(documentID), sequence: 1)
    defer { if _slowPath(context.failure != nil) { try? context.check() } }
    if let condition, condition.truth(context) != .true { return [] }
    return columns.map { $0.evaluate(context).indexedText(context.arena) }
  }
}

extension QueryValue {
  /// The text that a full-text index takes words from.
  func indexedText(_ arena: EvaluationArena) -> UnsafeRawBufferPointer {
    switch self {
    case .string(let text): return text.bytes
    case .missing, .null, .data: return UnsafeRawBufferPointer(start: nil, count: 0)
    default:
      var bytes: [UInt8] = []
      appendText(to: &bytes, depth: 0)
      guard !bytes.isEmpty else { return UnsafeRawBufferPointer(start: nil, count: 0) }
      let memory = arena.allocate(bytes: bytes.count)
      bytes.withUnsafeBytes { memory.copyMemory(from: $0.baseAddress.unsafelyUnwrapped, byteCount: $0.count) }
      return UnsafeRawBufferPointer(start: memory, count: bytes.count)
    }
  }

  private func appendText(to bytes: inout [UInt8], depth: Int) {
    func separate() { if !bytes.isEmpty { bytes.append(0x20) } }
    switch self {
    case .missing, .null, .data: break
    case .string(let text):
      separate()
      bytes.append(contentsOf: text.utf8)
    case .bool(let value):
      separate()
      bytes.append(value ? 0x54 : 0x46)
    case .int, .uint, .double:
      separate()
      // A number always has a text.
      try? writeJSON(.empty, into: &bytes)
    case .array, .computedArray, .object, .computedObject:
      guard depth < FullTextExtractor.maximumDepth else { return }
      forEachItem { item in
        item.appendText(to: &bytes, depth: depth + 1)
        return true
      }
    }
  }
}
