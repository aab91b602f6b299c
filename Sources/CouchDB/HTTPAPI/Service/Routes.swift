import Bytes
import HTTP
import Views

// What the service answers, by path and method. docs/http.md has the same table; a test compares them.

/// A request to the server as a whole while it is answered.
struct ServerCall: Sendable {
  let service: DatabaseService
  let request: HTTPRequest
  /// The segments of the path, decoded; without empty ones.
  let path: [ByteString]
  /// The options in the query string.
  let query: APIQuery
}

enum Routes {
  /// Below `/`.
  static let server = RouteTable<ServerCall>([
    Route("", "GET", "HEAD") { call, _ in try call.service.welcome() },
    Route("_up", "GET", "HEAD") { _, _ in try DatabaseService.up() },
    Route("_uuids", "GET") { call, _ in try call.service.uuids(call.query) },
    Route("_all_dbs", "GET", "HEAD") { call, _ in try call.service.allDatabases(call.request, call.query) },
    Route("_dbs_info", "GET", "POST") { call, _ in try call.service.databasesInfo(call.request, call.query) },
    Route("_session", "GET", "HEAD", "POST", "DELETE") { call, _ in try call.service.session(call.request) },
    Route("_active_tasks", "GET", "HEAD") { call, _ in try call.service.activeTasks() },
    Route("_metrics", "GET", "HEAD") { call, _ in try call.service.metricsAnswer() },
    Route("_membership", "GET") { _, _ in try DatabaseService.membership() },
    Route("_node/_local", "GET") { _, _ in try DatabaseService.localNode() },
    Route("_scheduler/jobs", "GET", "HEAD") { call, _ in try call.service.schedulerJobs(call.query) },
    Route("_scheduler/jobs/{id}", "GET", "HEAD") { call, values in
      try call.service.schedulerJob(values[0])
    },
    Route("_scheduler/docs", "GET", "HEAD") { call, _ in try call.service.schedulerDocuments(call.query) },
    Route("_scheduler/docs/_replicator", "GET", "HEAD") { call, _ in
      try call.service.schedulerDocuments(call.query)
    },
    Route("_scheduler/docs/_replicator/{doc}/…", "GET", "HEAD") { call, _ in
      try call.service.schedulerDocument(call.path.dropFirst(3).map(\.string).joined(separator: "/"))
    },
    Route("_scheduler/…", "GET", "HEAD") { _, _ in throw CouchDBError.missing },
    // A request without a body is refused for that first.
    Route("_replicate", "POST", checksMethod: false) { call, _ in try call.service.replicate(call.request) },
    .notImplemented("_node/…"),
    .notImplemented("_cluster_setup/…"),
    .notImplemented("_reshard/…"),
    .notImplemented("_db_updates/…"),
    .notImplemented("_search_analyze/…"),
    .notImplemented("_nouveau_analyze/…"),
    .notImplemented("_utils/…"),
  ])

  /// A database itself. `PUT` makes one; CouchDB leaves it out where it names the methods.
  static let wholeDatabase = Route<DatabaseCall>("{db}", "DELETE", "GET", "HEAD", "POST") { call, _ in
    try call.wholeAnswer()
  }

