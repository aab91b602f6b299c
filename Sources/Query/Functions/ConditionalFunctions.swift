enum ConditionalFunctions {
  static let table: [QueryFunction] = []
}
