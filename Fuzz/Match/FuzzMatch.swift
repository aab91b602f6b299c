// libFuzzer's target for the language of MATCH: what it accepts prints to text that is parsed to the same, and what it
// finds in the text itself can be shown. The first byte chooses the analysis.

import FullText

private let columns = ["title", "a.b", "name with blanks"]

/// Parses one input; a trap or a report of the sanitizer is a finding.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMatch(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
  guard size > 0 else { return 0 }
  let choice = Int(data[0])
  let text = String(decoding: UnsafeBufferPointer(start: data + 1, count: size - 1), as: UTF8.self)
  let languages = FullTextLanguage.allCases
  let ignoresAccents = choice & 1 != 0
  let language = choice & 2 != 0 ? languages[choice >> 2 & 15] : nil
  do {
    let analyzer = try TextAnalyzer(.init(language: language, ignoresAccents: ignoresAccents))
    let query: MatchQuery
    do { query = try MatchQuery(parsing: text, columns: columns, analyzer: analyzer) } catch {
      precondition(
        error.offset >= 0 && error.offset <= text.utf8.count && error.column > 0, "no place: \(error)")
      return 0
    }
    let highlighter = Highlighter(query, analyzer: analyzer)
    // Bytes that may be ill-formed.
    let bytes = UnsafeRawBufferPointer(start: data + 1, count: size - 1)
    for hit in highlighter.hits(in: [bytes, bytes]) {
      precondition(
        hit.start >= 0 && hit.length > 0 && hit.start + hit.length <= bytes.count, "a hit outside: \(hit)")
    }
    _ = highlighter.snippet(of: [bytes], words: 3)

    guard language == nil else { return 0 }
    let printed = query.description
    do {
      let again = try MatchQuery(parsing: printed, columns: columns, analyzer: analyzer)
      // What has no spaces between words may fall apart otherwise when it stands alone.
      let isPlain = text.unicodeScalars.allSatisfy { $0.value < 0x0E00 }
      precondition(again == query || !isPlain, "another query: \(printed), \(again)")
    } catch {
      precondition(error.code != .syntax, "what was printed isn't accepted: \(printed): \(error)")
    }
  } catch {
    preconditionFailure("\(error)")
  }
  return 0
}

/// The entry point, which SwiftPM names after the target: libFuzzer's driver runs from here.
@_cdecl("fuzz_match_main")
public func fuzzMain(
  _ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
) -> CInt {
  var count = count
  var arguments = arguments
  return runDriver(&count, &arguments, fuzzMatch)
}

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ test: @convention(c) (UnsafePointer<UInt8>, Int) -> CInt
) -> CInt
