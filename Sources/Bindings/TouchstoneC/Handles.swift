import CTouchstone
import Storage
import Synchronization
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

// The pointers that C holds. Each is a retained `Handle`, whose content is an object of this module. Where handles are checked, a freed
// one keeps its memory, so that no later one gets its address, and a table tells which are alive.

/// What a pointer of C points at.
final class Handle {
  fileprivate(set) var content: AnyObject?

  fileprivate init(_ content: AnyObject) { self.content = content }
}

/// A mistake of the program that calls: what it did, and with what.
struct Misuse: TouchstoneError {
  let kind: ErrorKind
  let description: String
  var subject: ErrorSubject? { nil }

  init(_ description: String, _ kind: ErrorKind = .misuse) {
    self.description = description
    self.kind = kind
  }
}

/// All handles of the process.
enum Handles {
  /// What is done with handles that aren't any more (`touchstone_check_handles`).
  enum Mode: Int32 {
    case trusted, checked, fatal
  }

  private struct Table {
    var mode: Mode
    /// Whether any was made. Then the mode stays.
    var isUsed = false
    /// Whether each one is alive, where handles are checked.
    var isAlive: [UnsafeRawPointer: Bool] = [:]
  }

  private static let table: Lock<Table> = {
    let mode: Mode =
      switch EnvironmentVariable.value("TOUCHSTONE_HANDLES") {
      case "checked": .checked
      case "fatal": .fatal
      default: .trusted
      }
    needsCheck.store(mode != .trusted, ordering: .relaxed)
    return Lock(Table(mode: mode))
  }()

  /// Whether a call has to look at its handle before it uses it.
  private static let needsCheck = Atomic<Bool>(false)

  static func setMode(_ mode: Mode) throws {
    try table.withLock { table in
      guard !table.isUsed || table.mode == mode else {
        throw Misuse("handles were made already, so how they are checked can't change")
      }
      table.mode = mode
    }
    needsCheck.store(mode != .trusted, ordering: .relaxed)
  }

  /// Makes a handle, which C owns.
  static func make(_ content: AnyObject) -> OpaquePointer {
    ForkedChild.enter()
    let handle = Unmanaged.passRetained(Handle(content)).toOpaque()
    table.withLock { table in
      table.isUsed = true
      if table.mode != .trusted { table.isAlive[handle] = true }
    }
    return OpaquePointer(handle)
  }

  /// Ends a handle. Nil does nothing.
  static func free(_ pointer: OpaquePointer?, _ function: StaticString = #function) {
    guard !ForkedChild.isThisProcess, let pointer = pointer.map({ UnsafeRawPointer($0) }) else { return }
    if needsCheck.load(ordering: .relaxed) {
      let isChecked = table.withLock { $0.mode != .trusted }
      if isChecked {
        do { try check(pointer, function) } catch { return }
        let handle = Unmanaged<Handle>.fromOpaque(pointer).takeUnretainedValue()
        table.withLock { $0.isAlive[pointer] = false }
        // The object stays, without its content.
        handle.content = nil
        ForkedChild.leave()
        return
      }
    }
    Unmanaged<Handle>.fromOpaque(pointer).release()
    ForkedChild.leave()
  }

  /// The object that a pointer stands for.
  @inline(__always)
  static func content<Content: AnyObject>(
    _ pointer: OpaquePointer?, _ type: Content.Type = Content.self, _ function: StaticString = #function
  ) throws -> Content {
    guard let pointer = pointer.map({ UnsafeRawPointer($0) }) else {
      throw Misuse("\(function): the handle is NULL", .badRequest)
    }
    guard !needsCheck.load(ordering: .relaxed) else { return try checkedContent(pointer, type, function) }
    let content = Unmanaged<Handle>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0.content }
    // A handle has its content until it is freed, and C gives each function its own type.
    return unsafeDowncast(content.unsafelyUnwrapped, to: type)
  }

  @inline(never)
  private static func checkedContent<Content: AnyObject>(
    _ pointer: UnsafeRawPointer, _ type: Content.Type, _ function: StaticString
  ) throws -> Content {
    try check(pointer, function)
    let content = Unmanaged<Handle>.fromOpaque(pointer).takeUnretainedValue().content
    guard let content = content as? Content else {
      throw misused(
        "\(function): the handle is of another type, \(content.map { "\(Swift.type(of: $0))" } ?? "-")")
    }
    return content
  }

  /// Throws unless the handle is alive. Where handles aren't checked, it is taken to be.
  private static func check(_ pointer: UnsafeRawPointer, _ function: StaticString) throws {
    let isAlive = table.withLock { $0.mode == .trusted ? true : $0.isAlive[pointer] }
    switch isAlive {
    case true?: return
    case false?: throw misused("\(function): the handle \(pointer) was freed")
    case nil: throw misused("\(function): \(pointer) is no handle")
    }
  }

  private static func misused(_ message: String) -> Misuse {
    if table.withLock({ $0.mode == .fatal }) {
      let line = Array("touchstone: \(message)\n".utf8)
      _ = write(STDERR_FILENO, line, line.count)
      abort()
    }
    return Misuse(message)
  }
}
