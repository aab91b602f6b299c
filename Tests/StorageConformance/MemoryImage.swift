import Foundation
import Storage

/// The file that a `MemoryEngine` writes when it is closed. A copy of the file is a copy of the store.
///
///     image  = tables:u64 (number:u64 name shape:u8 records:u64 (key value)*)* lastNumber:u64
///     name, key, value = length:u64 bytes          integers little-endian; shape 0 entries, 1 sequences
enum MemoryImage {
  static func write(_ state: MemoryState, to path: String) throws {
    var data = Data()
    func append(_ number: Int) {
      withUnsafeBytes(of: UInt64(number).littleEndian) { data.append(contentsOf: $0) }
    }
    func append(bytes: UnsafeRawBufferPointer) {
      append(bytes.count)
      data.append(contentsOf: bytes)
    }
    append(state.tables.count)
    for (number, table) in state.tables {
      append(number)
      Array(table.name.utf8).withUnsafeBytes { append(bytes: $0) }
      data.append(table.shape == .sequences ? 1 : 0)
      append(table.records.count)
      for record in table.records {
        append(bytes: record.key)
        append(bytes: record.value)
      }
    }
    append(state.lastNumber)
    try data.write(to: URL(fileURLWithPath: path), options: .atomic)
  }

  /// Returns nil if there is no file. Throws `damaged` if the file isn't a valid image.
  static func read(_ path: String) throws -> MemoryState? {
    guard let data = FileManager.default.contents(atPath: path) else { return nil }
    var place = 0
    func bytes(_ count: Int) throws -> ArraySlice<UInt8> {
      guard count >= 0, count <= data.count - place else {
        throw StorageError(.damaged, "the store's image ends at \(data.count)", path: path)
      }
      defer { place += count }
      return ArraySlice(data[place..<(place + count)])
    }
    func number() throws -> Int {
      Int(truncatingIfNeeded: try bytes(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
    func field() throws -> ArraySlice<UInt8> { try bytes(try number()) }
    var state = MemoryState()
    for _ in 0..<max(0, try number()) {
      let tableNumber = try number()
      let name = String(decoding: try field(), as: UTF8.self)
      var table = MemoryTable(name: name, shape: try bytes(1).first == 1 ? .sequences : .entries)
      for _ in 0..<max(0, try number()) {
        let (key, value) = (try field(), try field())
        table.records.append(
          key.withUnsafeBytes { key in value.withUnsafeBytes { MemoryRecord(key: key, value: $0) } })
      }
      state.tables[tableNumber] = table
      state.numbers[name] = tableNumber
    }
    state.lastNumber = try number()
    return state
  }
}
