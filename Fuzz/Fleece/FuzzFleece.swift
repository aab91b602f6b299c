// libFuzzer's target for the reader: bytes that nobody vouches for are read in every way there is.
//
// The first byte chooses how many shared keys the reader knows; the rest is the body.

import Fleece
import FuzzDriver

private let tables: [SharedKeys] = [0, 1, 8, 64].compactMap { count in
  try? SharedKeys(keys: (0..<count).map { "key\($0)" })
}

@main enum FuzzFleece: FuzzTarget {
  static func test(_ input: UnsafeRawBufferPointer) {
    guard let choice = input.first else { return }
    let keys = tables[Int(choice) % tables.count]
    // A copy of just this size, so that the sanitizer sees a read of one byte too many.
    let body = UnsafeMutableRawBufferPointer.allocate(byteCount: input.count - 1, alignment: 2)
    defer { body.deallocate() }
    body.copyMemory(from: UnsafeRawBufferPointer(rebasing: input.dropFirst()))
    let bytes = UnsafeRawBufferPointer(body)

    let isValid = (try? validate(bytes, sharedKeyCount: keys.count)) != nil
    _ = try? SharedKeys(fleece: bytes)
    guard let root = FleeceReader.root(of: bytes) else {
      precondition(!isValid, "validation accepted what has no root")
      return
    }
    var budget = 20_000
    walk(root, keys, 0, &budget)
    let value = try? root.jsonValue(sharedKeys: keys)
    let text = try? root.json(sharedKeys: keys)
    _ = try? root.json(sharedKeys: keys, canonical: false)
    if isValid {
      do {
        _ = try root.json(sharedKeys: keys)
      } catch FleeceError.tooLarge {
      } catch {
        preconditionFailure("valid, but: \(error)")
      }
    }
    if let value, let text, isValid {
      // What was read can be written, and is the same again.
      let encoder = BodyEncoder()
      let builder = SharedKeysBuilder(keys)
      do {
        try encoder.encode(value, keys: builder)
      } catch {
        preconditionFailure("a value that was read can't be encoded: \(error)")
      }
      precondition(encoder.canonicalJSON.elementsEqual(text.utf8), "the canonical forms differ")
    }
  }
}

private func walk(_ value: UnsafeValue, _ keys: SharedKeys, _ depth: Int, _ budget: inout Int) {
  budget -= 1
  guard budget > 0, depth < 250 else { return }
  _ = (value.type, value.bool, value.int, value.uint, value.double, value.count, value.isNull, value.string)
  _ = value.data?.reduce(0, &+)
  for item in value.items { walk(item, keys, depth + 1, &budget) }
  for entry in value.entries {
    if let name = entry.name(in: keys) { _ = value.value(of: name, sharedKeys: keys)?.type }
    walk(entry.value, keys, depth + 1, &budget)
  }
  for index in [-1, 0, 1, 2047, Int.max] { _ = value[index]?.type }
  _ = value.value(of: "key1", sharedKeys: keys)?.type
}
