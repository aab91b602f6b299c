import Bytes
import Fleece
import CCrypto
import Storage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

//   partial   := 00  (gap:varint  value:u8)*          registers that aren't 0; gap from the register after the last
//              | 01  1024 bytes                       all registers, four bits each, the first in the low bits
//
// The second form is used from 512 registers that aren't 0.

/// CouchDB's `_approx_count_distinct`: about how many different keys there are, by HyperLogLog.
///
/// 2,048 registers of the SHA-1 of each key's external form (ExternalTerm.swift) give the counts that CouchDB
/// gives while some registers are 0 and the count is at most 1,800. Above that up to 10,240 CouchDB corrects the
/// estimate by a table of measurements. Here the correction is computed: the estimate's expected value is known
/// for every count.
struct DistinctKeysReducer: Reducer {
  var identity: String { "_approx_count_distinct 1" }
  var canRereduce: Bool { true }
  func makeReduction() throws -> any Reduction { try DistinctKeysReduction() }
}

private final class DistinctKeysReduction: Reduction {
  static let registerCount = 2048
  static let registerBits = 11
  /// The greatest value of a register: 11 bits are looked at.
  static let maximumValue: UInt8 = 12
  /// The count from which linear counting is left.
  static let linearLimit = 1800.0

  private var registers = [UInt8](repeating: 0, count: registerCount)
  private var term = ByteBuffer(capacity: 256)
  private let context: OpaquePointer

  init() throws {
    guard let context = EVP_MD_CTX_new() else {
      throw StorageError(.engineFailure, "libcrypto can't create a digest context")
    }
    self.context = context
  }

  deinit { EVP_MD_CTX_free(context) }

  func reset() {
    for index in registers.indices { registers[index] = 0 }
  }

  /// The register of a key and its value.
  private func place(of row: borrowing StoredRow) throws -> (index: Int, value: UInt8) {
    term.removeAll(keepingAtMost: 1 << 16)
    try row.keyJSON.withUnsafeBytes { json in
      var scanner = JSONScanner(json)
      try ExternalTerm.append(&scanner, to: &term)
    }
    let head = try withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digest -> UInt32 in
      guard EVP_DigestInit_ex(context, EVP_sha1(), nil) == 1,
        EVP_DigestUpdate(context, term.base, term.count) == 1,
        EVP_DigestFinal_ex(context, digest.baseAddress, nil) == 1
      else { throw StorageError(.engineFailure, "SHA-1 failed in libcrypto") }
      return UInt32(digest[0]) << 24 | UInt32(digest[1]) << 16 | UInt32(digest[2]) << 8 | UInt32(digest[3])
    }
    let zeros = min((head << 11).leadingZeroBitCount, DistinctKeysReduction.registerBits)
    return (Int(head >> 21), UInt8(zeros + 1))
  }

  func add(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws {
    let (index, value) = try place(of: row)
    registers[index] = max(registers[index], value)
  }

  func insert(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws -> Bool {
    try add(row, expanding: expanding)
    return true
  }

  func remove(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws -> Bool {
    let (index, value) = try place(of: row)
    return registers[index] > value
  }

  func merge(_ partial: RawSpan) throws {
    var reader = ByteReader(partial)
    guard let form = reader.byte(), form <= 1 else { throw ViewReduceError.damaged }
    if form == 1 {
      guard reader.rest.byteCount == registers.count / 2 else { throw ViewReduceError.damaged }
      for index in 0..<registers.count / 2 {
        let pair = reader.rest.unsafeLoad(fromByteOffset: index, as: UInt8.self)
        guard max(pair & 15, pair >> 4) <= DistinctKeysReduction.maximumValue else {
          throw ViewReduceError.damaged
        }
        registers[2 * index] = max(registers[2 * index], pair & 15)
        registers[2 * index + 1] = max(registers[2 * index + 1], pair >> 4)
      }
      return
    }
    var index = 0
    while let gap = reader.varint() {
      guard gap < UInt64(registers.count - index), let value = reader.byte(),
        value > 0, value <= DistinctKeysReduction.maximumValue
      else { throw ViewReduceError.damaged }
      index += Int(gap)
      registers[index] = max(registers[index], value)
      index += 1
    }
    guard reader.rest.byteCount == 0 else { throw ViewReduceError.damaged }
  }

  func write(to partial: inout ByteBuffer) {
    let used = registers.reduce(0) { $0 + ($1 == 0 ? 0 : 1) }
    if used >= 512 {
      partial.append(1)
      for index in 0..<registers.count / 2 {
        partial.append(registers[2 * index] | registers[2 * index + 1] << 4)
      }
      return
    }
    partial.append(0)
    var next = 0
    for (index, value) in registers.enumerated() where value > 0 {
      partial.append(varint: UInt64(index - next))
      partial.append(value)
      next = index + 1
    }
  }

  func result(to json: inout [UInt8]) {
    json.append(contentsOf: String(Int(estimate.rounded())).utf8)
  }

  private var estimate: Double {
    let count = Double(registers.count)
    var zeros = 0
    var sum = 0.0
    for value in registers {
      if value == 0 { zeros += 1 }
      sum += Double(sign: .plus, exponent: -Int(value), significand: 1)
    }
    if zeros > 0 {
      let linear = count * log(count / Double(zeros))
      if linear <= DistinctKeysReduction.linearLimit { return linear }
    }
    let raw = DistinctKeysReduction.alpha * count * count / sum
    let corrected = raw <= 5 * count ? DistinctKeysReduction.count(ofEstimate: raw) : raw
    // As in CouchDB, a corrected estimate below the limit stays.
    return corrected
  }

  private static let alpha = 0.7213 / (1 + 1.079 / Double(registerCount))

  /// The number of keys whose expected estimate is `raw`.
  private static func count(ofEstimate raw: Double) -> Double {
    var low = 0.0
    var high = 6 * Double(registerCount)
    for _ in 0..<60 {
      let middle = (low + high) / 2
      if expectedEstimate(middle) < raw { low = middle } else { high = middle }
    }
    return low
  }

  /// The estimate from the expected sum of 2^-register, when every register gets Poisson's number of keys.
  private static func expectedEstimate(_ keys: Double) -> Double {
    let rate = keys / Double(registerCount)
    var sum = exp(-rate)
    var below = sum
    for value in 1...Int(maximumValue) {
      // A register is at most `value` if no key of it has more: each has more with 2^-value.
      let atMost =
        value == Int(maximumValue) ? 1 : exp(-rate * Double(sign: .plus, exponent: -value, significand: 1))
      sum += (atMost - below) * Double(sign: .plus, exponent: -value, significand: 1)
      below = atMost
    }
    return alpha * Double(registerCount) / sum
  }
}
