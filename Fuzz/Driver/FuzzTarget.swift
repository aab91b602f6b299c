// What every fuzz target needs beside its test: the function that libFuzzer calls, and the entry point.

/// A program that libFuzzer drives. The type that is `@main` in a fuzz target conforms.
public protocol FuzzTarget {
  /// Takes one input, which lives for the call; a trap or a report of the sanitizer is a finding.
  static func test(_ input: UnsafeRawBufferPointer)
}

extension FuzzTarget {
  /// Hands the arguments and the test to libFuzzer's driver.
  public static func main() {
    currentTest = { Self.test($0) }
    var count = CommandLine.argc
    var arguments = CommandLine.unsafeArgv
    _ = runDriver(&count, &arguments, testOneInput)
  }
}

/// The test of this program; set once, before libFuzzer starts.
nonisolated(unsafe) private var currentTest: (UnsafeRawBufferPointer) -> Void = { _ in }

/// What libFuzzer calls by name.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
  currentTest(UnsafeRawBufferPointer(start: data, count: size))
  return 0
}

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ test: @convention(c) (UnsafePointer<UInt8>, Int) -> CInt
) -> CInt
