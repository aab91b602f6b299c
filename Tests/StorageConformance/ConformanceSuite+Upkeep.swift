import Storage

extension ConformanceSuite {
  static let upkeepBehaviours: [Behaviour] = []
}
