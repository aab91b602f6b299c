import Documents
import Fleece

/// Extracts the texts of a document for a full-text index. Use it from one thread at a time.
final class FullTextExtractor {
  private let columns: [CompiledExpression]
  private let condition: CompiledExpression?
  private let context: EvaluationContext
  /// The maximum depth to which arrays and objects are searched for text.
  static let maximumDepth = 64

  init(_ definition: FullTextIndexDefinition) throws {
    // The same expressions can be indexed as in a value index.
    try ValueIndexDefinition(definition.expressions, where: definition.condition).checkExpressions()
    let program = EvaluationProgram()
    columns = try program.compile(definition.expressions, in: ValueIndexScope())
    condition = try definition.condition.map { try program.compile($0, in: ValueIndexScope()) }
    context = try EvaluationContext(program)
  }

  /// Sets the shared keys that the following bodies are read with.
  func begin(_ sharedKeys: SharedKeys) { context.begin(sharedKeys) }

  /// Frees the texts that were extracted before.
  func reset() { context.arena.reset() }

  /// The text of each column. Empty when the document isn't in the index. The texts are valid as long as the
  /// body, and until `reset`.
  func texts(_ documentID: UnsafeRawBufferPointer, _ body: UnsafeValue) -> [UnsafeRawBufferPointer] {
    context.rows[0] = SourceRow(value: QueryValue(body), id: TextSlice(documentID), sequence: 1)
    defer { if _slowPath(context.failure != nil) { try? context.check() } }
    if let condition, condition.truth(context) != .true { return [] }
    return columns.map { $0.evaluate(context).indexedText(context.arena) }
  }
}

extension QueryValue {
  /// The text whose words a full-text index contains.
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
      // Writing a number never fails.
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
