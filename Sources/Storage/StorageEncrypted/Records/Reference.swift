// How a record is named:
//
//   reference := number:u64 seal      32 bytes, little-endian (RecordFormat)

/// The number of a record and its seal.
struct Reference: Equatable {
  static let byteCount = 32

  var number: UInt64
  var seal: Seal

  @inline(__always)
  init(number: UInt64, seal: Seal) {
    self.number = number
    self.seal = seal
  }

  @inline(__always)
  init(_ bytes: UnsafeRawPointer) {
    number = UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
    seal = Seal(bytes + 8)
  }

  @inline(__always)
  func write(to bytes: UnsafeMutableRawPointer) {
    bytes.storeBytes(of: number.littleEndian, as: UInt64.self)
    seal.write(to: bytes + 8)
  }
}
