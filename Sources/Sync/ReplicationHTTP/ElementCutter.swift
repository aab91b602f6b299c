import Fleece
import Replication

/// Cuts the items of one array out of JSON text that arrives in pieces of any size. It keeps one item at most, and what is
/// outside of the array.
///
///   {"results": [item, item, …], "last_seq": …}        the array is the member of that name
///   [item, item, …]                                    without a name, it is the whole text
///
/// It checks only what it needs: whoever takes an item parses it.
struct ElementCutter {
  /// The most bytes outside of the array.
  static let maximumRestBytes = 64 << 10

  private let name: [UInt8]?
  private let maximumItemBytes: Int
  private var depth = 0
  private var isString = false
  private var isEscaped = false
  /// The last string at the depth of the members, to find the name.
  private var lastString: [UInt8] = []
  private var isInArray = false
  private var hasArray = false
  private var arrayDepth = 0
  private var isInItem = false
  private var item: [UInt8] = []
  private var rest: [UInt8] = []

  init(name: String?, maximumItemBytes: Int) {
    self.name = name.map { Array($0.utf8) }
    self.maximumItemBytes = maximumItemBytes
  }

  /// Takes the next bytes. Calls `handle` with each item that is whole; its bytes are valid until that returns.
  mutating func take(_ bytes: UnsafeRawBufferPointer, _ handle: (UnsafeRawBufferPointer) throws -> Void)
    throws
  {
    var index = 0
    while index < bytes.count {
      guard isInArray else {
        try takeOutside(bytes[index])
        index += 1
        continue
      }
      if !isInItem {
        switch bytes[index] {
        case 0x20, 0x0A, 0x0D, 0x09, UInt8(ascii: ","): index += 1
        case UInt8(ascii: "]"):
          isInArray = false
          try takeOutside(bytes[index])
          index += 1
        default: isInItem = true
        }
        continue
      }
      let start = index
      let isWhole = scanItem(bytes, &index)
      let part = UnsafeRawBufferPointer(rebasing: bytes[start..<index])
      guard part.count <= maximumItemBytes - item.count else {
        throw ReplicationError.malformed("an item of an answer has more than \(maximumItemBytes) bytes")
      }
      guard isWhole else {
        item.append(contentsOf: part)
        return
      }
      isInItem = false
      if item.isEmpty {
        try handle(part)
      } else {
        item.append(contentsOf: part)
        try item.withUnsafeBytes { try handle($0) }
        item.removeAll(keepingCapacity: item.capacity <= 1 << 20)
      }
    }
  }

  /// The text has ended. Returns what was outside of the array, which is empty there. Throws if it isn't whole.
  func finish() throws -> JSONValue {
    guard hasArray, !isInArray, depth == 0, !isString else {
      throw ReplicationError.malformed("an answer isn't whole, or no list")
    }
    guard let value = rest.withUnsafeBytes({ try? JSONValue(json: $0) }) else {
      throw ReplicationError.malformed("an answer isn't JSON")
    }
    return value
  }

  private mutating func takeOutside(_ byte: UInt8) throws {
    guard rest.count < Self.maximumRestBytes else {
      throw ReplicationError.malformed("an answer has too long members")
    }
    rest.append(byte)
    if isString {
      if isEscaped {
        isEscaped = false
      } else if byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if byte == UInt8(ascii: "\"") {
        isString = false
        return
      }
      if depth == 1 { lastString.append(byte) }
      return
    }
    switch byte {
    case UInt8(ascii: "\""):
      isString = true
      if depth == 1 { lastString = [] }
    case UInt8(ascii: "{"): depth += 1
    case UInt8(ascii: "["):
      if !hasArray, name.map({ depth == 1 && $0 == lastString }) ?? (depth == 0) {
        hasArray = true
        isInArray = true
        arrayDepth = depth + 1
      }
      depth += 1
    case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
    default: break
    }
  }

  /// Moves the index to the end of the item, or of the bytes. Returns whether the item has ended.
  private mutating func scanItem(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) -> Bool {
    var (index, depth, isString, isEscaped) = (position, depth, isString, isEscaped)
    let arrayDepth = arrayDepth
    defer { (position, self.depth, self.isString, self.isEscaped) = (index, depth, isString, isEscaped) }
    while index < bytes.count {
      let byte = bytes[index]
      if isString {
        index &+= 1
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isString = false
          if depth == arrayDepth { return true }
        }
        continue
      }
      switch byte {
      case UInt8(ascii: "\""): isString = true
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth &+= 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        // The end of the array behind a number.
        if depth == arrayDepth { return true }
        depth &-= 1
        if depth == arrayDepth {
          index &+= 1
          return true
        }
      case UInt8(ascii: ","), 0x20, 0x0A, 0x0D, 0x09: if depth == arrayDepth { return true }
      default: break
      }
      index &+= 1
    }
    return false
  }
}

extension ReplicationError {
  /// The server's answer can't be read.
  static func malformed(_ reason: String) -> ReplicationError {
    ReplicationError(.network, NetworkCode.unknown.rawValue, reason)
  }
  static let connectionEnded = ReplicationError(.webSocket, 1001, "the connection has ended")
}
