import Storage

extension ConformanceSuite {
  static let fileBehaviours: [Behaviour] = []
}
