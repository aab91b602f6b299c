import Bytes
import System

/// JavaScript, run by SpiderMonkey in `touchstone-scripts` (docs/scripts.md).
package final class JavaScript: ScriptLanguage {
  package let name = "javascript"

  /// The program that compiles design documents, and runs maps and reduce functions.
  package let process: ScriptProcess
  /// The program that runs filters and validation functions: somebody waits for each of them, and they don't have to wait for maps.
  package let functions: ScriptProcess

  /// Makes the language. Nothing is started before a design document is opened.
  package init(process: ScriptProcess = ScriptProcess()) {
    self.process = process
    functions = process.another
  }

  package func open(designDocument: [UInt8]) throws -> any ScriptContext {
    try JavaScriptContext(process, functions, designDocument)
  }
}

/// The functions of a design document in JavaScript. They are compiled again when the program was started again.
final class JavaScriptContext: ScriptContext {
  let views: [ScriptView]
  let hasValidation: Bool
  private let process: ScriptProcess
  private let opening: ScriptProcess.Opening
  private let functions: ScriptProcess
  /// Nil before a filter or the validation function is first called.
  private let functionsOpening: Lock<ScriptProcess.Opening?>

  init(_ process: ScriptProcess, _ functions: ScriptProcess, _ designDocument: [UInt8]) throws {
    self.process = process
    self.functions = functions
    opening = process.newContext(designDocument)
    if let found = try process.openAtOnce(opening, Self.read) {
      (hasValidation, views) = found
      functionsOpening = Lock(nil)
      return
    }
    // The other program maps, which may take long. It compiles the document when it needs it.
    let other = functions.newContext(designDocument)
    (hasValidation, views) = try functions.open(other, Self.read)
    functionsOpening = Lock(other)
  }

  /// Reads the answer to `open`.
  private static func read(_ cursor: inout FrameCursor) throws -> (hasValidation: Bool, views: [ScriptView]) {
    let hasValidation = try cursor.u8() == 1
    var views: [ScriptView] = []
    for _ in 0..<(try cursor.u32()) {
      let name = try cursor.string()
      let kind = try cursor.u8()
      let builtIn = try cursor.string()
      views.append(
        ScriptView(name: name, reduce: kind == 0 ? .none : kind == 1 ? .script : .builtIn(builtIn)))
    }
    return (hasValidation, views)
  }

  deinit { close() }

  func close() {
    process.close(opening.number)
    if let opening = functionsOpening.withLock({ $0 }) { functions.close(opening.number) }
  }

  /// The design document in the program of filters and validation functions.
  private var opened: ScriptProcess.Opening {
    functionsOpening.withLock { known in
      let opening = known ?? functions.newContext(self.opening.designDocument)
      known = opening
      return opening
    }
  }

  func beginMapping(_ batch: ScriptBatch, views: [Int]) throws -> any ScriptMapping {
    try JavaScriptMapping(self, process, opening, batch, views)
  }

  func reduce(view: Int, keys: RawSpan?, values: RawSpan, rereduce: Bool) throws -> [UInt8] {
    var head: [UInt8] = []
    head.append(u16: try place(view))
    head.append(rereduce ? 1 : 0)
    if let keys {
      keys.withUnsafeBytes { head.append(text: Array($0)) }
    } else {
      head.append(u32: 0)
    }
    values.withUnsafeBytes { head.append(text: Array($0)) }
    let name = views[view].name
    return try ask(
      .init(type: 4, head: head), .value, of: process, opening,
      doing: "the reduce function of the view '\(name)'"
    ) { cursor in
      let json = Array(try cursor.text())
      for _ in 0..<(try cursor.u16()) { _ = try cursor.text() }
      return json
    }
  }

  func filter(
    _ name: String, _ batch: ScriptBatch, request: [UInt8], checkWanted: () throws -> Void
  ) throws -> [Bool] {
    try filter(name, isView: false, batch, request, checkWanted)
  }

  func filter(view name: String, _ batch: ScriptBatch, checkWanted: () throws -> Void) throws -> [Bool] {
    try filter(name, isView: true, batch, [], checkWanted)
  }

  private func filter(
    _ name: String, isView: Bool, _ batch: ScriptBatch, _ request: [UInt8], _ checkWanted: () throws -> Void
  ) throws -> [Bool] {
    var head: [UInt8] = [isView ? 1 : 0]
    head.append(text: Array(name.utf8))
    head.append(text: request)
    var chosen: [Bool] = []
    var isAlone = false
    while chosen.count < batch.count {
      try checkWanted()
      let first = chosen.count
      if !isAlone {
        let rest = ScriptProcess.Request(type: 5, head: head, batch: batch, range: first..<batch.count)
        do {
          chosen += try choices(
            try functions.answers(to: try functions.submit(rest, to: opened)), batch, rest.range)
          continue
        } catch let error where error is ScriptChild.Lost || error is FrameFault { isAlone = true }
      }
      // One by one, so that an error names the document.
      let one = ScriptProcess.Request(type: 5, head: head, batch: batch, range: first..<first + 1)
      chosen += try functions.blaming("the filter '\(name)'", document: batch.id(first)) {
        try choices(try functions.askAlone(one, of: opened), batch, one.range)
      }
    }
    return chosen
  }

