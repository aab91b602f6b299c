// libFuzzer's target for JSON in: what the parser accepts must validate, read back equal and stay canonical.

import Fleece
import FuzzDriver

nonisolated(unsafe) private let encoder = BodyEncoder()
nonisolated(unsafe) private let again = BodyEncoder()

@main enum FuzzJSON: FuzzTarget {
  static func test(_ input: UnsafeRawBufferPointer) {
    let keys = SharedKeysBuilder(.empty)
    do {
      try encoder.encode(json: input, keys: keys)
    } catch FleeceError.invalidJSON(let reason, nil) {
      preconditionFailure("an error without a place: \(reason)")
    } catch {
      return
    }
    do {
      try validate(encoder.fleece, sharedKeyCount: encoder.sharedKeyCount)
      let table = keys.snapshot()
      guard let root = FleeceReader.root(of: encoder.fleece) else { preconditionFailure("no root") }
      let written = try root.json(sharedKeys: table)
      precondition(
        encoder.canonicalJSON.elementsEqual(written.utf8), "the body's text is not the canonical one")
      let value = try JSONValue(json: input)
      let read = try root.jsonValue(sharedKeys: table)
      precondition(value == read, "the body is not the text's value")
      try again.encode(value, keys: keys)
      precondition(encoder.canonicalJSON.elementsEqual(again.canonicalJSON), "the value's text differs")
      precondition(encoder.fleece.elementsEqual(again.fleece), "the value's body differs")
      try again.encode(json: encoder.canonicalJSON, keys: keys)
      precondition(encoder.canonicalJSON.elementsEqual(again.canonicalJSON), "canonical text isn't stable")
    } catch {
      preconditionFailure("accepted, but: \(error)")
    }
  }
}
