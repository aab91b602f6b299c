import Documents
import Touchstone

/// A filter that a database offers to replicators that pull from it. They choose it by its name and give it parameters. It is
/// called on a background thread, not in a transaction.
package typealias NamedFilter =
  @Sendable (FilteredRevision, _ parameters: [String: String]) throws -> Bool

extension PassiveResponder {
  /// The filter that a request names with its parameters, nil if it names none. Throws LiteCore 19 if there is no such filter.
  func filter(of request: PullRequest) throws -> ReplicationFilter? {
    guard request.filter != nil || request.channels != nil else { return nil }
    guard let name = request.filter, let filter = options.filters[name] else {
      throw ReplicationError.noFilter(
        options.filters.isEmpty
          ? "Filtering not supported" : "there is no filter '\(request.filter ?? "")' here")
    }
    let parameters = request.filterParameters.compactMapValues(\.string)
    return { try filter($0, parameters) }
  }
}

extension Database {
  /// The changes whose revisions pass. One that was replaced meanwhile is left out: it comes again with a later sequence. Bodies
  /// are read together up to `bytesTogether`.
  func choose(_ changes: [SyncChange], bytesTogether: Int, _ passes: ReplicationFilter) throws -> [SyncChange]
  {
    var chosen: [SyncChange] = []
    var rest = changes[...]
    while !rest.isEmpty {
      var bytes = 0
      let part = rest.prefix { change in
        defer { bytes += change.bodyBytes }
        return bytes < bytesTogether
      }
      rest = rest[part.endIndex...]
      let readings = try replicating { store in
        try store.syncRevisions(
          part.map { SyncWanted(id: $0.id, revision: $0.revision, ancestors: [], maximumHistory: 0) })
      }
      for (change, reading) in zip(part, readings) {
        guard case .revision(let revision) = reading else { continue }
        if try passes(FilteredRevision(revision)) { chosen.append(change) }
      }
    }
    return chosen
  }
}
