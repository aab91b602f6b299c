/// What a workload is called: for people, and by which results are told apart.
struct WorkloadName {
  let suite: String
  let workload: String
  let parameters: Parameters

  /// The workload with its parameters: `fillseq (value_bytes=150)`.
  var label: String { parameters.isEmpty ? workload : "\(workload) (\(parameters.text))" }

  /// What a results file has once: `suite workload (parameters) on engine`.
  func identity(on engine: String) -> String { "\(suite) \(label) on \(engine)" }
}

extension Workload {
  private var fullName: WorkloadName { .init(suite: suite, workload: name, parameters: parameters) }

  /// Its name with its parameters: `fillseq (value_bytes=150)`.
  public var label: String { fullName.label }

  /// What a results file has once: `suite workload (parameters) on engine`.
  public func identity(_ engine: String) -> String { fullName.identity(on: engine) }
}

extension WorkloadResult {
  private var fullName: WorkloadName { .init(suite: suite, workload: workload, parameters: parameters) }

  /// The workload's name with its parameters: `fillseq (value_bytes=150)`.
  public var label: String { fullName.label }

  /// What a results file has once: `suite workload (parameters) on engine`.
  public var identity: String { fullName.identity(on: engine) }
}
