import Storage

extension ConformanceSuite {
  static let encryptionBehaviours: [Behaviour] = []
}
