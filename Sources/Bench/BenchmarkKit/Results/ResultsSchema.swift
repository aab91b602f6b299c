import Fleece
import FoundationEssentials

/// Checks a results file against its schema, on the JSON itself and not on this project's types.
package enum ResultsSchema {
  /// Returns all faults of a results file, one line each: where and what. Empty if it follows schema 1.
  /// Unknown members are allowed.
  package static func faults(in data: Data) -> [String] {
    guard let file = (try? data.withUnsafeBytes { try JSONValue(json: $0) })?.object else {
      return ["it is not a JSON object"]
    }
    var check = Check()
    check.file(file)
    return check.faults
  }

  private struct Check {
    var faults: [String] = []

    mutating func file(_ file: JSONObject) {
      let schema = number(file, "schema", "")
      if let schema, schema != Double(ResultsFile.currentSchema) {
        faults.append("schema: it is \(schema), this is \(ResultsFile.currentSchema)")
      }
      _ = string(file, "touchstone", "")
      if let started = string(file, "started", ""),
        started.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/) == nil
      {
        faults.append("started: '\(started)' isn't a time in UTC, such as 2026-11-20T10:00:00Z")
      }
      if let machine = object(file, "machine", "") {
        for name in ["cpu", "os", "filesystem"] { _ = string(machine, name, "machine.") }
        for name in ["cores", "memory_bytes"] { _ = count(machine, name, "machine.") }
      }
      let engines = object(file, "engines", "") ?? JSONObject()
      for (name, value) in engines.sorted(by: { $0.key < $1.key }) {
        guard let engine = value.object else {
          faults.append("engines.\(name): it is not an object")
          continue
        }
        _ = string(engine, "library", "engines.\(name).")
        _ = object(engine, "settings", "engines.\(name).")
      }
      if file["dataset"] != nil, let dataset = object(file, "dataset", "") {
        _ = string(dataset, "name", "dataset.")
        for name in ["documents", "json_bytes"] { _ = count(dataset, name, "dataset.") }
        if let digest = string(dataset, "sha256", "dataset."), digest.wholeMatch(of: /[0-9a-f]{64}/) == nil {
          faults.append("dataset.sha256: '\(digest)' is not 64 digits of lower-case hex")
        }
      }
      if file["conditions"] != nil, let conditions = object(file, "conditions", "") {
        for name in ["seed", "steal_share"] { _ = number(conditions, name, "conditions.") }
        for name in ["calibration_seconds", "load"] {
          guard let ends = object(conditions, name, "conditions.") else { continue }
          for end in ["start", "end"] { _ = number(ends, end, "conditions.\(name).") }
        }
      }
      guard let results = file["results"]?.array else {
        faults.append("results: it is missing or not an array")
        return
      }
      var identities: Set<String> = []
      for (index, value) in results.enumerated() {
        let place = "results[\(index)]."
        guard let result = value.object else {
          faults.append("results[\(index)]: it is not an object")
          continue
        }
        if let identity = self.result(result, place, engines), !identities.insert(identity).inserted {
          faults.append("\(place.dropLast()): \(identity) occurs twice")
        }
      }
    }

    /// Checks one result, and returns the identity that must be unique in the file.
    private mutating func result(
      _ result: JSONObject, _ place: String, _ engines: JSONObject
    ) -> String? {
      let suite = string(result, "suite", place)
      let workload = string(result, "workload", place)
      let engine = string(result, "engine", place)
      if let engine, engines[engine] == nil {
        faults.append("\(place)engine: '\(engine)' isn't one of the engines")
      }
      let parameters = object(result, "parameters", place)
      if let operations = count(result, "operations", place), operations < 1 {
        faults.append("\(place)operations: the number isn't positive")
      }
      var medianSeconds: Double?
      if let metrics = object(result, "metrics", place) {
        var counts: Set<Int> = []
        for known in Metric.allCases where known.isRequired || metrics[known.rawValue] != nil {
          let name = known.rawValue
          guard let metric = object(metrics, name, "\(place)metrics.") else { continue }
          if let found = distribution(metric, "\(place)metrics.\(name).") {
            // Allocations are counted in an extra run.
            if known != .allocations { counts.insert(found.count) }
            if name == "seconds" { medianSeconds = found.median }
          }
        }
        if counts.count > 1 { faults.append("\(place)metrics: they have different numbers of samples") }
      }
      if result["series"] != nil { series(result, place) }
      if result["instructions"] != nil, let counts = object(result, "instructions", place) {
        _ = count(counts, "run", "\(place)instructions.")
        if counts["limit"] != nil { _ = count(counts, "limit", "\(place)instructions.") }
      }
      if result["limit"] != nil, let limit = object(result, "limit", place) {
        _ = string(limit, "name", "\(place)limit.")
        let normalized = number(limit, "normalized", "\(place)limit.")
        if limit["cpu_seconds"] != nil, let cpu = object(limit, "cpu_seconds", "\(place)limit.") {
          _ = distribution(cpu, "\(place)limit.cpu_seconds.")
        }
        if let seconds = object(limit, "seconds", "\(place)limit."),
          let median = number(seconds, "median", "\(place)limit.seconds."), let normalized, let medianSeconds,
          median > 0, abs(normalized * median / medianSeconds - 1) > 1e-6
        {
          faults.append("\(place)limit.normalized: it is not the ratio of the medians")
        }
      }
      guard let suite, let workload, let engine, let parameters else { return nil }
      let text = parameters.sorted { $0.key < $1.key }.map {
        "\($0.key)=\($0.value.string ?? $0.value.description)"
      }
      return "\(suite) \(workload) \(engine) {\(text.joined(separator: ", "))}"
    }

    /// Checks the time series of version 1. Readers leave out those of other versions.
    private mutating func series(_ result: JSONObject, _ place: String) {
      guard let all = result["series"]?.array else {
        faults.append("\(place)series: it is not an array")
        return
      }
      for (index, value) in all.enumerated() {
        let place = "\(place)series[\(index)]."
        guard let series = value.object, let version = count(series, "version", place) else {
          faults.append("\(place.dropLast()): it is not an object with a version")
          continue
        }
        guard version == TimeSeries.currentVersion else { continue }
        if let interval = number(series, "interval_seconds", place), interval <= 0 {
          faults.append("\(place)interval_seconds: the number isn't positive")
        }
        let columns = object(series, "columns", place) ?? JSONObject()
        let activity =
          series["activity"] == nil ? JSONObject() : object(series, "activity", place) ?? JSONObject()
        let lengths = (columns.values + activity.values).map { numbers($0)?.count ?? 0 }
        if columns.isEmpty || Set(lengths).count != 1 || lengths[0] == 0 {
          faults.append("\(place)columns: they are missing, or not arrays of as many numbers")
        }
      }
    }

    private mutating func distribution(
      _ metric: JSONObject, _ place: String
    ) -> (count: Int, median: Double)? {
      guard let values = numbers(metric["samples"]), !values.isEmpty else {
        faults.append("\(place)samples: it is missing, empty, or not an array of numbers")
        return nil
      }
      let median = number(metric, "median", place)
      let p95 = number(metric, "p95", place)
      let p99 = number(metric, "p99", place)
      if let median, let p95, let p99, !(median <= p95 && p95 <= p99 && p99 <= (values.max() ?? 0)) {
        faults.append("\(place.dropLast()): median, p95, p99 and the greatest sample are out of order")
      }
      let interval = numbers(metric["ci95"])
      if let interval, interval.count == 2 {
        if let median, !(interval[0] <= median && median <= interval[1]) {
          faults.append("\(place)ci95: the median is outside")
        }
      } else {
        faults.append("\(place)ci95: it is missing or not two numbers")
      }
      return median.map { (values.count, $0) }
    }

    /// The numbers of an array; nil if it is anything else, or has anything else.
    private func numbers(_ value: JSONValue?) -> [Double]? {
      guard let items = value?.array else { return nil }
      let numbers = items.compactMap(\.double)
      return numbers.count == items.count ? numbers : nil
    }

    private mutating func string(_ object: JSONObject, _ name: String, _ place: String) -> String? {
      if let value = object[name]?.string, !value.isEmpty { return value }
      faults.append("\(place)\(name): it is missing, empty, or not a string")
      return nil
    }

    private mutating func number(_ object: JSONObject, _ name: String, _ place: String) -> Double? {
      if let value = object[name]?.double { return value }
      faults.append("\(place)\(name): it is missing or not a number")
      return nil
    }

    private mutating func count(_ object: JSONObject, _ name: String, _ place: String) -> Int? {
      guard let value = number(object, name, place) else { return nil }
      if let count = Int(exactly: value), count >= 0 { return count }
      faults.append("\(place)\(name): \(value) is not a count")
      return nil
    }

    private mutating func object(_ object: JSONObject, _ name: String, _ place: String) -> JSONObject? {
      if let value = object[name]?.object { return value }
      faults.append("\(place)\(name): it is missing or not an object")
      return nil
    }
  }
}
