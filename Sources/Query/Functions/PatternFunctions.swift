enum PatternFunctions {
  static let table: [QueryFunction] = []
}
