import BenchmarkKit

/// The remarks of the suite `sync`: ratios of rows of one run.
enum SyncNotes {
  static func lines(_ results: [WorkloadResult]) -> [String] {
    results.engines.flatMap { engine in
      let rows = results.filter { $0.engine == engine }
      return [rates(rows), indexes(rows), writer(rows), readers(rows)].compactMap { $0 }.map {
        "\(engine): \($0)"
      }
        + queries(rows).map { "\(engine): \($0)" }
    }
  }

  private static func row(_ rows: [WorkloadResult], _ kind: SyncWorkload, _ parameters: Parameters)
    -> WorkloadResult?
  {
    rows.first { $0.workload == kind.rawValue && $0.parameters == parameters }
  }

  private static func mixed(_ rows: [WorkloadResult], batch: Int, indexes: Int) -> WorkloadResult? {
    row(rows, .applyMixed, ["batch": .integer(batch), "indexes": .integer(indexes)])
  }

  private static func rates(_ rows: [WorkloadResult]) -> String? {
    let texts = SyncWorkload.batches.compactMap { batch in
      mixed(rows, batch: batch, indexes: 0).map {
        "\(Int(1 / $0.secondsPerOperation)) with \(batch) a transaction"
      }
    }
    return texts.isEmpty ? nil : "mixed revisions a second: \(texts.joined(separator: ", "))"
  }

  private static func indexes(_ rows: [WorkloadResult]) -> String? {
    guard let none = mixed(rows, batch: 200, indexes: 0) else { return nil }
    let texts = [1, 4].compactMap { indexes in
      mixed(rows, batch: 200, indexes: indexes).map {
        "\(text($0, over: none)) with \(indexes == 1 ? "one index" : "four")"
      }
    }
    return texts.isEmpty
      ? nil : "mixed revisions, 200 a transaction, take \(texts.joined(separator: " and ")) the time of none"
  }

  private static func writer(_ rows: [WorkloadResult]) -> String? {
    let texts = SyncWorkload.batches.compactMap { batch -> String? in
      guard let beside = row(rows, .applyBesideReader, ["batch": .integer(batch)]),
        let alone = mixed(rows, batch: batch, indexes: 0)
      else { return nil }
      return "\(text(beside, over: alone)) with \(batch) a transaction"
    }
    return texts.isEmpty ? nil : "beside a reader the same take \(texts.joined(separator: ", "))"
  }

  private static func readers(_ rows: [WorkloadResult]) -> String? {
    let texts = ([0] + SyncWorkload.batches).compactMap { batch -> String? in
      guard let row = row(rows, .readBesideApply, ["batch": .integer(batch)]),
        let median = row.metrics[.latencyP50], let high = row.metrics[.latencyP99],
        let longest = row.metrics[.latencyMax]
      else { return nil }
      let times = [median, high, longest].map { microseconds($0.median) }.joined(separator: " / ")
      return "\(times) \(batch == 0 ? "alone" : "beside \(batch) a transaction")"
    }
    return texts.isEmpty ? nil : "a read's p50 / p99 / max in µs: \(texts.joined(separator: ", "))"
  }

  private static func queries(_ rows: [WorkloadResult]) -> [String] {
    ["value", "none"].compactMap { index in
      let found = SyncWorkload.queries.compactMap { row(rows, $0, ["index": .string(index)]) }
      guard found.count == 3 else { return nil }
      // All three come from the same runs.
      let ratios = found.dropFirst().map {
        Bootstrap.ratio(found[0].metrics.seconds.samples, over: $0.metrics.seconds.samples)
      }
      return
        "\(index == "value" ? "by an index" : "without one"), the first query after a large apply takes "
        + "\(Format.ratio(ratios[0])) the time of the second, and "
        + "\(Format.ratio(ratios[1])) that of the first after the database was opened again"
    }
  }

  private static func text(_ new: WorkloadResult, over old: WorkloadResult) -> String {
    let scale = Double(old.operations) / Double(new.operations)
    let found = Bootstrap.unpairedRatio(new.metrics.seconds.samples, over: old.metrics.seconds.samples)
    return Format.ratio(
      (found.ratio * scale, (found.interval.lowerBound * scale)...(found.interval.upperBound * scale)))
  }

  private static func microseconds(_ seconds: Double) -> String {
    let micros = seconds * 1e6
    return micros < 10 ? "\((micros * 10).rounded() / 10)" : "\(Int(micros.rounded()))"
  }
}
