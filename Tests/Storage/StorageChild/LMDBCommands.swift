// Commands of the child process that the tests of the engines over LMDB start. It has one thread when it forks.
// The exit status is 0 if all went as it should.

import ChildSupport
import HeldHandles
import StorageEncrypted
import StorageLMDB
import SystemCalls
import TestTools

enum LMDBCommands: ChildCommands {
  static let name = "lmdb"
  static let usage = "COMMAND PATH [NUMBER]"

  static func open(_ path: String) throws -> any StorageEngine {
    try LMDBEngines.lmdb.open(path, EngineOptions(durability: .none))
  }

  /// Puts an entry into the keyspace `k`, which it makes if need be.
  static func put(_ key: String, _ value: [UInt8], _ engine: any StorageEngine) throws {
    try engine.write { try $0.put(Array(key.utf8), value, in: $0.createKeyspace("k", shape: .documents)) }
  }

  /// `fork PATH`: a child of this process can use nothing of its parent's engine, and can open the path anew.
  static func forks(_ path: String) throws -> Int32 {
    let engine = try open(path)
    let keyspace = try engine.write { try $0.createKeyspace("k", shape: .documents) }
    guard let symbol = dlsym(nil, "fork") else { return 10 }
    typealias Fork = @convention(c) () -> Int32
    let child = unsafeBitCast(symbol, to: Fork.self)()
    // At once: what the child has of its parent's engine stays as it is.
    if child == 0 { _exit((try? useNothingOf(engine, path, keyspace)) ?? 15) }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    guard status == 0 else { return status >> 8 & 0xFF }
    guard try engine.read({ try $0.bytes(Array("child".utf8), in: keyspace) }) == [1] else { return 14 }
    try engine.write { try $0.put(Array("parent".utf8), [1], in: keyspace) }
    try engine.close()
    return 0
  }

  static func useNothingOf(_ engine: any StorageEngine, _ path: String, _ keyspace: Keyspace) throws -> Int32
  {
    guard try storageCode(of: { _ = try engine.beginRead() }) == .unsupported else { return 11 }
    guard try storageCode(of: { try engine.write { (_: any WriteTransaction) in } }) == .unsupported else {
      return 12
    }
    guard try storageCode(of: { _ = try engine.maintenance.statistics() }) == .unsupported else { return 13 }
    try engine.close()
    let own = try open(path)
    try own.write { try $0.put(Array("child".utf8), [1], in: keyspace) }
    try own.close()
    return 0
  }

  /// `large PATH BYTES`: puts a value of so many bytes into the keyspace `k`.
  static func large(_ path: String, _ bytes: Int) throws -> Int32 {
    try open(path).closing { try put("large", [UInt8](repeating: 3, count: bytes), $0) }
    return 0
  }

  /// `small PATH BYTES`: a value of so many bytes doesn't fit into the map that the environment's variable
  /// gives.
  static func small(_ path: String, _ bytes: Int) throws -> Int32 {
    let engine = try open(path)
    let failure = try storageCode { try put("large", [UInt8](repeating: 3, count: bytes), engine) }
    try engine.close()
    return failure == .mapFull ? 0 : 1
  }

  /// `keyspaces PATH ROUND`: makes two keyspaces, and drops one that the round before made.
  static func keyspaces(_ path: String, _ round: Int) throws -> Int32 {
    let engine = try open(path)
    try engine.write { transaction in
      if let old = try transaction.keyspace(named: "dropped\(round - 1)") {
        try transaction.dropKeyspace(old)
      }
      for name in ["theirs\(round)", "dropped\(round)"] {
        let keyspace = try transaction.createKeyspace(name, shape: .entries)
        try transaction.put(Array("k".utf8), Array(name.utf8), in: keyspace)
      }
    }
    try engine.close()
    return 0
  }

  /// Says that it is ready, and waits for the end of its input.
  static func waitAfterReady() {
    say("ready")
    var byte: UInt8 = 0
    while read(0, &byte, 1) > 0 {}
  }

  /// `readers PATH COUNT`: begins so many snapshots, says so, and ends without ending them when its input ends.
  static func readers(_ path: String, _ count: Int) throws -> Int32 {
    let engine = try open(path)
    let snapshots = try (0..<count).map { _ in try engine.beginRead() }
    withExtendedLifetime(snapshots) { waitAfterReady() }
    _exit(0)
  }

  /// `encrypted PATH KEY`: opens or makes an encrypted file with a key of that byte, and writes into it. The status is 7 when
  /// the file has another key.
  static func encrypted(_ path: String, _ byte: Int) throws -> Int32 {
    let failure = try storageCode {
      let options = EngineOptions(durability: .none, key: [UInt8](repeating: UInt8(byte), count: 32))
      try LMDBEngines.encrypted.open(path, options).closing { try put("\(byte)", [1], $0) }
    }
    return failure == nil ? 0 : failure == .wrongKey ? 7 : 8
  }

