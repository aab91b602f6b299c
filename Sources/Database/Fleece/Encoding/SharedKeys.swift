// The table of property names that bodies refer to by number.
//
// Persistent form: a Fleece array of strings. The number of a name is its index.

import Synchronization

/// An immutable table of shared keys, numbered in order of first use.
///
/// A body needs a table with at least as many names as its encoder's `sharedKeyCount`. Tables only grow, so a
/// longer table of the same database also works. Instances are safe to use from any thread.
@usableFromInline package final class SharedKeys: @unchecked Sendable {
  /// A table without names.
  package static let empty = SharedKeys(taking: KeyTable(capacity: 0))

  let table: KeyTable

  init(taking table: KeyTable) {
    self.table = table
    count = table.count
  }

  deinit {
    table.free()
    sortedPlaces.load(ordering: .acquiring)?.deallocate()
  }

  /// The number of names, 0...2048.
  package let count: Int

  /// What `places` has made.
  private let sortedPlaces = Atomic<UnsafeMutablePointer<UInt16>?>(nil)

  /// The place of each name among all names in the order of their bytes, by number. It is made when the first text with sorted
  /// members is written, and is valid for the lifetime of the table.
  var places: UnsafePointer<UInt16> {
    UnsafePointer(sortedPlaces.load(ordering: .acquiring) ?? makePlaces())
  }

  @inline(never)
  private func makePlaces() -> UnsafeMutablePointer<UInt16> {
    let numbers = (0..<count).sorted { left, right in
      let (left, right) = (table.names[left], table.names[right])
      // Names have no zeros, so that zeros behind a shorter name put it first.
      return left.low == right.low
        ? left.high.byteSwapped < right.high.byteSwapped : left.low.byteSwapped < right.low.byteSwapped
    }
    let places = UnsafeMutablePointer<UInt16>.allocate(capacity: max(count, 1))
    for (place, number) in numbers.enumerated() { places[number] = UInt16(place) }
    let (isStored, other) = sortedPlaces.compareExchange(
      expected: nil, desired: places, ordering: .acquiringAndReleasing)
    guard !isStored, let other else { return places }
    places.deallocate()
    return other
  }

  /// Creates a table with these names in this order.
  ///
  /// - Throws: `FleeceError.invalidSharedKeys` if there are more than 2048 names, if a name occurs twice, or
  ///   if a name isn't eligible (at most 16 bytes of `A-Z a-z 0-9 _ -`).
  package convenience init(keys: [String]) throws(FleeceError) {
    var table = KeyTable(capacity: min(keys.count, FleeceLimits.sharedKeys))
    var failure: FleeceError?
    for var key in keys where failure == nil {
      failure = key.withUTF8 { SharedKeys.append($0, to: &table) }
    }
    if let failure {
      table.free()
      throw failure
    }
    self.init(taking: table)
  }

  /// Reads the persistent form: a Fleece array of strings. All bytes are checked.
  ///
  /// - Throws: `FleeceError.invalidFleece`, or `.invalidSharedKeys` if the names can't be shared keys.
  package convenience init(fleece: UnsafeRawBufferPointer) throws(FleeceError) {
    guard let root = FleeceReader.root(of: fleece), root.type == .array else {
      throw .invalidFleece(reason: "a shared key table must be an array of strings", offset: 0)
    }
    var table = KeyTable(capacity: min(root.count, FleeceLimits.sharedKeys))
    for item in root.items {
      let failure =
        item.utf8.map { SharedKeys.append($0.assumingMemoryBound(to: UInt8.self), to: &table) }
        ?? .invalidSharedKeys(reason: "name \(table.count) is not a string")
      if let failure {
        table.free()
        throw failure
      }
    }
    self.init(taking: table)
  }

  private static func append(_ name: UnsafeBufferPointer<UInt8>, to table: inout KeyTable) -> FleeceError? {
    guard table.count < FleeceLimits.sharedKeys else {
      return .invalidSharedKeys(reason: "more than \(FleeceLimits.sharedKeys) names")
    }
    guard KeyTable.isEligible(name) else {
      return .invalidSharedKeys(
        reason: "name \(table.count) has over 16 bytes or other characters than A-Z a-z 0-9 _ -")
    }
    let short = ShortName(exactly: name)
    guard table.find(short, length: name.count) < 0 else {
      return .invalidSharedKeys(
        reason: "name \(table.count), \"\(String(decoding: name, as: UTF8.self))\", occurs twice")
    }
    _ = table.add(short, length: name.count)
    return nil
  }

  /// Returns the persistent form: a Fleece array of the names.
  package func encoded() -> [UInt8] {
    let encoder = BodyEncoder()
    let names = (0..<count).map { JSONValue.string(String(decoding: table.utf8(of: $0), as: UTF8.self)) }
    do {
      try encoder.encode(.array(names), keys: SharedKeysBuilder(.empty))
    } catch {
      preconditionFailure("an array of 2048 short strings always has an encoding: \(error)")
    }
    return Array(encoder.fleece)
  }

  /// Returns the number of a name, or nil if the table doesn't have it.
  package func number(of name: String) -> Int? {
    var name = name
    let number = name.withUTF8 { self.number(of: $0) }
    return number < 0 ? nil : number
  }

  /// Returns the number of a name, or -1 if the table doesn't have it.
  func number(of utf8: UnsafeBufferPointer<UInt8>) -> Int {
    utf8.count > FleeceLimits.sharedKeyLength
      ? -1 : table.find(ShortName(exactly: utf8), length: utf8.count)
  }

  /// Returns the name of a number, or nil if the table doesn't have it.
  package func name(of number: Int) -> String? {
    utf8(of: number).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Returns whether all numbers that both tables have stand for the same names.
  package func agrees(with other: SharedKeys) -> Bool {
    if self === other { return true }
    return (0..<min(count, other.count)).allSatisfy { number in
      table.utf8(of: number).elementsEqual(other.table.utf8(of: number))
    }
  }

  /// Returns the UTF-8 bytes of a number's name, or nil if the table doesn't have it. The bytes are valid for
  /// the lifetime of the table. They need no escapes in JSON.
  package func utf8(of number: Int) -> UnsafeRawBufferPointer? {
    guard number >= 0, number < count else { return nil }
    return UnsafeRawBufferPointer(table.utf8(of: number))
  }
}
