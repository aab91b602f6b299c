enum TypeFunctions {
  static let table: [QueryFunction] = []
}
