// The encoder's public API. It takes JSON text or a JSONValue and returns the Fleece body and the canonical
// JSON.

/// Encodes values to Fleece and canonical JSON in one pass.
///
/// Reuse one encoder for many documents: when its buffers are large enough, it allocates nothing. For one
/// thread at a time.
package final class BodyEncoder {
  private let pass: UnsafeMutablePointer<EncodingPass>
  private let parser = JSONParser()
  private var builder = JSONTapeBuilder()

  /// Creates an encoder with empty results.
  package init() {
    pass = .allocate(capacity: 1)
    pass.initialize(to: EncodingPass())
  }

  deinit {
    pass.deinitialize(count: 1)
    pass.deallocate()
  }

  /// Encodes a JSON text. Eligible property names become shared keys in `keys`.
  ///
  /// If several members have the same name, the last one wins. Integers beyond 64 bits become doubles. The
  /// top-level value can be of any type. Without canonical JSON, encoding is faster: applying pulled
  /// revisions takes an eighth fewer instructions.
  /// - Throws: `FleeceError.invalidJSON` with the offset of the fault, `.tooDeep`, `.tooLarge`,
  ///   `.outOfMemory`. After an error, `keys` is unchanged and the results are empty.
  package func encode(json: UnsafeRawBufferPointer, keys: SharedKeysBuilder, withCanonicalJSON: Bool = true)
    throws(FleeceError)
  {
    pass.pointee.clear()
    try run(parser.parse(json), keys, withCanonicalJSON)
  }

  /// Encodes a value. Eligible property names become shared keys in `keys`.
  ///
  /// - Throws: `FleeceError.notFinite`, `.tooDeep`, `.tooLarge`. After an error, `keys` is unchanged and the
  ///   results are empty.
  package func encode(_ value: JSONValue, keys: SharedKeysBuilder, withCanonicalJSON: Bool = true)
    throws(FleeceError)
  {
    pass.pointee.clear()
    try run(builder.build(value), keys, withCanonicalJSON)
  }

  /// Encodes a stored body with other values at some paths, none of which lies within another one. The result is the same as
  /// that of its changed `JSONValue`.
  ///
  /// - Returns: false when the body isn't as `encode` writes them, or is damaged. The results are empty then.
  /// - Throws: `FleeceError.notFinite`, `.tooDeep`, `.tooLarge`. After an error, `keys` is unchanged and the
  ///   results are empty.
  package func encode(
    _ root: UnsafeValue, sharedKeys: SharedKeys, changing changes: [BodyChange], keys: SharedKeysBuilder
  ) throws(FleeceError) -> Bool {
    pass.pointee.clear()
    guard let tape = try builder.build(root, sharedKeys, changes) else { return false }
    try run(tape, keys, true)
    return true
  }

  /// Encodes a value of a body that uses another table of shared keys. Eligible property names become shared
  /// keys in `keys`. Every part of the source is checked.
  ///
  /// Afterwards `canonicalJSON` is empty, and `isObject` and `underscoredName` aren't set.
  /// - Throws: the errors of `Value.writeJSON`. After an error, `keys` is unchanged and the results are
  ///   empty.
  package func transcode(_ value: UnsafeValue, sharedKeys: SharedKeys, keys: SharedKeysBuilder)
    throws(FleeceError)
  {
    pass.pointee.clear()
    let count = keys.count
    var source = TranscodingSource(value, sharedKeys.table)
    do throws(FleeceError) {
      try pass.pointee.transcode(value, &source, keys: keys.state)
    } catch {
      keys.rollBack(to: count)
      pass.pointee.clear()
      throw error
    }
  }

  /// Takes a body as it is, whose numbers of shared keys mean the same here. All its bytes are checked.
  ///
  /// `sharedKeyCount` is the number of those keys. Afterwards `canonicalJSON` is empty, and `isObject` and
  /// `underscoredName` aren't set.
  /// - Throws: the errors of `validate`. After an error the results are empty.
  package func copy(_ body: UnsafeRawBufferPointer, sharedKeyCount: Int) throws(FleeceError) {
    pass.pointee.clear()
    guard body.count <= FleeceLimits.body else { throw .tooLarge(limit: FleeceLimits.body) }
    try validate(body, sharedKeyCount: sharedKeyCount)
    pass.pointee.copy(body, sharedKeyCount: sharedKeyCount)
  }

  private func run(_ tape: JSONTape, _ keys: SharedKeysBuilder, _ writesText: Bool) throws(FleeceError) {
    let count = keys.count
    do throws(FleeceError) {
      if writesText {
        try pass.pointee.encode(tape, keys: keys.state, CanonicalText.self)
      } else {
        try pass.pointee.encode(tape, keys: keys.state, NoText.self)
      }
    } catch {
      keys.rollBack(to: count)
      pass.pointee.clear()
      throw error
    }
  }

  /// Increases with each value. A view of the results compares it to detect that they were replaced.
  package var encodings: UInt64 { pass.pointee.encodings }

  /// The Fleece body of the last value. Valid until another value is encoded.
  package var fleece: UnsafeRawBufferPointer { pass.pointee.out.bytes }

  /// The canonical JSON of the last value. Valid until another value is encoded.
  ///
  /// - Precondition: the last value wasn't encoded with `withCanonicalJSON: false`.
  package var canonicalJSON: UnsafeRawBufferPointer {
    precondition(pass.pointee.hasText, "the last body was encoded without its canonical JSON")
    return pass.pointee.json.bytes
  }

  /// The highest shared key number in the last body plus one, or 0 if it uses none. A reader needs a table
  /// with at least this many names. A copied body may need fewer.
  package var sharedKeyCount: Int { pass.pointee.highestKey + 1 }

  /// Whether the last value was an object. A document must be an object.
  package var isObject: Bool { pass.pointee.isObject }

  /// The first top-level name of the last value that begins with an underscore, or nil. Databases reserve
  /// such names.
  package var underscoredName: String? {
    pass.pointee.underscoredName.map { String(decoding: $0, as: UTF8.self) }
  }
}
