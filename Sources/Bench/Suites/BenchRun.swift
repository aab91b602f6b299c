import BenchmarkKit
import Datasets
import Fleece
import FoundationEssentials
import Storage

/// Runs suites and makes a results file.
public struct BenchRun {
  private let settings: BenchSettings
  private let version: String

  /// A run with these settings. `version` is the project's version in the results file, `0.1.0+gitrev`.
  public init(_ settings: BenchSettings, version: String) {
    self.settings = settings
    self.version = version
  }

  /// Runs `suites` one after another and returns their results. The databases are in a temporary directory in
  /// the work directory. It is removed at the end, also after an error.
  ///
  /// Throws `Runner.Failure`, `Runner.Interrupted`, `DatasetError` or `StorageError`.
  public func run(
    _ suites: [Suite], progress: @escaping (Runner.Progress) -> Void = { _ in },
    shouldStop: @escaping () -> Bool = { false }
  ) throws -> ResultsFile {
    let started = ResultsFile.timestamp(Date())
    let directory = try TrialDirectory(in: settings.workDirectory)
    defer { directory.remove() }
    let server = try settings.location.map { try BenchServer($0) }
    defer { try? server?.removeAll() }
    var engines: [String: ProbedEngine] = [:]
    for suite in suites {
      for type in suite.engines(settings) {
        guard type.server == nil || suite.runsOnServers else {
          throw StorageError(
            .invalidArgument,
            "the suite \(suite.name) runs on engines with files only, and not on the engine \(type.name)")
        }
        guard engines[type.name] == nil else { continue }
        engines[type.name] = try ProbedEngine(
          type, durability: settings.durability, cacheBytes: settings.cacheBytes,
          workDirectory: directory.path, server: server)
      }
    }
    let dataset = suites.contains { $0.usesDataset } ? try loadDataset() : nil
    let fixtures = Fixtures(in: directory.path)
    let context = SuiteContext(settings: settings, engines: engines, fixtures: fixtures, dataset: dataset)
    let runner = Runner(
      .init(
        sampling: settings.sampling, seed: settings.seed, workDirectory: directory.path,
        evictsCaches: settings.evictsCaches,
        plantedDelay: settings.plantedDelay.map { delay in
          { workload, engine, seconds in delay.run(workload.identity(engine), seconds: seconds) }
        }, progress: progress, shouldStop: shouldStop))
    let watch = MachineWatch(seed: settings.seed)
    var results: [WorkloadResult] = []
    for suite in suites {
      let workloads = try suite.workloads(context).filter { settings.only?.contains($0.name) ?? true }
      results += try runner.run(workloads, engines: suite.subjects(settings))
      fixtures.removeAll()
    }
    var descriptions = engines.mapValues(description)
    for peer in suites.flatMap(\.peers) {
      descriptions[peer.name] = try peer.description(settings)
    }
    return ResultsFile(
      touchstone: version, started: started, machine: .current(directory: directory.path),
      engines: descriptions,
      dataset: dataset.map {
        .init(name: $0.name, documents: $0.count, jsonBytes: $0.jsonBytes, sha256: $0.sha256)
      },
      conditions: watch.conditions(),
      ownWork: suites.contains { $0.name == Suite.mine.name } ? settings.mine.description : nil,
      results: results)
  }

  private func loadDataset() throws -> LoadedDataset {
    let name = settings.dataset ?? KnownDatasets.standard().name
    if CBLite2Dataset.isNamed(name) { return try CBLite2Dataset.load(name, documents: settings.documents) }
    let dataset = try LoadedDataset.load(
      name, documents: settings.documents, seed: settings.seed, idProperty: settings.idProperty)
    // The known ones are compared with their checksums.
    if KnownDatasets.dataset(named: name) == nil { try checkDocuments(dataset) }
    return dataset
  }

  /// Throws a `DatasetError` for a line that can't be saved as a document. A run would end with an error that doesn't name
  /// the line.
  private func checkDocuments(_ dataset: LoadedDataset) throws {
    for index in 0..<dataset.count {
      let body: JSONValue
      do { body = try JSONValue(json: dataset.json(index)) } catch {
        throw dataset.fault(index, "it is not a JSON object: \(error)")
      }
      // A run doesn't write them, as `import` does for documents of others.
      if let name = body.object?.keys.first(where: {
        $0.utf8.first == UInt8(ascii: "_") && $0 != "_attachments"
      }) {
        throw dataset.fault(
          index, "names of top-level properties can't begin with an underscore; rename '\(name.prefix(300))'")
      }
      let id = dataset.id(index)
      guard id.first != UInt8(ascii: "_") else {
        throw dataset.fault(
          index,
          "the ID \(String(decoding: id.prefix(300), as: UTF8.self)) begins with an underscore; give it another \(settings.idProperty ?? "_id")"
        )
      }
    }
  }

  private func description(_ engine: ProbedEngine) -> ResultsFile.EngineDescription {
    var described = ["durability": settings.durability.rawValue]
    for (name, value) in engine.settings { described[name] = value }
    return .init(library: engine.library, settings: described)
  }
}
