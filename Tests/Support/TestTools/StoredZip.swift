// A zip file whose entries are stored as they are (APPNOTE 6.3): made here, so that names and bytes can be wrong.
//
//   file    := (header name bytes)* (entry name)* end
//   header  := "PK\3\4" version:u16 flags:u16 method:u16=0 time:u32 crc:u32 size:u32 size:u32 nameLength:u16 extra:u16=0
//   entry   := "PK\1\2" version:u16 then as in the header from there, comment:u16 disk:u16 internal:u16 external:u32 offset:u32
//   end     := "PK\5\6" 0:u32 entries:u16 entries:u16 size of all entries:u32 their offset:u32 0:u16

import Foundation

/// Returns a zip file of these files.
package func storedZip(_ files: [(name: String, contents: [UInt8])]) -> Data {
  var data = Data()
  var directory = Data()
  func append(_ value: Int, bytes: Int, to data: inout Data) {
    for shift in 0..<bytes { data.append(UInt8(truncatingIfNeeded: value >> (8 * shift))) }
  }
  for (name, contents) in files {
    let offset = data.count
    var common = Data()
    append(20, bytes: 2, to: &common)
    append(0, bytes: 4, to: &common)
    append(0x0021_0000, bytes: 4, to: &common)
    append(Int(crc32(contents)), bytes: 4, to: &common)
    append(contents.count, bytes: 4, to: &common)
    append(contents.count, bytes: 4, to: &common)
    append(name.utf8.count, bytes: 2, to: &common)
    append(0, bytes: 2, to: &common)
    data += Data([0x50, 0x4B, 3, 4]) + common + Data(name.utf8) + Data(contents)
    directory += Data([0x50, 0x4B, 1, 2, 20, 0]) + common
    append(0, bytes: 10, to: &directory)
    append(offset, bytes: 4, to: &directory)
    directory += Data(name.utf8)
  }
  let offset = data.count
  data += directory + Data([0x50, 0x4B, 5, 6, 0, 0, 0, 0])
  append(files.count, bytes: 2, to: &data)
  append(files.count, bytes: 2, to: &data)
  append(directory.count, bytes: 4, to: &data)
  append(offset, bytes: 4, to: &data)
  append(0, bytes: 2, to: &data)
  return data
}

private let crcTable: [UInt32] = (0..<256).map { byte in
  (0..<8).reduce(UInt32(byte)) { value, _ in value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1 }
}

private func crc32(_ bytes: [UInt8]) -> UInt32 {
  ~bytes.reduce(~UInt32(0)) { $0 >> 8 ^ crcTable[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] }
}
