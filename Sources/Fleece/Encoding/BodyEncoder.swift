// The encoder's public face: JSON or a JSONValue in; the Fleece body and the canonical JSON out.

/// Encodes values to Fleece and canonical JSON in one pass.
///
/// Reuse one for many documents: in the steady state nothing is allocated. For one thread at a time.
public final class BodyEncoder {
  private let pass: UnsafeMutablePointer<EncodingPass>
  private let parser = JSONParser()
  private var builder: JSONTapeBuilder

  /// An encoder with empty results.
  public init() {
    pass = .allocate(capacity: 1)
    pass.initialize(to: EncodingPass())
    builder = JSONTapeBuilder()
  }

  deinit {
    pass.pointee.free()
    pass.deallocate()
    builder.free()
  }

  /// Encodes a JSON text; eligible property names become shared keys in `keys`. Without its canonical JSON a body takes less
  /// time: applying pulled revisions an eighth of its instructions.
  ///
  /// Of members with one name the last wins. Integers beyond 64 bits become doubles. Any value may be at the top.
  /// - Throws: `FleeceError.invalidJSON` with the offset of the fault, `.tooDeep`, `.tooLarge`; `keys` are then
  ///   as before, and the results are empty.
  public func encode(json: UnsafeRawBufferPointer, keys: SharedKeysBuilder, withCanonicalJSON: Bool = true)
    throws(FleeceError)
  {
    pass.pointee.clear()
    try run(parser.parse(json), keys, withCanonicalJSON)
  }

  /// Encodes a value; eligible property names become shared keys in `keys`.
  ///
  /// - Throws: `FleeceError.notFinite`, `.tooDeep`, `.tooLarge`; `keys` are then as before, and the results are
  ///   empty.
  public func encode(_ value: JSONValue, keys: SharedKeysBuilder, withCanonicalJSON: Bool = true)
    throws(FleeceError)
  {
    pass.pointee.clear()
    try run(builder.build(value), keys, withCanonicalJSON)
  }

  /// Encodes a value that lies in a body by another table of shared keys; eligible property names become shared keys in
  /// `keys`. The source is trusted in nothing.
  ///
  /// `canonicalJSON` is empty then, and `isObject` and `underscoredName` say nothing.
  /// - Throws: as `Value.writeJSON`; `keys` are then as before, and the results are empty.
  public func transcode(_ value: UnsafeValue, sharedKeys: SharedKeys, keys: SharedKeysBuilder)
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

  /// The Fleece body of the last value, valid until the next call of `encode`.
  public var fleece: UnsafeRawBufferPointer { pass.pointee.out.bytes }

  /// The canonical JSON of the last value, valid until the next call of `encode`. Not to be asked for when that call was made
  /// without.
  public var canonicalJSON: UnsafeRawBufferPointer {
    precondition(pass.pointee.hasText, "the last body was encoded without its canonical JSON")
    return pass.pointee.json.bytes
  }

  /// One more than the highest shared key number in the last body, 0 when it uses none: a reader needs a table
  /// at least this long.
  public var sharedKeyCount: Int { pass.pointee.highestKey + 1 }

  /// Whether the last value was an object, which is what a document must be.
  public var isObject: Bool { pass.pointee.isObject }

  /// The first top-level name of the last value that begins with an underscore, nil when there is none: the
  /// names that databases keep for themselves do.
  public var underscoredName: String? {
    pass.pointee.underscoredName.map { String(decoding: $0, as: UTF8.self) }
  }
}
