// Reads all that can be read of bytes that may be damaged; what matters is that it returns.

import Fleece

func touchEverything(_ bytes: [UInt8], _ keys: SharedKeys) {
  bytes.withUnsafeBytes { bytes in
    try? validate(bytes, sharedKeyCount: keys.count)
    guard let root = FleeceReader.root(of: bytes) else { return }
    var budget = 10_000
    touch(root, keys, 0, &budget)
    _ = try? root.jsonValue(sharedKeys: keys)
    _ = try? root.json(sharedKeys: keys)
    _ = try? root.json(sharedKeys: keys, canonical: false)
    for name in ["name1", "name2", "a", ""] { _ = root.value(of: name, sharedKeys: keys)?.string }
  }
}

private func touch(_ value: UnsafeValue, _ keys: SharedKeys, _ depth: Int, _ budget: inout Int) {
  budget -= 1
  guard budget > 0, depth < 200 else { return }
  _ = (value.bool, value.int, value.uint, value.double, value.count, value.isNull)
  if let utf8 = value.utf8 { _ = utf8.reduce(0, &+) }
  if let data = value.data { _ = data.reduce(0, &+) }
  _ = value.string
  for item in value.items { touch(item, keys, depth + 1, &budget) }
  for entry in value.entries {
    _ = entry.name(in: keys)
    touch(entry.value, keys, depth + 1, &budget)
  }
  for index in [-1, 0, 1, 2046, 2047, Int.max] { _ = value[index]?.type }
}
