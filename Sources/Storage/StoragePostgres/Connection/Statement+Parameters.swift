import CPostgres
import Glibc

extension Statement {
  /// Whether a connection that only reads has the statement.
  var isForReading: Bool {
    switch self {
    case .state, .keyspaces, .count, .get, .getMany, .ascending, .descending, .ascendingKeys,
      .descendingKeys, .isKeyspace, .blobNames, .blobFiles, .blob, .blobPiece, .isBlob:
      true
    default: false
    }
  }

  /// Calls `body` with the parameters as libpq takes them. libpq copies them before it returns.
  func withParameters<Result>(
    _ parameters: [Parameter],
    _ body: (
      _ values: UnsafePointer<UnsafePointer<CChar>?>?, _ lengths: UnsafePointer<Int32>?,
      _ formats: UnsafePointer<Int32>?
    ) -> Result
  ) -> Result {
    let types = types
    // Integers and texts lie here while libpq copies them.
    var scratch: [UInt8] = []
    for (index, parameter) in parameters.enumerated() {
      switch parameter {
      case .integer(let number):
        let width = Statement.width(types[index])
        withUnsafeBytes(of: Int64(number).bigEndian) { scratch.append(contentsOf: $0.suffix(width)) }
      case .text(let text): scratch.append(contentsOf: text.utf8)
      case .bytes, .array: break
      }
    }
    return scratch.withUnsafeBytes { scratch in
      Self.withPointers(parameters, types, scratch, index: 0, offset: 0, pointers: []) { pointers in
        let values: [UnsafePointer<CChar>?] = pointers.map {
          $0.baseAddress?.assumingMemoryBound(to: CChar.self) ?? Self.empty
        }
        let lengths = pointers.map { Int32($0.count) }
        let formats = [Int32](repeating: 1, count: pointers.count)
        return body(values, lengths, formats)
      }
    }
  }

  /// A pointer to no bytes. A null pointer would be NULL.
  private nonisolated(unsafe) static let empty = UnsafePointer<CChar>(
    UnsafeMutablePointer<CChar>.allocate(capacity: 1))

  /// Collects the pointers of all parameters. It calls itself because the bytes of an array are valid in a closure only.
  private static func withPointers<Result>(
    _ parameters: [Parameter], _ types: [Oid], _ scratch: UnsafeRawBufferPointer, index: Int, offset: Int,
    pointers: [UnsafeRawBufferPointer], _ body: ([UnsafeRawBufferPointer]) -> Result
  ) -> Result {
    guard index < parameters.count else { return body(pointers) }
    func go(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> Result {
      withPointers(
        parameters, types, scratch, index: index + 1, offset: offset, pointers: pointers + [bytes], body)
    }
    switch parameters[index] {
    case .integer:
      let width = Statement.width(types[index])
      return go(UnsafeRawBufferPointer(rebasing: scratch[offset..<(offset + width)]), offset + width)
    case .text(let text):
      let end = offset + text.utf8.count
      return go(UnsafeRawBufferPointer(rebasing: scratch[offset..<end]), end)
    case .bytes(let bytes): return go(bytes, offset)
    case .array(let array): return array.bytes.withUnsafeBytes { go($0, offset) }
    }
  }
}
