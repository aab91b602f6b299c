import Storage

extension ConformanceSuite {
  static let concurrencyBehaviours: [Behaviour] = []
}
