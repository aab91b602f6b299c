// libFuzzer's target for JSON in: what the parser accepts must validate, read back equal and stay canonical.

import Fleece

nonisolated(unsafe) private let encoder = BodyEncoder()
nonisolated(unsafe) private let again = BodyEncoder()

/// Parses one input; a trap or a report of the sanitizer is a finding.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzJSON(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
  let text = UnsafeRawBufferPointer(start: data, count: size)
  let keys = SharedKeysBuilder(.empty)
  do {
    try encoder.encode(json: text, keys: keys)
  } catch FleeceError.invalidJSON(let reason, nil) {
    preconditionFailure("an error without a place: \(reason)")
  } catch {
    return 0
  }
  do {
    try validate(encoder.fleece, sharedKeyCount: encoder.sharedKeyCount)
    let table = keys.snapshot()
    guard let root = FleeceReader.root(of: encoder.fleece) else { preconditionFailure("no root") }
    let written = try root.json(sharedKeys: table)
    precondition(
      encoder.canonicalJSON.elementsEqual(written.utf8), "the body's text is not the canonical one")
    let value = try JSONValue(json: text)
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
  return 0
}

/// The entry point, which SwiftPM names after the target: libFuzzer's driver runs from here.
@_cdecl("fuzz_json_main")
public func fuzzMain(
  _ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
) -> CInt {
  var count = count
  var arguments = arguments
  return runDriver(&count, &arguments, fuzzJSON)
}

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ test: @convention(c) (UnsafePointer<UInt8>, Int) -> CInt
) -> CInt
