import StorageConformance
import StorageSQLite
import Testing

/// The shared suite over this family, without what needs processes of its own.
struct SQLiteConformanceTests {
  static let subjects: [ConformanceSuite.Subject] = [
    .init(engine: SQLiteEngines.sqlite),
    .init(engine: SQLiteEngines.sqlcipher, plainCounterpart: SQLiteEngines.sqlcipherPlain),
    .init(engine: SQLiteEngines.sqlcipherPlain),
  ]

  struct Case: CustomTestStringConvertible, Sendable {
    let subject: ConformanceSuite.Subject
    let behaviour: ConformanceSuite.Behaviour
    var testDescription: String { "\(subject.engine.name): \(behaviour.name)" }
  }

  static let cases = ConformanceSuite.behaviours.flatMap { behaviour in
    subjects.map { Case(subject: $0, behaviour: behaviour) }
  }

  @Test(arguments: cases)
  func holds(_ conformanceCase: Case) throws {
    let directory = try TemporaryDirectory()
    let suite = ConformanceSuite(
      subject: conformanceCase.subject, directory: directory.path, childPath: nil)
    try suite.run(conformanceCase.behaviour)
  }
}
