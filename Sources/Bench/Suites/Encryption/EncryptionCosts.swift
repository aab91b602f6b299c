import BenchmarkKit

/// The results of the suite: how much longer each operation takes with encryption than without.
enum EncryptionCosts {
  /// The plain engine with which an encrypting one is compared.
  private static func plain(_ engine: String) -> String? {
    if engine == "sqlcipher" { return "sqlcipher-plain" }
    return engine != "lmdb" && engine.contains("lmdb") ? "lmdb" : nil
  }

  /// Each encrypting engine, paired with its plain engine.
  static func pairs(_ engines: [String]) -> [Remarks.Pair] {
    engines.compactMap { engine in
      plain(engine).flatMap { engines.contains($0) ? Remarks.Pair(engine, over: $0) : nil }
    }
  }

  /// One line per encrypting engine and cache size.
  static func lines(_ results: [WorkloadResult]) -> [String] {
    let engines = results.engines
    var lines = [
      "Cache of pages, fixed: \(EncryptionCache.all.text), which holds all of the data of a default run, and "
        + "\(EncryptionCache.part.text), which doesn't. Both times the file is in the system's cache."
    ]
    for engine in engines {
      guard let plain = plain(engine), engines.contains(plain) else { continue }
      for cache in EncryptionCache.allCases {
        let costs = EncryptionWorkload.allCases.compactMap { kind -> String? in
          guard let encrypted = row(results, engine, kind, cache), let bare = row(results, plain, kind, cache)
          else { return nil }
          let found = Bootstrap.ratio(encrypted.metrics.seconds.samples, over: bare.metrics.seconds.samples)
          let more = (encrypted.secondsPerOperation - bare.secondsPerOperation) * 1e6
          return
            "\(kind.rawValue) \(Format.ratio(found.ratio))x (\(more < 0 ? "" : "+")\(Format.ratio(more)) µs)"
        }
        if !costs.isEmpty {
          lines.append("\(engine) over \(plain), cache \(cache.text): \(costs.joined(separator: ", "))")
        }
      }
    }
    return lines
  }

  private static func row(
    _ results: [WorkloadResult], _ engine: String, _ kind: EncryptionWorkload, _ cache: EncryptionCache
  ) -> WorkloadResult? {
    results.first {
      $0.engine == engine && $0.workload == kind.rawValue && $0.parameters["cache"] == .string(cache.text)
    }
  }
}
