import Bytes
import Glibc
import Logs
import System

// A file of users (docs/server.md):
//
//   file := ( line LF )*
//   line := "" | "#" text | name ":" hash         hash: PasswordHash
//   name := UTF-8 without ":" and control characters, 1 to 256 bytes

/// Users and hashes of their passwords, in a file. When the file changes, it is read again.
package final class UserFile: PasswordChecker {
  private struct Identity: Equatable {
    var device: UInt
    var file: UInt
    var size: Int
    var seconds: Int
    var nanoseconds: Int
  }

  private struct State {
    var users: [ByteString: PasswordHash]
    var identity: Identity
    var generation: UInt64 = 1
    var lookedAt: Double
  }

  private static let maximumBytes = 16 << 20
  private static let maximumNameBytes = 256
  private static let lookSeconds = 1.0

  private let path: String
  private let state: Lock<State>
  /// What passwords of unknown users are compared with, so that they take as long.
  private let nobody: PasswordHash

  /// Reads the file. Throws an `HTTPServerError` that says what is wrong in which line.
  package init(_ path: String) throws {
    self.path = path
    let identity = try Self.identity(path)
    let users = try Self.read(path)
    nobody = try PasswordHash([], users.values.first?.method ?? PasswordHash.standard)
    state = Lock(State(users: users, identity: identity, lookedAt: MonotonicClock.now))
  }

  /// A line of the file, without its line feed. Throws an `HTTPServerError` if the name can't be in one.
  package static func line(user: String, password: [UInt8]) throws -> String {
    guard isName(user.utf8) else {
      throw HTTPServerError(
        .invalidConfiguration,
        "the user “\(user)” has an empty name, a colon or a control character in it, or more than 256 bytes")
    }
    return "\(user):\(try PasswordHash(password).text)"
  }

  /// Whether it has a user of that name.
  package func contains(_ user: ByteString) -> Bool {
    look()
    return state.withLock { $0.users[user] != nil }
  }

  package func knows(_ user: ByteString) -> Bool { contains(user) }

  /// The names of its users, in the order of their bytes.
  package var names: [String] {
    look()
    return state.withLock { Array($0.users.keys) }.map(\.string).sorted {
      $0.utf8.lexicographicallyPrecedes($1.utf8)
    }
  }

  package var generation: UInt64 {
    look()
    return state.withLock { $0.generation }
  }

  package func check(
    _ user: ByteString, _ password: [UInt8], _ completion: @escaping @Sendable (Bool) -> Void
  ) {
    look()
    let hash = state.withLock { $0.users[user] }
    let isRight = (hash ?? nobody).matches(password)
    completion(isRight && hash != nil)
  }

  /// Reads the file again if it has changed, looking at most once a second.
  private func look() {
    let now = MonotonicClock.now
    let last = state.withLock { state -> Identity? in
      guard now - state.lookedAt >= Self.lookSeconds else { return nil }
      state.lookedAt = now
      return state.identity
    }
    guard let last else { return }
    do {
      let identity = try Self.identity(path)
      guard identity != last else { return }
      let users = try Self.read(path)
      state.withLock { state in
        state.users = users
        state.identity = identity
        state.generation += 1
      }
      Log.write(.info, .network, nil, "listener: read \(users.count) users from \(path) again")
    } catch {
      Log.write(.error, .network, nil, "listener: the users stay as they were: \(error)")
    }
  }

  private static func identity(_ path: String) throws -> Identity {
    var status = stat()
    guard !path.utf8.contains(0), stat(path, &status) == 0 else {
      throw HTTPServerError(
        .fileUnreadable,
        "can't read the file of users \(path): \(ListeningSocket.text(path.utf8.contains(0) ? EINVAL : errno))"
      )
    }
    return Identity(
      device: UInt(status.st_dev), file: UInt(status.st_ino), size: Int(status.st_size),
      seconds: status.st_mtim.tv_sec, nanoseconds: status.st_mtim.tv_nsec)
  }

  private static func read(_ path: String) throws -> [ByteString: PasswordHash] {
    let bytes: [UInt8]
    do { bytes = try AtomicFile.read(path, limit: maximumBytes, mayBePipe: true) } catch {
      throw HTTPServerError(.fileUnreadable, "can't read the file of users: \(error)")
    }
    var users: [ByteString: PasswordHash] = [:]
    for (number, line) in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
      guard let first = line.first, first != UInt8(ascii: "#") else { continue }
      func failure(_ reason: String) -> HTTPServerError {
        HTTPServerError(.fileInvalid, "the file of users \(path), line \(number + 1): \(reason)")
      }
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")), isName(line[..<colon]) else {
        throw failure("it has no name with a colon behind it")
      }
      guard let hash = PasswordHash(String(decoding: line[(colon + 1)...], as: UTF8.self)) else {
        throw failure("what is behind the name isn't a hash of a password, or one that is guessed too fast")
      }
      guard users.updateValue(hash, forKey: ByteString(line[..<colon])) == nil else {
        throw failure("the name was there before")
      }
    }
    return users
  }

  private static func isName(_ name: some Collection<UInt8>) -> Bool {
    1...maximumNameBytes ~= name.count
      && name.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ":") }
      && name.first != UInt8(ascii: "#")
  }
}
