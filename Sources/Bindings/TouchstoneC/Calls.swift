// touchstone.h documents the functions.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CTouchstone
import Documents
import Fleece
import Replication
import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

// What all functions have in common: errors as values, texts that come and texts that go.

/// Where a function of C puts its error.
public typealias ErrorPlace = UnsafeMutablePointer<UnsafeMutablePointer<touchstone_error>?>
/// Where a function of C puts a handle that it makes.
public typealias HandlePlace = UnsafeMutablePointer<OpaquePointer?>
/// Where a function of C puts a text that it hands out.
public typealias TextPlace = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

/// A number that a callback or a rolled back batch gives C in place of an error.
struct CallerStatus: Error {
  let status: Int32
}

/// Runs the body of a function that returns a kind.
@inline(__always)
func status(_ place: ErrorPlace?, _ body: () throws -> Void) -> Int32 {
  guard !ForkedChild.isThisProcess else { return ForkedChild.refuse(place) }
  do {
    try body()
    return 0
  } catch { return failure(error, place) }
}

/// Runs the body of a function that returns a kind, and works without a handle.
func statusWithoutHandle(_ place: ErrorPlace?, _ body: () throws -> Void) -> Int32 {
  guard !ForkedChild.isThisProcess else { return ForkedChild.refuse(place) }
  ForkedChild.enter()
  defer { ForkedChild.leave() }
  return status(place, body)
}

/// Runs the body of a function that returns a number, or a kind as a negative one.
@inline(__always)
func number(_ place: ErrorPlace?, _ body: () throws -> Int64) -> Int64 {
  guard !ForkedChild.isThisProcess else { return Int64(-ForkedChild.refuse(place)) }
  do { return try body() } catch { return Int64(-failure(error, place)) }
}

/// Runs the body of a function that can't fail with what a handle stands for. Returns `otherwise` for a handle that isn't one.
@inline(__always)
func value<Content: AnyObject, Result>(
  of handle: OpaquePointer?, _ type: Content.Type, otherwise: Result, _ body: (Content) -> Result,
  _ function: StaticString = #function
) -> Result {
  guard !ForkedChild.isThisProcess, let content = try? Handles.content(handle, type, function) else {
    return otherwise
  }
  return body(content)
}

/// Hands an error to C and returns its kind.
@inline(never)
func failure(_ error: any Error, _ place: ErrorPlace?) -> Int32 {
  if let error = error as? CallerStatus { return error.status }
  let value = ErrorValue(error)
  if let place { place.pointee = value.allocated() }
  return Int32(value.kind.rawValue)
}

/// What C is told of an error.
struct ErrorValue {
  var kind = ErrorKind.ioError
  var canRetry = false
  var code: String
  var message: String
  var path: String?
  var document: String?
  var offset: Int64 = -1
  var line: Int32 = 0
  var column: Int32 = 0

  init(_ error: any Error) {
    code = "\(type(of: error))"
    message = "\(error)"
    switch error {
    case let error as any TouchstoneError:
      kind = error.kind
      canRetry = error.canRetry
      switch error.subject {
      case .path(let path): self.path = path
      case .document(let id): document = id
      case .place(let place):
        offset = Int64(place.offset)
        line = Int32(clamping: place.line)
        column = Int32(clamping: place.column)
      case .offset(let offset): self.offset = Int64(offset)
      case nil: break
      }
    case is CancellationError:
      kind = .cancelled
      message = "it was cancelled"
    case let error as ReplicationError:
      kind = error.kindForC
      canRetry = error.isTransient
      code += ".\(error.domain.rawValue)\(error.code)"
    default: break
    }
    if let name = Self.name(of: error) { code += ".\(name)" }
  }

  private static func name(of error: any Error) -> String? {
    switch error {
    case let error as DatabaseError: error.code.rawValue
    case let error as DocumentError: error.code.rawValue
    case let error as StorageError: error.code.rawValue
    case let error as QueryError: error.code.rawValue
    case let error as ViewError: error.code.rawValue
    case let error as EncryptionError: error.code.rawValue
    case let error as UpgradeError: error.code.rawValue
    case let error as CBLite2Error: error.code.rawValue
    default: nil
    }
  }

  /// The error in one block of memory of C's allocator.
  func allocated() -> UnsafeMutablePointer<touchstone_error> {
    let texts = [code, message, path, document].map { $0.map { Array($0.utf8) } }
    let header = MemoryLayout<touchstone_error>.stride
    let size = texts.reduce(header) { $0 + ($1.map { $0.count + 1 } ?? 0) }
    let block = allocate(size)
    let error = block.bindMemory(to: touchstone_error.self, capacity: 1)
    var next = (block + header).assumingMemoryBound(to: CChar.self)
    func place(_ text: [UInt8]?) -> UnsafePointer<CChar>? {
      guard let text else { return nil }
      let start = next
      copy(text, to: start)
      next += text.count + 1
      return UnsafePointer(start)
    }
    error.initialize(
      to: touchstone_error(
        kind: Int32(kind.rawValue), can_retry: canRetry ? 1 : 0, code: place(texts[0]),
        message: place(texts[1]),
        path: place(texts[2]), document: place(texts[3]), offset: offset, line: line, column: column))
    return error
  }
}

