/// The name of a workload: a label for people, and an identity for results.
struct WorkloadName {
  let suite: String
  let workload: String
  let parameters: Parameters

  /// The workload with its parameters: `fillseq (value_bytes=150)`.
  var label: String { parameters.isEmpty ? workload : "\(workload) (\(parameters.text))" }

  /// The identity of a result, unique in a results file: `suite workload (parameters) on engine`.
  func identity(on engine: String) -> String { "\(suite) \(label) on \(engine)" }
}

extension Workload {
  private var fullName: WorkloadName { .init(suite: suite, workload: name, parameters: parameters) }

  /// The name with the parameters: `fillseq (value_bytes=150)`.
  package var label: String { fullName.label }

  /// The identity of a result, unique in a results file: `suite workload (parameters) on engine`.
  package func identity(_ engine: String) -> String { fullName.identity(on: engine) }
}

extension WorkloadResult {
  private var fullName: WorkloadName { .init(suite: suite, workload: workload, parameters: parameters) }

  /// The workload's name with its parameters: `fillseq (value_bytes=150)`.
  public var label: String { fullName.label }

  /// The identity of the result, unique in a results file: `suite workload (parameters) on engine`.
  public var identity: String { fullName.identity(on: engine) }
}
