enum ArrayFunctions {
  static let table: [QueryFunction] = []
}
