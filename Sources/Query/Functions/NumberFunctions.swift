enum NumberFunctions {
  static let table: [QueryFunction] = []
}
