/// The stack frame around a run, which tells `InstructionCounter` what to count.
enum MeasuredRegion {
  /// The name of the function in the executable.
  static let symbol = "touchstone_measured_region"

  fileprivate final class Call {
    var body: () -> Void
    init(_ body: @escaping () -> Void) { self.body = body }
  }

  /// Calls `body` inside the frame.
  static func run<Result>(_ body: () throws -> Result) throws -> Result {
    try withoutActuallyEscaping(body) { body in
      var result: Swift.Result<Result, any Error>?
      let call = Call { result = Swift.Result { try body() } }
      measuredRegion(call)
      // The closure holds `body`, which must not escape this call.
      call.body = {}
      guard let result else { throw NotRun() }
      return try result.get()
    }
  }

  private struct NotRun: Error {}
}

@_silgen_name("touchstone_measured_region")
@inline(never)
private func measuredRegion(_ call: MeasuredRegion.Call) { call.body() }
