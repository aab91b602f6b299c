import Glibc
import System

/// The program that runs scripts, for the contexts of one database: one for maps and reduce functions, and one for others.
///
/// It is started by the first call, and again by the next one after its end. Threads may call at once: requests
/// are answered in the order in which they were made.
package final class ScriptProcess: Sendable {
  /// The environment variable with the path of the program.
  package static let variable = "TOUCHSTONE_SCRIPTS"
  static let programName = "touchstone-scripts"

  /// A request that was sent.
  struct Ticket {
    let number: UInt32
    fileprivate let isMap: Bool
    fileprivate let generation: Int
  }

  /// A request, which can be sent again.
  struct Request {
    let type: UInt8
    /// The payload behind the context's number, but for the documents.
    var head: [UInt8]
    var batch: ScriptBatch?
    var range = 0..<0

    static let map: UInt8 = 3
    /// Of one document, with nothing else in the program.
    static let mapAlone: UInt8 = 7

    static func isMap(_ type: UInt8) -> Bool { type == map || type == mapAlone }
    var isMap: Bool { Self.isMap(type) }
  }

  /// What a context needs to be opened again.
  struct Opening: Sendable {
    let number: UInt32
    let designDocument: [UInt8]
  }

  private struct State {
    var child: ScriptChild?
    var generation = 0
    var lastTicket: UInt32 = 0
    /// The contexts that the running program knows.
    var opened: Set<UInt32> = []
    /// Requests without their last answer, and the answers so far. Nobody waits for `abandoned` ones.
    var pending: [UInt32: [AnswerFrame]] = [:]
    var finished: [UInt32: [AnswerFrame]] = [:]
    var abandoned: Set<UInt32> = []
  }

  /// What scripts may use.
  package let limits: ScriptLimits
  private let program: String?
  private let state = TurnLock(State())

  /// What is to be done in the next turn. Nobody waits for it.
  private struct Notes {
    var closing: Set<UInt32> = []
    var abandoned: [UInt32] = []
  }
  private let notes = Lock(Notes())
  private let lastContext = Lock<UInt32>(0)

  /// Makes a process that isn't started yet. `program` is the path of `touchstone-scripts`. Without it, the
  /// environment variable `TOUCHSTONE_SCRIPTS` has the path, or the program is beside the running executable.
  package init(program: String? = nil, limits: ScriptLimits = ScriptLimits()) {
    self.program = program
    self.limits = limits
  }

  /// A process of its own that runs the same program with the same limits.
  package var another: ScriptProcess { ScriptProcess(program: program, limits: limits) }

  /// The process ID of the program; nil while it doesn't run.
  package var processID: Int32? { state.withTurn(inHurry: true) { $0.child?.process.identifier } }

  /// Ends the program. The next call starts it again.
  package func stop() { state.withTurn(inHurry: true) { lose(&$0) } }

  /// Whether there is a program that runs scripts.
  package static var isAvailable: Bool { (try? path(nil)).map { access($0, X_OK) == 0 } ?? false }

  /// The path of the program. Throws `unavailable`.
  static func path(_ program: String?) throws -> String {
    if let path = program ?? EnvironmentVariable.value(variable) { return path }
    guard let executable = RunningProgram.path else {
      throw ScriptError(.unavailable, "can't find the running executable")
    }
    let folder = executable.utf8[
      ..<(executable.utf8.lastIndex(of: UInt8(ascii: "/")) ?? executable.startIndex)]
    let path = "\(Substring(folder))/\(programName)"
    guard access(path, X_OK) == 0 else {
      throw ScriptError(
        .unavailable, "can't find \(path); set \(variable) to the path of the program that runs scripts")
    }
    return path
  }

  // MARK: Requests

  func newContext(_ designDocument: [UInt8]) -> Opening {
    lastContext.withLock { last in
      last += 1
      return Opening(number: last, designDocument: designDocument)
    }
  }

  /// Frees a context when the program is next asked something.
  func close(_ context: UInt32) {
    notes.withLock { _ = $0.closing.insert(context) }
  }

  // Maps come in long rows, and nobody waits for one of them. Other calls are in a hurry.

  /// Sends a request. Throws `ScriptChild.Lost` when the program ended meanwhile, and `ScriptError`.
  func submit(_ request: Request, to context: Opening) throws -> Ticket {
    try state.withTurn(inHurry: !request.isMap) { try submit(request, to: context, &$0) }
  }

  /// Waits for the answers to a request. Throws `ScriptChild.Lost` when the program ended before.
  func answers(to ticket: Ticket) throws -> [AnswerFrame] {
    try state.withTurn(inHurry: !ticket.isMap) { try answers(to: ticket, &$0) }
  }

  /// Nobody wants the answers to a request.
  func abandon(_ ticket: Ticket) {
    notes.withLock { $0.abandoned.append(ticket.number) }
    // Otherwise whoever has the next turn drops the answers.
    state.withFreeTurn { dropAbandoned(&$0) }
  }

  private func dropAbandoned(_ state: inout State) {
    let tickets = notes.withLock { notes in
      defer { notes.abandoned = [] }
      return notes.abandoned
    }
    for ticket in tickets
    where state.finished.removeValue(forKey: ticket) == nil && state.pending[ticket] != nil {
      state.pending[ticket] = []
      state.abandoned.insert(ticket)
    }
  }

  /// Makes a request when nothing else is asked, so that an end of the program is this request's fault. Throws
  /// `ScriptChild.Lost` then.
  func askAlone(_ request: Request, of context: Opening) throws -> [AnswerFrame] {
    try state.withTurn(inHurry: !request.isMap) { state in
      while !state.pending.isEmpty, let child = state.child {
        do { try take(try child.nextFrame(), &state) } catch { lose(&state) }
      }
      let isNew = state.child == nil
      do { return try answers(to: try submit(request, to: context, &state), &state) } catch let lost
        as ScriptChild.Lost where lost.isOutOfMemory && !isNew
      {
        // Other functions may have taken the memory.
        return try answers(to: try submit(request, to: context, &state), &state)
      }
    }
  }

  /// Opens a context, and reads the program's answer. Throws `ScriptError`.
  func open<Result>(_ context: Opening, _ read: (inout FrameCursor) throws -> Result) throws -> Result {
    try state.withTurn(inHurry: true) { try open(context, read, &$0) }
  }

  /// Opens a context if the program has nothing to do. Returns nil otherwise. Throws `ScriptError`.
  func openAtOnce<Result>(_ context: Opening, _ read: (inout FrameCursor) throws -> Result) throws -> Result?
  {
    let opened: Result?? = try state.withFreeTurn { state in
      state.pending.isEmpty ? try open(context, read, &state) : nil
    }
    return opened ?? nil
  }

  private func open<Result>(
    _ context: Opening, _ read: (inout FrameCursor) throws -> Result, _ state: inout State
  ) throws -> Result {
    do {
      return try open(context, &state).withPayload(read)
    } catch let error where error is ScriptChild.Lost || error is FrameFault {
      // It may have ended because of others.
      lose(&state)
      return try blaming("a design document that it compiled", document: nil) {
        try open(context, &state).withPayload(read)
      }
    }
  }

  /// Runs a request that is made alone, and says what the program was doing when it ended.
  func blaming<Result>(_ what: String, document: String?, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let lost as ScriptChild.Lost where lost.isOutOfMemory {
      throw ScriptError(.stopped, lost.reason, documentID: document)
    } catch let lost as ScriptChild.Lost {
      throw ScriptError(
        .stopped, "The program that runs scripts was lost in \(what): \(lost.reason).", documentID: document)
    } catch is FrameFault {
      throw ScriptError(
        .stopped, "The program that runs scripts sent a wrong answer in \(what).", documentID: document)
    }
  }

  // MARK: Under the lock

  private func lose(_ state: inout State) {
    state.child?.stop()
    state.child = nil
    state.generation += 1
    state.opened = []
    state.pending = [:]
    state.abandoned = []
  }

  private func started(_ state: inout State) throws -> ScriptChild {
    if let child = state.child { return child }
    let child = try ScriptChild(program: try ScriptProcess.path(program), limits: limits)
    state.child = child
    return child
  }

  private func send(_ type: UInt8, _ head: [UInt8], _ payload: UnsafeRawBufferPointer, _ state: inout State)
    throws
    -> Ticket
  {
    let length = head.count + payload.count + AnswerFrame.headerBytes
    guard length <= ScriptChild.maximumLength else {
      throw ScriptError(.exception, "\(length) bytes are too many for a script")
    }
    let child = try started(&state)
    state.lastTicket &+= 1
    let ticket = Ticket(
      number: state.lastTicket, isMap: Request.isMap(type), generation: state.generation)
    state.pending[ticket.number] = []
    do { try child.send(type: type, ticket: ticket.number, head: head, payload: payload) } catch {
      // What it said before it ended counts.
      while let frame = try? child.nextFrame() { try? take(frame, &state) }
      lose(&state)
      throw error
    }
    return ticket
  }

  private func open(_ context: Opening, _ state: inout State) throws -> AnswerFrame {
    var head: [UInt8] = []
    head.append(u32: context.number)
    head.append(u32: UInt32(clamping: context.designDocument.count))
    let ticket = try context.designDocument.withUnsafeBytes { try send(1, head, $0, &state) }
    let frames = try answers(to: ticket, &state)
    guard let last = frames.last else { throw ScriptChild.Lost(reason: "it sent a wrong answer") }
    try ScriptProcess.check(last, .opened) { _ in nil }
    state.opened.insert(context.number)
    return last
  }

  private func submit(_ request: Request, to context: Opening, _ state: inout State) throws -> Ticket {
    _ = try started(&state)
    dropAbandoned(&state)
    let closing = notes.withLock { notes in
      defer { notes.closing = [] }
      return notes.closing
    }
    for number in closing where state.opened.contains(number) {
      var head: [UInt8] = []
      head.append(u32: number)
      state.opened.remove(number)
      let ticket = try send(2, head, UnsafeRawBufferPointer(start: nil, count: 0), &state)
      state.abandoned.insert(ticket.number)
    }
    if !state.opened.contains(context.number) { _ = try open(context, &state) }
    var head: [UInt8] = []
    head.append(u32: context.number)
    head += request.head
    guard let batch = request.batch else {
      return try send(request.type, head, UnsafeRawBufferPointer(start: nil, count: 0), &state)
    }
    head.append(u32: UInt32(clamping: request.range.count))
    return try batch.withPayload(request.range) { try send(request.type, head, $0, &state) }
  }

  private func answers(to ticket: Ticket, _ state: inout State) throws -> [AnswerFrame] {
    while true {
      if let frames = state.finished.removeValue(forKey: ticket.number) { return frames }
      guard ticket.generation == state.generation, let child = state.child else {
        throw ScriptChild.Lost(reason: "it ended")
      }
      do { try take(try child.nextFrame(), &state) } catch {
        lose(&state)
        throw error as? ScriptChild.Lost ?? ScriptChild.Lost(reason: "it doesn't follow the protocol")
      }
    }
  }

  /// Files an answer under its request.
  private func take(_ frame: AnswerFrame, _ state: inout State) throws {
    guard state.pending[frame.ticket] != nil, frame.kind != .hello else { throw FrameFault() }
    if frame.kind == .failed {
      let (code, _, text) = try Self.failure(frame)
      // The program ends now. Each request that waits is made again, alone.
      if code == Self.outOfMemory { throw ScriptChild.Lost(reason: text, isOutOfMemory: true) }
    }
    if state.abandoned.contains(frame.ticket) {
      if frame.kind.isLast {
        state.pending[frame.ticket] = nil
        state.abandoned.remove(frame.ticket)
      }
      return
    }
    if frame.kind != .working { state.pending[frame.ticket]?.append(frame) }
    if frame.kind.isLast { state.finished[frame.ticket] = state.pending.removeValue(forKey: frame.ticket) }
  }

  /// Throws what a `failed` answer says, and `Lost` when the answer is of another kind than it must be.
  /// `documentID` gives the ID of a document of the request.
  static func check(_ frame: AnswerFrame, _ kind: AnswerFrame.Kind, documentID: (Int) -> String?) throws {
    if frame.kind == kind { return }
    guard frame.kind == .failed else { throw ScriptChild.Lost(reason: "it sent a wrong answer") }
    let (code, document, text) = try failure(frame)
    let meaning: ScriptError.Code
    switch code {
    case 1: meaning = .compilation
    case 2: meaning = .exception
    case 3: meaning = .stopped
    case 5: meaning = .missing
    case 6: meaning = .invalidDefinition
    default: meaning = .unavailable
    }
    throw ScriptError(meaning, text, documentID: document == UInt32.max ? nil : documentID(Int(document)))
  }
}

extension ScriptProcess {
  private static let outOfMemory: UInt8 = 7

  /// Reads a `failed` answer.
  private static func failure(_ frame: AnswerFrame) throws -> (code: UInt8, document: UInt32, text: String) {
    try frame.withPayload { (try $0.u8(), try $0.u32(), try $0.string()) }
  }
}

extension [UInt8] {
  mutating func append(u16 value: UInt16) {
    Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
  }

  mutating func append(u32 value: UInt32) {
    Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
  }

  mutating func append(text: [UInt8]) {
    append(u32: UInt32(clamping: text.count))
    append(contentsOf: text)
  }
}
