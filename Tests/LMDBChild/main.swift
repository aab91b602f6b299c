// What the tests of the LMDB engine do in a process of its own. It has one thread, so that it can fork.
// The exit status is 0 when all went as it should.

import Glibc
import Storage
import StorageLMDB

func open(_ path: String) throws -> any StorageEngine {
  try LMDBEngines.lmdb.open(path, EngineOptions(durability: .none))
}

func code(_ body: () throws -> Void) throws -> StorageError.Code? {
  do {
    try body()
    return nil
  } catch let error as StorageError {
    return error.code
  }
}

/// `fork PATH`: a child of this process can use nothing of its parent's engine, and can open the path anew.
func forks(_ path: String) throws -> Int32 {
  let engine = try open(path)
  let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
  guard let symbol = dlsym(nil, "fork") else { return 10 }
  typealias Fork = @convention(c) () -> Int32
  let child = unsafeBitCast(symbol, to: Fork.self)()
  // At once: what the child has of its parent's engine stays as it is.
  if child == 0 { _exit((try? useNothingOf(engine, path, keyspace)) ?? 15) }
  var status: Int32 = 0
  while waitpid(child, &status, 0) < 0 {}
  guard status == 0 else { return status >> 8 & 0xFF }
  guard try engine.read({ try $0.bytes(Array("child".utf8), in: keyspace) }) == [1] else { return 14 }
  try engine.write { try $0.put(Array("parent".utf8), [1], in: keyspace) }
  try engine.close()
  return 0
}

func useNothingOf(_ engine: any StorageEngine, _ path: String, _ keyspace: Keyspace) throws -> Int32 {
  guard try code({ _ = try engine.beginRead() }) == .unsupported else { return 11 }
  guard try code({ try engine.write { (_: any WriteTransaction) in } }) == .unsupported else { return 12 }
  guard try code({ _ = try engine.maintenance.statistics() }) == .unsupported else { return 13 }
  try engine.close()
  let own = try open(path)
  try own.write { try $0.put(Array("child".utf8), [1], in: keyspace) }
  try own.close()
  return 0
}

/// `large PATH BYTES`: puts a value of so many bytes into the keyspace `k`.
func large(_ path: String, _ bytes: Int) throws -> Int32 {
  let engine = try open(path)
  try engine.write { transaction in
    let keyspace = try transaction.createKeyspace("k", shape: .documents)
    try transaction.put(Array("large".utf8), [UInt8](repeating: 3, count: bytes), in: keyspace)
  }
  try engine.close()
  return 0
}

/// `small PATH BYTES`: a value of so many bytes doesn't fit into the map that the environment's variable
/// gives.
func small(_ path: String, _ bytes: Int) throws -> Int32 {
  let engine = try open(path)
  let failure = try code {
    try engine.write { transaction in
      let keyspace = try transaction.createKeyspace("k", shape: .documents)
      try transaction.put(Array("large".utf8), [UInt8](repeating: 3, count: bytes), in: keyspace)
    }
  }
  try engine.close()
  return failure == .mapFull ? 0 : 1
}

/// `keyspaces PATH ROUND`: makes two keyspaces, and drops one that the round before made.
func keyspaces(_ path: String, _ round: Int) throws -> Int32 {
  let engine = try open(path)
  try engine.write { transaction in
    if let old = try transaction.keyspace(named: "dropped\(round - 1)") { try transaction.dropKeyspace(old) }
    for name in ["theirs\(round)", "dropped\(round)"] {
      let keyspace = try transaction.createKeyspace(name, shape: .entries)
      try transaction.put(Array("k".utf8), Array(name.utf8), in: keyspace)
    }
  }
  try engine.close()
  return 0
}

/// `readers PATH COUNT`: begins so many snapshots, says so, and ends without ending them when its input ends.
func readers(_ path: String, _ count: Int) throws -> Int32 {
  let engine = try open(path)
  var snapshots: [any ReadTransaction] = []
  for _ in 0..<count { snapshots.append(try engine.beginRead()) }
  _ = write(1, "ready\n", 6)
  var byte: UInt8 = 0
  while read(0, &byte, 1) > 0 {}
  _exit(0)
}

/// `encrypted PATH KEY`: opens or makes an encrypted file with a key of that byte, and writes into it. The status is 7 when
/// the file has another key.
func encrypted(_ path: String, _ byte: Int) throws -> Int32 {
  let failure = try code {
    let options = EngineOptions(durability: .none, key: [UInt8](repeating: UInt8(byte), count: 32))
    let engine = try LMDBEngines.encrypted.open(path, options)
    try engine.write { transaction in
      let keyspace = try transaction.createKeyspace("k", shape: .documents)
      try transaction.put([UInt8(byte)], [1], in: keyspace)
    }
    try engine.close()
  }
  return failure == nil ? 0 : failure == .wrongKey ? 7 : 8
}

/// `address-space PATH BYTES`: opens, writes and reads with no more address space than that.
func addressSpace(_ path: String, _ bytes: Int) throws -> Int32 {
  var limit = rlimit(rlim_cur: rlim_t(bytes), rlim_max: rlim_t(bytes))
  guard setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0 else { return 10 }
  return try large(path, 100_000)
}

let arguments = CommandLine.arguments
let number = arguments.count > 3 ? Int(arguments[3]) ?? 0 : 0
do {
  switch arguments[1] {
  case "fork": exit(try forks(arguments[2]))
  case "large": exit(try large(arguments[2], number))
  case "small": exit(try small(arguments[2], number))
  case "keyspaces": exit(try keyspaces(arguments[2], number))
  case "readers": exit(try readers(arguments[2], number))
  case "encrypted": exit(try encrypted(arguments[2], number))
  case "address-space": exit(try addressSpace(arguments[2], number))
  default: exit(98)
  }
} catch {
  let line = "\(error)\n"
  _ = write(2, line, line.utf8.count)
  exit(99)
}
