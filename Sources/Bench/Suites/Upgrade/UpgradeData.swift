import BenchmarkKit
import Datasets
import Storage
import Touchstone

/// The databases that the suite upgrades. They are all made before the clock runs.
final class UpgradeData: Sendable {
  let dataset: LoadedDataset
  private let context: SuiteContext

  static let password = "letmein"

  init(_ dataset: LoadedDataset, _ context: SuiteContext) {
    self.dataset = dataset
    self.context = context
  }

  /// The documents of a variant, by their numbers in the data set. With longer histories there are fewer
  /// documents, so that the number of revisions is the same, except in long runs.
  func documents(_ variant: UpgradeWorkload.Variant) -> [Int] {
    let count = dataset.count / (UpgradeWorkload.isLong ? 1 : variant.history)
    return (0..<max(1, count)).map { $0 * dataset.count / max(1, count) }
  }

  /// The size of all revisions' JSON, in bytes.
  func jsonBytes(_ variant: UpgradeWorkload.Variant) -> Int {
    documents(variant).reduce(0) { $0 + dataset.json($1).count } * variant.history
  }

  /// The path of the old database, in a fixture that all engines read.
  func source(_ variant: UpgradeWorkload.Variant) throws -> String {
    let settings = settings(variant)
    let directory = try context.fixtures.directory("upgrade \(variant)") { directory in
      _ = try LegacyDatabaseMaker(settings).make("old", in: directory)
    }
    return directory + "/old.cblite2"
  }

  /// The settings of the old database.
  func settings(_ variant: UpgradeWorkload.Variant) -> LegacyDatabase {
    var old = LegacyDatabase()
    old.history = variant.history
    old.attachmentBytes = 2_000
    old.seed = context.settings.seed
    if variant.revisions > 0 {
      old.documents = variant.revisions / variant.history
    } else {
      let (dataset, numbers) = (dataset, documents(variant))
      old.documents = numbers.count
      old.attachments = variant.attachments
      if variant.isEncrypted { old.key = LegacyDatabase.key(password: Self.password, platform: .ios) }
      old.documentID = { dataset.idText(numbers[$0]) }
      old.body = { document, revision in
        var body = Array("{\"rev\":\(revision),".utf8)
        body += dataset.json(numbers[document]).dropFirst()
        return body
      }
    }
    return old
  }
}