  /// `address-space PATH BYTES`: opens, writes, reads and copies with no more address space than that.
  static func addressSpace(_ path: String, _ bytes: Int) throws -> Int32 {
    var limit = rlimit(rlim_cur: rlim_t(bytes), rlim_max: rlim_t(bytes))
    guard setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0 else { return 10 }
    let status = try large(path, 100_000)
    guard status == 0 else { return status }
    let engine = try LMDBEngines.lmdb.open(path, EngineOptions())
    let keyspace = try engine.write { try $0.createKeyspace("dropped", shape: .entries) }
    try engine.write { try $0.dropKeyspace(keyspace) }
    // Opened beside the file, to remove what the dropped keyspace has left.
    try engine.maintenance.backup(to: path + "-copy")
    try engine.close()
    return try large(path + "-copy", 100_000)
  }

  /// `folder-sync PATH LEVEL`: makes a file at a durability (0: full). The status is 7 when the folder was synced for it, 8 when
  /// that was for an older file, 9 when nothing was synced though a commit has to be.
  static func folderSync(_ path: String, _ level: Int) throws -> Int32 {
    let durability = [Durability.full, .normal, .none][level]
    for round in 0..<2 {
      let (folders, files) = (synced_directories(), synced_files())
      let engine = try LMDBEngines.lmdb.open(path, EngineOptions(durability: durability))
      let isSynced = synced_directories() > folders
      try engine.write { _ = try $0.createKeyspace("k\(round)", shape: .documents) }
      try engine.close()
      if durability != .none, synced_files() == files { return 9 }
      if isSynced { return round == 0 ? 7 : 8 }
    }
    return 0
  }

  /// `failing-sync PATH LEVEL`: syncs fail while a file is made (0), in a commit (1), while a file is closed (2). The status is
  /// 0 when that is told as a failure of the engine, and the file can be used once they succeed.
  static func failingSync(_ path: String, _ moment: Int) throws -> Int32 {
    let options = EngineOptions(durability: moment == 2 ? .normal : .full)
    func failure(_ body: () throws -> Void) throws -> StorageError? {
      fail_syncs(EIO)
      defer { fail_syncs(0) }
      return try thrown(StorageError.self, by: body)
    }
    if moment == 0 {
      guard let error = try failure({ _ = try LMDBEngines.lmdb.open(path, options) }) else { return 10 }
      guard error.engineCode == Int(EIO), access(path, F_OK) != 0 else { return 11 }
    }
    let engine = try LMDBEngines.lmdb.open(path, options)
    try put("before", [1], engine)
    if moment == 1 {
      guard let error = try failure({ try put("lost", [1], engine) }) else { return 12 }
      guard error.engineCode == Int(EIO) else { return 13 }
      try put("after", [1], engine)
    }
    if moment == 2 {
      guard let error = try failure({ try engine.close() }) else { return 14 }
      guard error.engineCode == Int(EIO) else { return 15 }
    } else {
      try engine.close()
    }
    let again = try LMDBEngines.lmdb.open(path, options)
    let count = try again.read { transaction in
      try transaction.keyspace(named: "k").map { try transaction.count(of: $0) }
    }
    try again.close()
    return count == (moment == 1 ? 2 : 1) ? 0 : 16
  }

  /// `held-handles PATH`: says that it is ready and waits for the end of its input, before which another process makes the keyspace
  /// `theirs`. Then a write begins while a snapshot opens LMDB's handle of it; the write reads from it as well.
  static func heldHandles(_ path: String) throws -> Int32 {
    let engine = try open(path)
    waitAfterReady()
    @Sendable func value(_ transaction: any ReadTransaction) throws -> [UInt8]? {
      guard let keyspace = try transaction.keyspace(named: "theirs") else { return nil }
      return try transaction.bytes(Array("k".utf8), in: keyspace)
    }
    hold_next_handle(200)
    let group = DispatchGroup()
    nonisolated(unsafe) var read: [UInt8]?
    DispatchQueue.global().async(group: group) { read = try? engine.read { try value($0) } }
    wait_for_held_handle()
    let written = try engine.write { try value($0) }
    group.wait()
    try engine.close()
    return read == [1] && written == [1] ? 0 : 1
  }

  static func run(_ arguments: [String]) throws {
    guard 2...3 ~= arguments.count else { throw WrongUsage() }
    let path = arguments[1]
    guard let number = arguments.count == 3 ? Int(arguments[2]) : 0 else { throw WrongUsage() }
    switch arguments[0] {
    case "fork": exit(try forks(path))
    case "large": exit(try large(path, number))
    case "small": exit(try small(path, number))
    case "keyspaces": exit(try keyspaces(path, number))
    case "readers": exit(try readers(path, number))
    case "encrypted": exit(try encrypted(path, number))
    case "address-space": exit(try addressSpace(path, number))
    case "folder-sync": exit(try folderSync(path, number))
    case "failing-sync": exit(try failingSync(path, number))
    case "held-handles": exit(try heldHandles(path))
    default: throw WrongUsage()
    }
  }
}
