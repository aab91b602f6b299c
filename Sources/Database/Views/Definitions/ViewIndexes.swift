import Bytes
import Documents
import Fleece
import Logs
import Scripts
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The views of one open database: the functions that the process has set, and the stored rows. Used from any thread.
package final class ViewIndexes: Sendable {
  package let store: DocumentStore
  /// Threads for asynchronous calls and for updates after queries.
  let workers: Workers
  private let registered = Lock<[ByteString: RegisteredView]>([:])
  private let groups = Lock<[ByteString: GroupLock]>([:])
  /// Called when a map or reduce function is set.
  private let redefinitionHandlers = Lock<(last: UInt64, handlers: [UInt64: @Sendable (String) -> Void])>(
    (0, [:]))
  /// Mapped rows are stored when they take this much memory. For tests.
  package let memoryLimit = Lock(GroupUpdate.defaultMemoryLimit)

  /// Whether the database is being closed: updates in the background end then.
  package let isEnding = Lock(false)

  /// The views that are to be brought up to date in the background.
  private let later = Lock<Set<ByteString>>([])
  /// The languages of design documents.
  let languages: [any ScriptLanguage]
  private let designs = Lock<[ByteString: DesignDocument]>([:])
  /// Those that aren't stored, for one query each.
  private let temporaryDesigns = Lock<[ByteString: DesignDocument]>([:])
  /// Those whose views don't compile, without their views.
  private let withoutViews = Lock<[ByteString: DesignDocument]>([:])
  /// The indexes of `_find`, as they were read last.
  let mangoIndexes = Lock<KnownMangoIndexes?>(nil)

  /// `languages` are those besides that of the indexes of `_find`.
  package init(
    _ store: DocumentStore, workers: Workers, languages: [any ScriptLanguage] = [JavaScript()]
  ) {
    self.store = store
    self.workers = workers
    self.languages = languages + [MangoLanguage()]
  }

  /// The functions of a view. They change under the lock.
  final class RegisteredView: Sendable {
    struct State: Sendable {
      var definition: ViewDefinition?
      var reduce: ViewReduce?
      var lastUpdate = ViewUpdate()
    }

    let state = Lock(State())
  }

  /// The functions of a view; nil if there are none.
  func known(_ name: String) -> RegisteredView.State? {
    registered.withLock { $0[ByteString(name)] }?.state.withLock { $0 }
  }

  /// The functions of a view, to be set. What is only asked for isn't kept.
  func registered(_ name: String) -> RegisteredView {
    registered.withLock { views in
      let key = ByteString(name)
      if let view = views[key] { return view }
      let view = RegisteredView()
      views[key] = view
      return view
    }
  }

  /// The number of views that the process keeps something of.
  var registeredCount: Int { registered.withLock { $0.count } }

  func forget(_ name: String) { _ = registered.withLock { $0.removeValue(forKey: ByteString(name)) } }

  func redefined(_ name: String) {
    for handler in redefinitionHandlers.withLock({ Array($0.handlers.values) }) { handler(name) }
  }

  /// Calls `handler` with the name of a view whenever its map or reduce function is set. Returns a number to remove it by.
  package func addRedefinitionHandler(_ handler: @escaping @Sendable (_ view: String) -> Void) -> UInt64 {
    redefinitionHandlers.withLock { state in
      state.last += 1
      state.handlers[state.last] = handler
      return state.last
    }
  }

  /// Removes a handler.
  package func removeRedefinitionHandler(_ number: UInt64) {
    _ = redefinitionHandlers.withLock { $0.handlers.removeValue(forKey: number) }
  }

  /// The names of the views that have stored rows or functions, ordered by their bytes.
  package func names() throws -> [String] {
    var names = Set(
      registered.withLock { views in
        views.filter { $0.value.state.withLock { $0.definition != nil } }.map(\.key)
      })
    try store.read { snapshot in
      try ViewRecord.forEach(in: snapshot.storage) { name, _ in names.insert(ByteString(name)) }
      try snapshot.forEachDesign { name, body in
        for (view, definition) in body["views"]?.object ?? JSONObject() where definition.object?["map"] != nil
        {
          names.insert(ByteString(ViewName.joined(name, view)))
        }
      }
    }
    return names.sorted().map(\.string)
  }

  // MARK: Design documents

  /// Returns a design document with its functions compiled, as it is now; nil if there is none. `name` is what follows
  /// `_design/` in its ID. Throws `invalidDesign` for one that can't be compiled.
  package func design(_ name: String) throws -> DesignDocument? {
    let key = ByteString(name)
    if let temporary = temporaryDesigns.withLock({ $0[key] }) { return temporary }
    if let known = designs.withLock({ $0[key] }), try store.read({ try isCurrent(known, in: $0) }) {
      return known
    }
    guard let (revisionID, body) = try designBody(name) else {
      _ = designs.withLock { $0.removeValue(forKey: key) }
      _ = withoutViews.withLock { $0.removeValue(forKey: key) }
      return nil
    }
    // Of a former revision, what the program of scripts holds is freed before others need it.
    _ = designs.withLock { $0.removeValue(forKey: key) }
    _ = withoutViews.withLock { $0.removeValue(forKey: key) }
    try forgetDeletedDesigns()
    let design = try DesignDocument(name, revisionID: revisionID, body, languages: languages)
    designs.withLock { $0[key] = design }
    return design
  }

  /// Frees the functions of design documents that aren't there any more.
  private func forgetDeletedDesigns() throws {
    let names = designs.withLock { Array($0.keys) } + withoutViews.withLock { Array($0.keys) }
    guard !names.isEmpty else { return }
    try store.read { snapshot in
      for name in names where try snapshot.document(DesignDocument.idPrefix + name.string) == nil {
        _ = designs.withLock { $0.removeValue(forKey: name) }
        _ = withoutViews.withLock { $0.removeValue(forKey: name) }
      }
    }
  }

  /// Whether a design document is as it was when its functions were compiled.
  func isCurrent(_ design: DesignDocument) throws -> Bool {
    if let temporary = temporaryDesigns.withLock({ $0[ByteString(design.name)] }) {
      return temporary === design
    }
    return try store.document(DesignDocument.idPrefix + design.name)?.revisionID == design.revisionID
  }

  private func isCurrent(_ design: DesignDocument, in snapshot: DocumentSnapshot) throws -> Bool {
    try snapshot.hasDesign(DesignDocument.idPrefix + design.name, at: design.revisionID)
  }

  /// Adds a design document that isn't stored. Its views have rows in the database until `removeTemporaryDesign`.
  package func addTemporaryDesign(_ name: String, _ body: JSONObject) throws {
    let design = try DesignDocument(
      name, revisionID: RevisionID("1-temporary"), body, languages: languages)
    temporaryDesigns.withLock { $0[ByteString(name)] = design }
  }

  /// A design document that isn't stored.
  func temporaryDesigns(_ name: String) -> DesignDocument? {
    temporaryDesigns.withLock { $0[ByteString(name)] }
  }

  /// Whether a view is one of a design document that isn't stored.
  func isTemporary(_ view: String) -> Bool {
    guard let parts = ViewName.parts(of: view) else { return false }
    return temporaryDesigns.withLock { $0[ByteString(parts.design)] != nil }
  }

  /// Removes a design document that isn't stored, and the rows of its views.
  package func removeTemporaryDesign(_ name: String) throws {
    guard let design = temporaryDesigns.withLock({ $0.removeValue(forKey: ByteString(name)) }) else { return }
    try store.writingDerived { transaction in
      for member in design.members { _ = try ViewRecord.delete(member.name, in: transaction) }
    }
    for member in design.members { forget(member.name) }
  }

  func designBody(_ name: String) throws -> (RevisionID, JSONObject)? {
    try store.read { snapshot in
      let document: Document?
      do { document = try snapshot.document(DesignDocument.idPrefix + name) } catch let error as DocumentError
        where error.code == .invalidDocumentID
      { return nil }
      guard let document else { return nil }
      return (document.revisionID, try document.value().object ?? JSONObject())
    }
  }

  /// Returns the filters and the validation function of a design document, nil if there is none. A view that doesn't
  /// compile doesn't matter for them.
  func functions(of name: String) throws -> (any ScriptContext)? {
    do { return try design(name)?.context } catch let error as ViewError where error.code == .invalidDesign {
      guard let (revisionID, body) = try designBody(name) else { return nil }
      let key = ByteString(name)
      if let known = withoutViews.withLock({ $0[key] }), known.revisionID == revisionID {
        return known.context
      }
      var reduced = body
      reduced["views"] = nil
      let design = try DesignDocument(name, revisionID: revisionID, reduced, languages: languages)
      withoutViews.withLock { $0[key] = design }
      return design.context
    }
  }

  /// Returns the design document that a view is of: one without functions of this process.
  private func design(ofView name: String) throws -> DesignDocument? {
    guard known(name)?.definition == nil, let parts = ViewName.parts(of: name),
      let design = try design(parts.design), design.reduce(of: name) != nil
    else { return nil }
    return design
  }

  /// What a view is reduced with.
  func reduce(of name: String) throws -> ViewReduce? {
    if let design = try design(ofView: name) { return design.reduce(of: name) ?? nil }
    return known(name)?.reduce
  }

  /// Whether a view has a map function.
  func hasMap(_ name: String) throws -> Bool {
    try known(name)?.definition != nil || design(ofView: name) != nil
  }

  // MARK: Updating

  /// The stored design document of a view, if its functions were compiled before and it is still the same in a snapshot.
  func compiledDesign(ofView name: String, in snapshot: DocumentSnapshot) throws -> DesignDocument? {
    guard known(name)?.definition == nil, let parts = ViewName.parts(of: name),
      temporaryDesigns(parts.design) == nil,
      let design = designs.withLock({ $0[ByteString(parts.design)] }), try isCurrent(design, in: snapshot)
    else { return nil }
    return design
  }

  /// Whether the rows of all views of a view's design document are as new as the database. False may also mean that this isn't known.
  private func isGroupFresh(_ name: String) throws -> Bool {
    try store.read { snapshot in
      guard let design = try compiledDesign(ofView: name, in: snapshot), design.reduce(of: name) != nil
      else { return false }
      let transaction = try snapshot.storage
      return try design.members.allSatisfy { member in
        try ViewRecord.read(member.name, in: transaction)?.isFresh(member, in: snapshot) ?? false
      }
    }
  }

  /// The group of a view, as it is now. Throws `notFound` if the view has no map function.
  func group(of name: String, watch: UpdateWatch? = nil) throws -> UpdateGroup {
    if let design = try design(ofView: name) {
      watch?.begin(design, self)
      return design.group(path: store.logPath) { try watch?.check() }
    }
    let group = ViewName.group(of: name)
    let views = registered.withLock { views in
      views.filter { ViewName.group(of: $0.key.string) == group }.sorted { $0.key < $1.key }
    }
    var members: [GroupMember] = []
    for (key, view) in views {
      let (definition, reduce) = view.state.withLock { ($0.definition, $0.reduce) }
      guard let definition else { continue }
      members.append(
        GroupMember(
          name: key.string, map: definition.map, mapVersion: definition.mapVersion,
          collation: definition.collation,
          documentType: definition.documentType, reducer: reduce?.reducer, language: definition.language))
    }
    guard members.contains(where: { $0.name.hasSameBytes(as: name) }) else {
      throw ViewError(.notFound, "it has no map function: set one with setMap", view: name)
    }
    let all = members
    return UpdateGroup(members: all, options: MapOptions()) { encoders, report in
      ClosureMapper(all, encoders, report: report)
    }
  }

  /// How often an update begins again because its design document has changed.
  private static let updateAttempts = 100

  /// Brings a view and its group up to date. An update with scripts asks `isWanted` every now and then, and throws `closed` if it
  /// returns false.
  @discardableResult
  func update(
    _ name: String, cancellation: JobCancellation? = nil, isWanted: @escaping () -> Bool = { true }
  ) throws -> ViewUpdate {
    for _ in 0..<ViewIndexes.updateAttempts {
      do { return try updateOnce(name, cancellation, isWanted) } catch is UpdateWatch.DesignChanged {}
    }
    throw ViewError(.busy, "its design document changes again and again", view: name)
  }

  private func updateOnce(
    _ name: String, _ cancellation: JobCancellation?, _ isWanted: @escaping () -> Bool
  ) throws -> ViewUpdate {
    // Most queries come without a change before them.
    if try !store.isInBatch && isGroupFresh(name) { return ViewUpdate() }
    let watch = UpdateWatch(cancellation, isWanted)
    let group = try group(of: name, watch: watch)
    func run() throws -> ViewUpdate {
      if let design = watch.design { try removeVanished(design) }
      let limit = memoryLimit.withLock { $0 }
      let begin = LogClock.now
      let update = try GroupUpdate(store, group, memoryLimit: limit, cancellation: cancellation).run()
      log(update, name, LogClock.now - begin)
      if update.documents > 0 {
        for member in group.members { registered(member.name).state.withLock { $0.lastUpdate = update } }
      }
      return update
    }
    // The thread of a batch is the only writer. It must not wait for a thread that waits to write.
    if store.isInBatch { return try run() }
    return try lock(of: name).run(run)
  }

  /// Brings a view up to date in the background.
  func updateLater(_ name: String) {
    let begins = later.withLock { $0.insert(ByteString(name)).inserted }
    guard begins else { return }
    workers.enqueue { [self] in
      _ = later.withLock { $0.remove(ByteString(name)) }
      guard !isEnding.withLock({ $0 }) else { return }
      do {
        try store.inBackground { _ = try update(name) { [self] in !isEnding.withLock { $0 } } }
      } catch {
        Log.write(
          .verbose, .index, store.logPath, "can't bring the view '\(name)' up to date: \(LogText.of(error))")
      }
    }
  }

  private func log(_ update: ViewUpdate, _ name: String, _ nanoseconds: UInt64) {
    guard update.documents > 0 else { return }
    Log.write(
      .verbose, .index, store.logPath,
      "brought the view '\(name)' up to date in \(LogText.milliseconds(nanoseconds)): \(update.documents) documents, \(update.changedRows) changed rows"
    )
    guard let first = update.faults.first else { return }
    Log.write(
      .warning, .index, store.logPath,
      "the map function of the view '\(first.view)' failed on the document '\(first.documentID)'\(update.faultCount > 1 ? " and \(update.faultCount - 1) more" : "")"
    )
  }

  private func lock(of name: String) -> GroupLock {
    let group = ViewName.group(of: name)
    return groups.withLock { groups in
      if let lock = groups[group] { return lock }
      let lock = GroupLock()
      groups[group] = lock
      return lock
    }
  }
}

/// Lets one thread at a time update a group.
final class GroupLock: Sendable {
  private let lock = Lock(())
  private let owner = Lock<UInt>(0)

  /// Throws when the thread updates this group already: a map function uses its own view.
  func run<Result>(_ body: () throws -> Result) throws -> Result {
    let thread = UInt(pthread_self())
    guard owner.withLock({ $0 }) != thread else {
      throw ViewError(.invalidArgument, "a map function can't query a view of its own group")
    }
    return try lock.withLock { _ in
      owner.withLock { $0 = thread }
      defer { owner.withLock { $0 = 0 } }
      return try body()
    }
  }
}

extension DocumentSnapshot {
  /// Calls `body` with the name and the body of each design document.
  func forEachDesign(_ body: (_ name: String, _ body: JSONObject) throws -> Void) throws {
    let keys = try sharedKeys
    try forEachDocument(in: .prefix(DocumentID.designPrefix), order: .ascending) { document in
      guard let value = document.body, let object = try value.jsonValue(sharedKeys: keys).object else {
        return true
      }
      if let name = DesignDocument.name(ofID: document.id) { try body(name, object) }
      return true
    }
  }
}
