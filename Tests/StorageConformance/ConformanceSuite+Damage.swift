import Storage

extension ConformanceSuite {
  static let damageBehaviours: [Behaviour] = []
}
