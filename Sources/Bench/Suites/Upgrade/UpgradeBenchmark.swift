import BenchmarkKit
import Storage
import Touchstone

/// A benchmark of the suite `upgrade` with its parameters. It makes the runs on an engine and those of the
/// limit.
struct UpgradeBenchmark: Sendable {
  let kind: UpgradeWorkload
  let variant: UpgradeWorkload.Variant
  let data: UpgradeData
  let context: SuiteContext

  private var documents: Int {
    variant.revisions > 0 ? variant.revisions / variant.history : data.documents(variant).count
  }

  func workload() -> Workload {
    var parameters: Parameters = ["history": .integer(variant.history)]
    if kind == .memory {
      parameters = ["revisions": .integer(variant.revisions)]
    } else {
      parameters["attachments"] = .integer(variant.attachments)
      parameters["encrypted"] = .boolean(variant.isEncrypted)
      parameters["json_bytes"] = .integer(data.jsonBytes(variant))
    }
    return Workload(
      suite: "upgrade", name: kind.rawValue, summary: kind.summary, parameters: parameters,
      operations: documents,
      limit: limit, prepare: trial)
  }

  private var limit: Workload.Limit? {
    switch kind {
    case .upgrade:
      .init(
        name: { variant.attachments == 0 ? "\($0), insert-batch" : "\($0), insert-batch with attachments" },
        prepare: insertTrial)
    case .verify:
      .init(name: { "\($0), the upgrade" }) { trial in try upgradeTrial(trial, verifies: false) }
    case .memory: nil
    }
  }

  private func trial(_ trial: TrialContext) throws -> Trial {
    try upgradeTrial(trial, verifies: kind != .upgrade)
  }

  // MARK: Runs

  private func upgradeTrial(_ trial: TrialContext, verifies: Bool) throws -> Trial {
    let engine = try context.engine(trial.engine)
    let source = try data.source(variant)
    let key = try engine.options.key.map { try UserKey.raw($0) }
    var options = UpgradeOptions(verifies: verifies)
    if variant.isEncrypted { options.sourceKey = try .passphrase(UpgradeData.password) }
    let upgrade = options
    return Trial(
      run: {
        let report = try Database.upgrade(
          source, to: trial.directory + "/new", engine: EngineName(rawValue: trial.engine), key: key,
          options: upgrade)
        if report.documents.carried != documents || report.losses > 0 {
          throw RunMismatch(seen: report.documents.carried, expected: documents)
        }
        return kind == .verify && verifies ? .seconds(report.verificationSeconds) : .whole
      }, fileBytes: { try TrialDirectory.fileBytes(in: trial.directory) })
  }

  private func insertTrial(_ trial: TrialContext) throws -> Trial {
    let database = try context.open("inserted", try context.engine(trial.engine), in: trial.directory)
    let numbers = data.documents(variant)
    let ids = numbers.map { data.dataset.idText($0) }
    let old = data.settings(variant)
    let attachments = numbers.indices.map { old.document($0).revisions.first?.attachments.first?.number }
    return Trial(
      timing: {
        try database.inBatch {
          for (index, number) in numbers.enumerated() {
            guard let attachment = attachments[index] else {
              try database.save(ids[index], json: data.dataset.json(number))
              continue
            }
            let blob = try database.makeBlob(old.attachmentBytes(attachment))
            var json = Array(
              "{\"_attachments\":{\"photo.png\":{\"digest\":\"\(blob.digest.text)\",\"length\":\(blob.length)}},"
                .utf8)
            json += data.dataset.json(number).dropFirst()
            try json.withUnsafeBytes { _ = try database.save(ids[index], json: $0) }
          }
        }
      }, finish: { try database.close() })
  }
}
