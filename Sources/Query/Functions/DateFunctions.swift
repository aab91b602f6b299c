enum DateFunctions {
  static let table: [QueryFunction] = []
}
