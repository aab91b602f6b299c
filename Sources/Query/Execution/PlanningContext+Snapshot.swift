import Documents
import Fleece

extension PlanningContext {
  /// What a snapshot tells the planner.
  init(_ snapshot: DocumentSnapshot, usesIndexes: Bool) throws {
    self.init(documentCount: try snapshot.documentCount, indexes: [], usesIndexes: usesIndexes)
  }
}

extension DocumentSnapshot {
  /// Changes whenever plans made before may be wrong.
  var planGeneration: UInt64 { get throws { UInt64(try indexGeneration) } }
}
