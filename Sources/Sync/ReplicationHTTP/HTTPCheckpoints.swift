import Fleece
import Network
import Replication
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The checkpoints of a connection, which the other side stores as local documents: one for each direction.
final class HTTPCheckpoints: Sendable {
  private struct State {
    var names: [String: LegacyCheckpointNames] = [:]
    /// Which database it is, as soon as the server has said it.
    var instance: String?
    /// What was saved last, by the name of the document.
    var saved: [String: (sequence: String, revision: String)] = [:]
  }

  private let requester: DatabaseRequester
  private let state: Lock<State>

  init(_ requester: DatabaseRequester, instance: String?) {
    self.requester = requester
    state = Lock(State(instance: instance))
  }

  /// Gives a checkpoint the names of its documents.
  func name(_ id: String, _ names: LegacyCheckpointNames) {
    state.withLock { $0.names[id] = names }
  }

  private func names(_ id: String) -> LegacyCheckpointNames {
    let escaped = HTTPDatabaseURL.escaped(id)
    return state.withLock { $0.names[id] }
      ?? LegacyCheckpointNames(push: escaped + ".push", pull: escaped + ".pull")
  }

  /// Reads both documents of a checkpoint.
  func read(_ id: String, _ done: @escaping Completion<StoredCheckpoint?>) {
    let names = names(id)
    let found = Lock<
      (
        push: Result<CheckpointDocument?, ReplicationError>?,
        pull: Result<CheckpointDocument?, ReplicationError>?
      )
    >(
      (nil, nil))
    @Sendable func finish() {
      let both = found.withLock {
        found -> (
          Result<CheckpointDocument?, ReplicationError>, Result<CheckpointDocument?, ReplicationError>
        )? in
        guard let push = found.push, let pull = found.pull else { return nil }
        return (push, pull)
      }
      guard let (push, pull) = both else { return }
      do {
        let (push, pull) = (try push.get(), try pull.get())
        note(names.push, push)
        note(names.pull, pull)
        done(.success(CheckpointDocument.stored(push: push, pull: pull)))
      } catch { done(.failure(ReplicationError(error))) }
    }
    readDocument(names.push) { result in
      found.withLock { $0.push = result }
      finish()
    }
    readDocument(names.pull) { result in
      found.withLock { $0.pull = result }
      finish()
    }
  }

  private func note(_ name: String, _ document: CheckpointDocument?) {
    state.withLock { state in
      state.saved[name] = document.map { ($0.sequence ?? "", $0.revision) }
    }
  }

  private func readDocument(_ name: String, _ done: @escaping Completion<CheckpointDocument?>) {
    readText(name) { done($0.map { CheckpointDocument($0) }) }
  }

  /// Reads a local document; nil if there is none.
  private func readText(_ name: String, _ done: @escaping Completion<JSONValue?>) {
    requester.ask(requester.request("GET", "_local/\(name)"), limit: 1 << 20) { result in
      done(
        result.flatMap { answer in
          switch answer.status {
          case 200: .success(answer.json)
          // Some servers have no local documents.
          case 404, 405, 501: .success(nil)
          default: .failure(answer.error("reading the checkpoint"))
          }
        })
    }
  }

  /// Saves both documents of a checkpoint, in the database that they were read from.
  func save(_ id: String, _ json: [UInt8], _ done: @escaping Completion<String>) {
    guard let value = try? json.withUnsafeBytes({ try JSONValue(json: $0) }) else {
      return done(.failure(.malformed("a checkpoint isn't JSON")))
    }
    let names = names(id)
    confirmDatabase([names.push, names.pull]) { [self] replaced in
      if let replaced { return done(.failure(replaced)) }
      write(names.push, CheckpointDocument(push: value)) { [self] push in
        guard case .success(let pushRevision) = push else { return done(push) }
        write(names.pull, CheckpointDocument(pull: value)) { pull in
          done(pull.map { "\(pushRevision) \($0)" })
        }
      }
    }
  }

