// The process that the tests of conversions start beside their own, and kill.
//
//   conversion-child [limit BYTES] [map BYTES] COMMAND …
//
//   limit        no file can become larger: a full disk
//   map          the size of LMDB's map
//   hold PATH    opens, prints "open", and waits until it is killed
//   convert PATH ENGINE · rekey PATH · rotate PATH · encrypt PATH · decrypt PATH · copy SOURCE PATH
//                prints "begun", does it, prints "done"
//
// The old key is 32 bytes of 7, the new one 32 of 8.

import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

func say(_ text: String) {
  let bytes = Array((text + "\n").utf8)
  _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
}

func run(_ arguments: [String]) throws {
  let key = try UserKey.raw([UInt8](repeating: 7, count: 32))
  let newKey = try UserKey.raw([UInt8](repeating: 8, count: 32))
  var words = arguments[...]
  if words.first == "limit" {
    signal(SIGXFSZ, SIG_IGN)
    let bytes = rlim_t(words[words.startIndex + 1]) ?? 0
    var limit = rlimit(rlim_cur: bytes, rlim_max: bytes)
    setrlimit(__rlimit_resource_t(1), &limit)
    words = words.dropFirst(2)
  }
  if words.first == "map" {
    setenv("TOUCHSTONE_LMDB_MAP_BYTES", words[words.startIndex + 1], 1)
    words = words.dropFirst(2)
  }
  let command = words.removeFirst()
  let path = words.removeFirst()
  if command == "hold" {
    var options = DatabaseOptions(creation: .openExisting)
    if try Database.isEncrypted(path) { options.key = key }
    let database = try Database.open(path, options: options)
    say("open")
    while true { pause() }
    _ = database
  }
  say("begun")
  switch command {
  case "convert":
    let engine = EngineName(rawValue: words.removeFirst())
    try Database.convert(path, to: engine, key: key)
  case "rekey": try Database.rekey(path, key: key, newKey: newKey)
  case "rotate": try Database.rotateKey(path, key: key, newKey: newKey)
  case "encrypt": try Database.encrypt(path, key: newKey)
  case "decrypt": try Database.decrypt(path, key: key)
  case "copy": try Database.copy(path, to: words.removeFirst(), key: key)
  default: throw DatabaseError(.notFound, "there is no command \(command)")
  }
  say("done")
}

do { try run(Array(CommandLine.arguments.dropFirst())) } catch {
  let code = (error as? StorageError)?.code.rawValue ?? (error as? DatabaseError)?.code.rawValue ?? "?"
  say("failed \(code): \(error)")
  exit(1)
}