  /// Below `/{db}/`, before what is a document. `_design%2FD` is `_design/D` here.
  static let database = RouteTable<DatabaseCall>([
    Route("_ensure_full_commit", "POST") { call, _ in try call.ensureFullCommit() },
    Route("_compact", "POST") { call, _ in try call.compact() },
    Route("_compact/{design}", "POST") { call, values in try call.compactViews(values[0]) },
    Route("_revs_limit", "PUT", "GET") { call, _ in try call.revisionsLimit() },
    Route("_purged_infos_limit", "GET", "PUT") { call, _ in try call.purgedInfosLimit() },
    Route("_security", "PUT", "GET") { call, _ in try call.security() },
    Route("_all_docs", "GET", "HEAD", "POST") { call, _ in try call.list(.documents(.all)) },
    Route("_design_docs", "GET", "HEAD", "POST") { call, _ in try call.list(.documents(.design)) },
    Route("_local_docs", "GET", "HEAD", "POST") { call, _ in try call.list(.local) },
    Route("_all_docs/queries", "POST") { call, _ in try call.listQueries(.documents(.all)) },
    Route("_design_docs/queries", "POST") { call, _ in try call.listQueries(.documents(.design)) },
    Route("_local_docs/queries", "POST") { call, _ in try call.listQueries(.local) },
    Route("_changes", "GET", "POST", "HEAD") { call, _ in try call.changes() },
    // A service that has none says so first.
    Route("_temp_view", "POST", checksMethod: false) { call, _ in try call.temporaryView() },
    Route("_view_cleanup", "POST") { call, _ in try call.cleanViews() },
    Route("_query", "POST") { call, _ in try call.runQuery() },
    Route("_find", "POST") { call, _ in try call.find() },
    Route("_explain", "POST") { call, _ in try call.explain() },
    Route("_index", "GET", "POST") { call, _ in try call.mangoIndexes() },
    Route("_index/_bulk_delete", "POST") { call, _ in try call.deleteIndexes() },
    Route("_index/_design/{design}/{type}/{name}", "DELETE") { call, values in
      try call.deleteIndex(values[0], values[1], values[2])
    },
    Route("_index/{design}/{type}/{name}", "DELETE") { call, values in
      try call.deleteIndex(values[0], values[1], values[2])
    },
    Route("_design/{design}/_view") { _, _ in throw MethodNotAllowed(["GET", "POST", "HEAD"]) },
    Route("_design/{design}/_view/{view}", "GET", "POST", "HEAD") { call, values in
      try call.view(values[0], values[1])
    },
    Route("_design/{design}/_view/{view}/queries", "POST") { call, values in
      try call.viewQueries(values[0], values[1])
    },
    Route("_design/{design}/_info", "GET") { call, values in try call.designInformation(values[0]) },
    .notImplemented("_design/{design}/_show/…"),
    .notImplemented("_design/{design}/_list/…"),
    .notImplemented("_design/{design}/_update/…"),
    .notImplemented("_design/{design}/_rewrite/…"),
    .notImplemented("_design/{design}/_search/…"),
    .notImplemented("_design/{design}/_search_info/…"),
    .notImplemented("_design/{design}/_search_disk_size/…"),
    .notImplemented("_design/{design}/_nouveau/…"),
    .notImplemented("_design/{design}/_nouveau_info/…"),
    Route("_bulk_docs", "POST") { call, _ in try call.bulkDocumentsAnswer() },
    Route("_bulk_get", "POST") { call, _ in try call.bulkGetAnswer() },
    Route("_revs_diff", "POST") { call, _ in try call.revisionsDifferenceAnswer() },
    Route("_missing_revs", "POST") { call, _ in try call.missingRevisionsAnswer() },
    Route("_purge", "POST") { call, _ in try call.purgeAnswer() },
    Route("_purged_infos", "GET") { call, _ in try call.purgedInfosAnswer() },
    .notImplemented("_shards/…"),
    .notImplemented("_sync_shards/…"),
    .notImplemented("_partition/…"),
    .notImplemented("_auto_purge/…"),
    .notImplemented("_search_cleanup/…"),
    .notImplemented("_nouveau_cleanup/…"),
  ])

  /// A document. Its ID and the name of an attachment can have several segments.
  static let document = Route<DatabaseCall>("{doc}", "DELETE", "GET", "HEAD", "POST", "PUT", "COPY") {
    call, values in try call.documentAnswer(values[0])
  }
  static let localDocument = Route<DatabaseCall>(
    "_local/{doc}", "DELETE", "GET", "HEAD", "POST", "PUT", "COPY"
  ) { call, values in try call.localAnswer(values[0]) }
  static let attachment = Route<DatabaseCall>("{doc}/{attachment}/…", "DELETE", "GET", "HEAD", "PUT") {
    call, values in try call.attachmentAnswer(values[0], values[1])
  }

  /// The paths of all lines with their methods, in order: `any`, or `501` for what CouchDB has and this server hasn't.
  static var all: [(path: String, methods: String)] {
    func line<Call>(_ base: String, _ route: Route<Call>, _ more: [String] = []) -> (String, String) {
      let methods = route.isImplemented ? (more + route.methods).joined(separator: ", ") : "501"
      return (base + route.pattern, methods.isEmpty ? "any" : methods)
    }
    return server.routes.map { line("/", $0) } + [line("/", wholeDatabase, ["PUT"])]
      + (database.routes + [document, localDocument, attachment]).map { line("/{db}/", $0) }
  }
}
