import Foundation
import Simulation
import TestSupport
import Touchstone

/// The database `test` of a folder, and what a process does with it.
package final class MachineDatabase {
  package enum Reply: Codable, Equatable, Sendable {
    case answer(Answer)
    case shown(Shown)
    /// The parts of what it shows contradict each other, or its check finds faults.
    case inconsistent(String)
  }

  private let folder: String
  private let durability: Durability
  private let engine: EngineName
  private var database: Database?

  /// The database needn't exist yet.
  package init(folder: String, engine: String, durability: Durability) {
    // Registers them.
    _ = optionalEngines
    self.folder = folder
    self.durability = durability
    self.engine = EngineName(rawValue: engine)
  }

  static func key(_ number: Int) throws -> UserKey {
    try .raw([UInt8](repeating: UInt8(7 + number), count: 32))
  }
  /// The number of keys.
  static let keys = 3

  /// What it throws is an answer too.
  package func perform(_ request: MachineRequest) -> Answer {
    do {
      switch request {
      case .operation(let operation):
        guard let database else { return .refused(code: "closed", message: "closed") }
        return SimulatedDatabase(database).answer(operation)
      case .open: database = try opened(.openOrCreate)
      case .close: try close()
      case .convert(let name):
        let target = EngineName(rawValue: name)
        _ = try withKey { key in
          try Database.convert(
            "test", in: folder, to: target, key: key,
            newKey: Engines.type(target).encrypts ? key ?? Self.key(0) : nil)
        }
      case .changeKey(let number): try database?.changeKey(try Self.key(number))
      case .replace(let source, let name):
        let key = try Engines.type(EngineName(rawValue: name)).encrypts ? Self.key(0) : nil
        try DatabaseFolder(folder, options: DatabaseOptions(durability: durability))
          .replace("test", with: source, key: key)
      }
      return .done
    } catch { return Self.refusal(error) }
  }

  package static func refusal(_ error: any Error) -> Answer {
    let code = (error as? any TouchstoneError).map { "\($0.kind)" } ?? "\(type(of: error))"
    return .refused(code: code, message: "\(error)")
  }

  package var isOpen: Bool { database != nil }

  /// Closes it; after an error too it is closed.
  package func close() throws {
    defer { database = nil }
    try database?.close()
  }

  /// What the open database shows; its deep check has to find nothing.
  package func show() -> Reply {
    guard let database else { return .answer(.refused(code: "closed", message: "closed")) }
    do {
      let shown = try SimulatedDatabase(database).shown()
      let faults = try database.check(deep: true)
      return faults.isEmpty ? .shown(shown) : .inconsistent("check finds \(faults.map { "\($0)" })")
    } catch let error as Mismatch {
      return .inconsistent("\(error)")
    } catch { return .answer(Self.refusal(error)) }
  }

  /// What the database of a folder shows, whatever engine and key it has; nil if there is none.
  package static func shown(folder: String, durability: Durability) -> Reply? {
    guard FileManager.default.fileExists(atPath: folder + "/test.touchstone/database.json") else {
      return nil
    }
    let database = MachineDatabase(folder: folder, engine: "sqlite", durability: durability)
    do {
      database.database = try database.opened(.openExisting)
      let reply = database.show()
      try database.close()
      return reply
    } catch { return .answer(refusal(error)) }
  }

  /// Opens it with the key that it has: a plain database takes none.
  private func opened(_ creation: FileCreation) throws -> Database {
    guard FileManager.default.fileExists(atPath: folder + "/test.touchstone/database.json") else {
      let key = try Engines.type(engine).encrypts ? Self.key(0) : nil
      return try Database.open(
        "test", in: folder,
        options: DatabaseOptions(engine: engine, creation: creation, durability: durability, key: key))
    }
    return try withKey { key in
      try Database.open(
        "test", in: folder,
        options: DatabaseOptions(creation: .openExisting, durability: durability, key: key))
    }
  }

  /// Calls `body` with the key of the stored database, without one, and with other keys, until one fits.
  private func withKey<Result>(_ body: (UserKey?) throws -> Result) throws -> Result {
    var last: (any Error)?
    for key in try [Self.key(0), nil] + (1..<Self.keys).map({ try Self.key($0) }) {
      do { return try body(key) } catch let error as DatabaseError
        where [.notEncrypted, .wrongKey, .keyRequired].contains(error.code)
      {
        // Which of them is true is told by the first key.
        last = last ?? error
      }
    }
    throw last ?? Mismatch("no key fits")
  }
}
