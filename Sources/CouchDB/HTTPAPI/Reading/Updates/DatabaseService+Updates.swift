import Fleece
import HTTP
import Views

extension DatabaseService {
  /// The answer to `_db_updates`. Its options are those of `_changes` that make sense.
  func databaseUpdates(_ request: HTTPRequest, _ query: APIQuery) throws -> HTTPAnswer {
    let options = try ChangesOptions(
      query.items.map { ($0.name.string, $0.value.string) },
      lastEventID: request.headers.first("last-event-id"), updates.sequences)
    try updates.begin()
    let last = updates.last
    var position = last
    if case .sequence(let sequence) = options.since { position = sequence > last ? 0 : sequence }
    guard options.feed != .normal, !options.isDescending else {
      return try normalUpdates(request, options, after: options.isDescending ? 0 : position)
    }
    var headers: [HTTPHeader] = [.json]
    if options.feed == .eventsource {
      headers = [.init("Content-Type", "text/event-stream"), .init("Cache-Control", "no-cache")]
    }
    guard request.method != "HEAD" else {
      return HTTPAnswer(status: 200, headers: headers, body: .stream { $0.fail() })
    }
    let feed = DatabaseUpdatesFeed(updates, after: position, options, watches, rights)
    let (origin, user) = (request.origin, request.context)
    return HTTPAnswer(status: 200, headers: headers, body: .stream { feed.start($0, user, origin) })
  }

  private func normalUpdates(_ request: HTTPRequest, _ options: ChangesOptions, after position: UInt64) throws
    -> HTTPAnswer
  {
    if request.method == "HEAD" { return .headOfJSON() }
    let (events, last) = updates.events(after: position)
    var writer = DatabaseUpdatesWriter(options, updates.sequences)
    var reached = options.limit < events.count ? position : last
    for event in (options.isDescending ? events.reversed() : events).prefix(options.limit) {
      writer.append(event)
      if options.limit < events.count || options.isDescending { reached = event.sequence }
    }
    return .json(text: Array(writer.head.utf8) + writer.take() + Array(writer.tail(reached).utf8))
  }
}