  /// Sees to it that what was sent is on the disk there, since old servers keep it in memory for a while, and that the database is
  /// still the one that it was sent to. A checkpoint in another one, which was made in its place, would say that it has all of that.
  private func confirmDatabase(
    _ names: [String], _ done: @escaping @Sendable (_ replaced: ReplicationError?) -> Void
  ) {
    requester.ask(requester.request("POST", "_ensure_full_commit", json: [])) { [self] result in
      if let instance = (try? result.get())?.instance {
        let isSame = state.withLock { state in
          if state.instance == nil { state.instance = instance }
          return state.instance == instance
        }
        return done(isSame ? nil : .replaced)
      }
      // The server doesn't say which one it is. A checkpoint that was there must be there.
      let saved = state.withLock { state in
        names.first { !(state.saved[$0]?.revision ?? "").isEmpty }
      }
      guard let saved else { return done(nil) }
      readDocument(saved) { result in
        if case .success(nil) = result { done(.replaced) } else { done(nil) }
      }
    }
  }

  /// Saves one direction's document, unless it says so already.
  private func write(_ name: String, _ document: CheckpointDocument, _ done: @escaping Completion<String>) {
    let saved = state.withLock { $0.saved[name] }
    guard let sequence = document.sequence, sequence != saved?.sequence else {
      return done(.success(saved?.revision ?? ""))
    }
    var document = document
    document.revision = saved?.revision ?? ""
    let request = requester.request("PUT", "_local/\(name)", json: document.text(name))
    requester.ask(request, limit: 1 << 20) { [self] result in
      done(
        result.flatMap { answer in
          guard (200..<300).contains(answer.status) else {
            return .failure(answer.error("saving the checkpoint"))
          }
          let revision = answer.json?["rev"].string ?? ""
          state.withLock { $0.saved[name] = (sequence, revision) }
          return .success(revision)
        })
    }
  }
}

// The checkpoint of a relay: one local document, of which both sides have a copy.
extension HTTPCheckpoints {
  /// How often a document is written that others write too.
  private static let attempts = 3

  func readLocal(_ name: String, _ done: @escaping Completion<JSONObject?>) {
    readText(name) { [self] result in
      done(
        result.map { value in
          let document = value?.object
          state.withLock { $0.saved[name] = document.map { ("", $0["_rev"]?.string ?? "") } }
          return document
        })
    }
  }

  func saveLocal(_ name: String, _ body: JSONObject, _ done: @escaping Completion<Void>) {
    confirmDatabase([name]) { [self] replaced in
      if let replaced { return done(.failure(replaced)) }
      writeLocal(name, body, attempt: 1, done)
    }
  }

  private func writeLocal(
    _ name: String, _ body: JSONObject, attempt: Int, _ done: @escaping Completion<Void>
  ) {
    var document = body
    document["_id"] = .string("_local/\(name)")
    document["_rev"] = state.withLock { $0.saved[name] }.flatMap {
      $0.revision.isEmpty ? nil : .string($0.revision)
    }
    let text: [UInt8]
    do { text = try JSONValue.object(document).jsonText() } catch {
      return done(.failure(ReplicationError(error)))
    }
    requester.ask(requester.request("PUT", "_local/\(name)", json: text), limit: 1 << 20) { [self] result in
      switch result {
      case .failure(let error): done(.failure(error))
      case .success(let answer):
        switch answer.status {
        case 200..<300:
          state.withLock { $0.saved[name] = ("", answer.json?["rev"].string ?? "") }
          done(.success(()))
        // Another relay writes it too, or the answer to the last write was lost.
        case 409 where attempt < Self.attempts:
          readLocal(name) { [self] found in
            if case .failure(let error) = found { return done(.failure(error)) }
            writeLocal(name, body, attempt: attempt + 1, done)
          }
        default: done(.failure(answer.error("saving the checkpoint")))
        }
      }
    }
  }
}

extension ReplicationError {
  /// The database there isn't the one that the connection began with. The next connection begins anew.
  static let replaced = {
    var error = ReplicationError(
      .posix, Int(ECONNRESET), "the database of the other side was deleted and made again")
    error.isOfAnotherDatabase = true
    return error
  }()
}

extension HTTPClientAnswer {
  /// What tells the database from another one of its name: the time at which it was made, or opened by an old server. Nil where
  /// the server doesn't say it.
  var instance: String? {
    guard (200..<300).contains(status), let value = json?["instance_start_time"] else { return nil }
    let text = value.string ?? value.uint.map { "\($0)" } ?? ""
    return text.isEmpty || text == "0" ? nil : text
  }
}