  /// The choices for the first documents of a range, one at least.
  private func choices(_ answers: [AnswerFrame], _ batch: ScriptBatch, _ range: Range<Int>) throws -> [Bool] {
    guard let last = answers.last else { throw FrameFault() }
    try ScriptProcess.check(last, .selected) { $0 < range.count ? batch.id(range.lowerBound + $0) : nil }
    return try last.withPayload { cursor in
      let choices = try cursor.text().map { $0 != 0 }
      guard (1...range.count).contains(choices.count) else { throw FrameFault() }
      return choices
    }
  }

  func validate(_ document: [UInt8], old: [UInt8]?, user: [UInt8], security: [UInt8]) throws -> ScriptVerdict
  {
    guard hasValidation else { return .allowed }
    var head: [UInt8] = []
    for text in [document, old ?? [], user, security] { head.append(text: text) }
    return try ask(
      .init(type: 6, head: head), .verdict, of: functions, opened, doing: "the validation function"
    ) { cursor in
      let code = try cursor.u8()
      let text = try cursor.string()
      for _ in 0..<(try cursor.u16()) { _ = try cursor.text() }
      return code == 1 ? .forbidden(text) : code == 2 ? .unauthorized(text) : .allowed
    }
  }

  /// Makes a request that has one answer. When the program ends, it is asked once more and nothing else is.
  private func ask<Result>(
    _ request: ScriptProcess.Request, _ kind: AnswerFrame.Kind, of process: ScriptProcess,
    _ opening: ScriptProcess.Opening, doing what: String, _ read: (inout FrameCursor) throws -> Result
  ) throws -> Result {
    func last(_ answers: [AnswerFrame]) throws -> Result {
      guard let last = answers.last else { throw FrameFault() }
      try ScriptProcess.check(last, kind) { _ in nil }
      return try last.withPayload(read)
    }
    do {
      return try last(try process.answers(to: try process.submit(request, to: opening)))
    } catch let error where error is ScriptChild.Lost || error is FrameFault {
      return try process.blaming(what, document: nil) { try last(try process.askAlone(request, of: opening)) }
    }
  }

  fileprivate func place(_ view: Int) throws -> UInt16 {
    guard views.indices.contains(view), let place = UInt16(exactly: view) else {
      throw ScriptError(.missing, "The design document has no view \(view).")
    }
    return place
  }
}

/// A batch that JavaScript maps.
private final class JavaScriptMapping: ScriptMapping {
  private let context: JavaScriptContext
  private let process: ScriptProcess
  private let opening: ScriptProcess.Opening
  private let batch: ScriptBatch
  private let views: [Int]
  private let head: [UInt8]
  private var ticket: ScriptProcess.Ticket?
  private(set) var documentCount = 0
  /// Whether the program ended: then documents are mapped one by one, so that an error names the one that is at fault.
  private var isAlone = false

  init(
    _ context: JavaScriptContext, _ process: ScriptProcess, _ opening: ScriptProcess.Opening,
    _ batch: ScriptBatch,
    _ views: [Int]
  ) throws {
    self.context = context
    self.process = process
    self.opening = opening
    self.batch = batch
    self.views = views
    var head: [UInt8] = []
    head.append(u16: UInt16(clamping: views.count))
    for view in views { head.append(u16: try context.place(view)) }
    self.head = head
    guard !views.isEmpty, batch.count > 0 else { return }
    do {
      ticket = try process.submit(request(0..<batch.count), to: opening)
    } catch let error where error is ScriptChild.Lost || error is FrameFault { isAlone = true }
  }

  deinit { if let ticket { process.abandon(ticket) } }

  func next() throws -> ScriptRows? {
    guard !views.isEmpty, documentCount < batch.count else { return nil }
    if !isAlone {
      do {
        let rest = documentCount..<batch.count
        let sent = try ticket ?? process.submit(request(rest), to: opening)
        ticket = nil
        return try take(try process.answers(to: sent), rest)
      } catch let error where error is ScriptChild.Lost || error is FrameFault { isAlone = true }
    }
    let one = documentCount..<documentCount + 1
    return try process.blaming("a map function", document: batch.id(documentCount)) {
      try take(try process.askAlone(request(one), of: opening), one)
    }
  }

  private func request(_ range: Range<Int>) -> ScriptProcess.Request {
    let type = isAlone ? ScriptProcess.Request.mapAlone : ScriptProcess.Request.map
    return .init(type: type, head: head, batch: batch, range: range)
  }

  /// Takes the rows of the first documents of a range, one at least.
  private func take(_ answers: [AnswerFrame], _ range: Range<Int>) throws -> ScriptRows {
    guard let last = answers.last else { throw FrameFault() }
    try ScriptProcess.check(last, .mapped) { $0 < range.count ? batch.id(range.lowerBound + $0) : nil }
    var rows = ScriptRows(viewCount: views.count)
    for frame in answers.dropLast() {
      guard frame.kind == .rows else { throw FrameFault() }
      try rows.append(frame)
    }
    let count = Int(try last.withPayload { try $0.u32() })
    guard (1...range.count).contains(count), rows.documentCount == count else { throw FrameFault() }
    documentCount += count
    return rows
  }
}