extension ReplicationError {
  /// The kind that its code means.
  fileprivate var kindForC: ErrorKind {
    switch domain {
    case .touchstone: ErrorKind(rawValue: code) ?? .ioError
    case .http: ErrorKind(rawValue: code) ?? (code < 500 ? .badRequest : .ioError)
    case .network where code == NetworkCode.invalidURL.rawValue: .badRequest
    default: .ioError
    }
  }
}

/// Memory that C frees. Without memory the process ends, as Swift's own allocations do.
func allocate(_ size: Int) -> UnsafeMutableRawPointer {
  guard let block = malloc(max(size, 1)) else { preconditionFailure("no memory for \(size) bytes") }
  return block
}

/// Copies a text with a NUL behind it.
private func copy(_ text: some Collection<UInt8>, to place: UnsafeMutablePointer<CChar>) {
  let count = text.count
  UnsafeMutableRawBufferPointer(start: place, count: count).copyBytes(from: text)
  place[count] = 0
}

// MARK: Texts

/// The bytes of a text of C, lent for the call.
@inline(__always)
func bytes(_ text: UnsafePointer<CChar>?, _ length: Int) -> UnsafeRawBufferPointer {
  guard let text else { return UnsafeRawBufferPointer(start: nil, count: 0) }
  // TOUCHSTONE_NUL is the greatest size_t.
  return UnsafeRawBufferPointer(start: text, count: length < 0 ? strlen(text) : length)
}

/// A text of C. Throws if it isn't UTF-8.
@inline(__always)
func string(_ text: UnsafePointer<CChar>?, _ length: Int, _ name: StaticString) throws -> String {
  guard let string = String(validating: bytes(text, length), as: UTF8.self) else {
    throw Misuse("\(name) isn't UTF-8", .badRequest)
  }
  return string
}

/// The ID of a revision; nil for NULL.
func revisionID(_ text: UnsafePointer<CChar>?, _ length: Int) throws -> RevisionID? {
  guard text != nil else { return nil }
  return try requiredRevisionID(text, length)
}

func requiredRevisionID(_ text: UnsafePointer<CChar>?, _ length: Int) throws -> RevisionID {
  let text = try string(text, length, "the ID of the revision")
  guard let id = RevisionID(text) else {
    throw Misuse("“\(text)” isn't the ID of a revision, such as 1-68b32f…", .badRequest)
  }
  return id
}

/// Throws if there is no place for a text, before anything is done.
@discardableResult
func check(_ place: TextPlace?) throws -> TextPlace {
  guard let place else { throw Misuse("there is no place for the result: the pointer is NULL", .badRequest) }
  return place
}

/// Hands a text to C.
func hand(
  _ text: some Collection<UInt8>, to place: TextPlace?, _ length: UnsafeMutablePointer<Int>?
) throws {
  let place = try check(place)
  let count = text.count
  let block = allocate(count + 1).assumingMemoryBound(to: CChar.self)
  copy(text, to: block)
  place.pointee = block
  length?.pointee = count
}

/// Hands the JSON of a value to C.
func hand(_ value: JSONValue, to place: TextPlace?, _ length: UnsafeMutablePointer<Int>?) throws {
  try hand(try value.canonicalJSON().utf8, to: place, length)
}

/// Hands a handle to C.
func hand(_ content: AnyObject, to place: HandlePlace?) { place?.pointee = Handles.make(content) }

/// Throws if there is no place for a handle, before it is made.
func check(_ place: HandlePlace?) throws {
  if place == nil { throw Misuse("there is no place for the handle: the pointer is NULL", .badRequest) }
}

extension touchstone_revision {
  /// What C is told of a revision.
  init(_ id: RevisionID, sequence: UInt64, flags: UInt32) {
    self.init()
    self.sequence = sequence
    self.flags = flags
    var text = id.description
    text.withUTF8 { copy(UnsafeRawBufferPointer($0)) }
  }

  /// What C is told of the current revision of a live document.
  init(_ document: DocumentJSON) {
    self.init()
    sequence = document.sequence
    flags = document.isConflicted ? UInt32(TOUCHSTONE_CONFLICTED) : 0
    copy(document.revisionID)
  }

  private mutating func copy(_ id: UnsafeRawBufferPointer) {
    // An ID has at most 270 bytes.
    let count = min(id.count, MemoryLayout.size(ofValue: revision) - 1)
    withUnsafeMutableBytes(of: &revision) { place in
      place.copyMemory(from: UnsafeRawBufferPointer(rebasing: id[..<count]))
      place[count] = 0
    }
    revision_length = UInt32(count)
  }

  init(_ saved: SavedRevision, isDeleted: Bool = false) {
    self.init(
      saved.revisionID, sequence: saved.sequence, flags: isDeleted ? UInt32(TOUCHSTONE_DELETED) : 0)
  }
}

// MARK: Functions

@c @implementation
public func touchstone_error_free(_ error: UnsafeMutablePointer<touchstone_error>?) { free(error) }

@c @implementation
public func touchstone_free(_ text: UnsafeMutableRawPointer?) { free(text) }
