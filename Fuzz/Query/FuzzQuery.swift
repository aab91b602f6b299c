// libFuzzer's target for the parser of queries: what it accepts prints to text that is parsed to the same tree.

import Query

/// Parses one input; a trap or a report of the sanitizer is a finding.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzQuery(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
  let text = String(decoding: UnsafeBufferPointer(start: data, count: size), as: UTF8.self)
  let statement: Statement
  do { statement = try Statement(parsing: text) } catch {
    precondition(error.location != nil && !error.message.isEmpty, "an error without a place")
    return 0
  }
  let printed = statement.description
  do {
    let again = try Statement(parsing: printed)
    precondition(again == statement, "another tree: \(printed)")
    precondition(again.description == printed, "another text: \(printed)")
  } catch {
    // Parentheses that the text did without may be one level too many.
    precondition(error.code == .tooDeep, "what was printed isn't accepted: \(error)")
  }
  return 0
}

/// The entry point, which SwiftPM names after the target: libFuzzer's driver runs from here.
@_cdecl("fuzz_query_main")
public func fuzzMain(
  _ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
) -> CInt {
  var count = count
  var arguments = arguments
  return runDriver(&count, &arguments, fuzzQuery)
}

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ test: @convention(c) (UnsafePointer<UInt8>, Int) -> CInt
) -> CInt
