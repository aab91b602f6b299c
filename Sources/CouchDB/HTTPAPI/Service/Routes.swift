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
    Route("", .everybody("GET", "HEAD")) { call, _ in try call.service.welcome() },
    Route("_up", .everybody("GET", "HEAD")) { _, _ in try DatabaseService.up() },
    Route("_uuids", .everybody("GET")) { call, _ in try call.service.uuids(call.query) },
    Route("_all_dbs", .serverAdmin("GET", "HEAD")) { call, _ in
      try call.service.allDatabases(call.request, call.query)
    },
    Route("_db_updates", .serverAdmin("GET")) { call, _ in
      try call.service.databaseUpdates(call.request, call.query)
    },
    Route("_dbs_info", .serverAdmin("GET", "POST")) { call, _ in
      try call.service.databasesInfo(call.request, call.query)
    },
    Route("_session", .everybody("GET", "HEAD", "POST", "DELETE")) { call, _ in
      try call.service.session(call.request)
    },
    Route("_active_tasks", .serverAdmin("GET", "HEAD")) { call, _ in try call.service.activeTasks() },
    Route("_metrics", .metrics("GET", "HEAD")) { call, _ in try call.service.metricsAnswer() },
    Route("_membership", .serverAdmin("GET")) { _, _ in try DatabaseService.membership() },
    Route("_node/_local", .serverAdmin("GET")) { _, _ in try DatabaseService.localNode() },
    Route("_scheduler/jobs", .serverAdmin("GET", "HEAD")) { call, _ in
      try call.service.schedulerJobs(call.query)
    },
    Route("_scheduler/jobs/{id}", .serverAdmin("GET", "HEAD")) { call, values in
      try call.service.schedulerJob(values[0])
    },
    Route("_scheduler/docs", .serverAdmin("GET", "HEAD")) { call, _ in
      try call.service.schedulerDocuments(call.query)
    },
    Route("_scheduler/docs/_replicator", .serverAdmin("GET", "HEAD")) { call, _ in
      try call.service.schedulerDocuments(call.query)
    },
    Route("_scheduler/docs/_replicator/{doc}/…", .serverAdmin("GET", "HEAD")) { call, _ in
      try call.service.schedulerDocument(call.path.dropFirst(3).map(\.string).joined(separator: "/"))
    },
    Route("_scheduler/…", .serverAdmin("GET", "HEAD")) { _, _ in throw CouchDBError.missing },
    // A request without a body is refused for that first.
    Route("_replicate", .user("POST"), checksMethod: false) { call, _ in
      try call.service.replicate(call.request)
    },
    Route("_node/{node}/_stats/…", .metrics("GET", "HEAD")) { call, values in
      try call.service.nodeStatistics(values[0], call.path.dropFirst(3).map(\.string))
    },
    Route("_node/{node}/_prometheus", .metrics("GET")) { call, values in
      try call.service.nodePrometheus(values[0])
    },
    Route("_node/{node}/_system", .metrics("GET", "HEAD")) { call, values in
      try call.service.nodeSystem(values[0])
    },
    Route("_node/{node}/_config/…", .serverAdmin("GET", "HEAD", "PUT", "DELETE")) { call, values in
      try call.service.nodeConfiguration(call.request, values[0], call.path.dropFirst(3).map(\.string))
    },
    .notImplemented("_node/…", .serverAdmin()),
    Route("_cluster_setup", .serverAdmin("GET", "POST")) { call, _ in
      // There is nothing to set up.
      guard call.request.method != "POST" else { throw CouchDBError.notImplemented }
      return try .json(["state": "single_node_enabled"])
    },
    .notImplemented("_reshard/…", .serverAdmin()),
    .notImplemented("_search_analyze/…", .serverAdmin()),
    .notImplemented("_nouveau_analyze/…", .serverAdmin()),
    Route("_utils/…", .everybody("GET", "HEAD")) { call, _ in try call.page() },
    // Browsers ask for it without a login. It is the name of no database.
    Route("favicon.ico", .everybody("GET", "HEAD")) { _, _ in throw CouchDBError.missing },
    Route("_bench_report", .serverAdmin("GET", "HEAD")) { call, _ in try call.benchReport() },
  ])

  /// A database itself. `PUT` makes one; CouchDB leaves it out where it names the methods.
  static let wholeDatabase = Route<DatabaseCall>(
    "{db}", .serverAdmin("DELETE"), .member("GET", "HEAD", "POST")
  ) { call, _ in
    try call.wholeAnswer()
  }

  /// Below `/{db}/`, before what is a document. `_design%2FD` is `_design/D` here.
  static let database = RouteTable<DatabaseCall>([
    Route("_ensure_full_commit", .member("POST")) { call, _ in try call.ensureFullCommit() },
    Route("_compact", .databaseAdmin("POST")) { call, _ in try call.compact() },
    Route("_compact/{design}", .databaseAdmin("POST")) { call, values in try call.compactViews(values[0]) },
    Route("_revs_limit", .databaseAdmin("PUT"), .member("GET")) { call, _ in try call.revisionsLimit() },
    Route("_purged_infos_limit", .serverAdmin("GET", "PUT")) { call, _ in try call.purgedInfosLimit() },
    Route("_security", .databaseAdmin("PUT"), .member("GET")) { call, _ in try call.securityAnswer() },
    Route("_all_docs", .member("GET", "HEAD", "POST")) { call, _ in try call.list(.documents(.all)) },
    Route("_design_docs", .member("GET", "HEAD", "POST")) { call, _ in try call.list(.documents(.design)) },
    Route("_local_docs", .member("GET", "HEAD", "POST")) { call, _ in try call.list(.local) },
    Route("_all_docs/queries", .member("POST")) { call, _ in try call.listQueries(.documents(.all)) },
    Route("_design_docs/queries", .member("POST")) { call, _ in try call.listQueries(.documents(.design)) },
    Route("_local_docs/queries", .member("POST")) { call, _ in try call.listQueries(.local) },
    Route("_changes", .member("GET", "POST", "HEAD")) { call, _ in try call.changes() },
    // A service that has none says so first.
    Route("_temp_view", .databaseAdmin("POST"), checksMethod: false) { call, _ in try call.temporaryView() },
    Route("_view_cleanup", .databaseAdmin("POST")) { call, _ in try call.cleanViews() },
    Route("_query", .member("POST")) { call, _ in try call.runQuery() },
    Route("_indexes", .member("GET"), .databaseAdmin("POST")) { call, _ in try call.queryIndexes() },
    Route("_indexes/{name}", .databaseAdmin("DELETE")) { call, values in
      try call.deleteQueryIndex(values[0])
    },
    Route("_find", .member("POST")) { call, _ in try call.find() },
    Route("_explain", .member("POST")) { call, _ in try call.explain() },
    Route("_index", .member("GET"), .databaseAdmin("POST")) { call, _ in try call.mangoIndexes() },
    Route("_index/_bulk_delete", .databaseAdmin("POST")) { call, _ in try call.deleteIndexes() },
    Route("_index/_design/{design}/{type}/{name}", .databaseAdmin("DELETE")) { call, values in
      try call.deleteIndex(values[0], values[1], values[2])
    },
    Route("_index/{design}/{type}/{name}", .databaseAdmin("DELETE")) { call, values in
      try call.deleteIndex(values[0], values[1], values[2])
    },
    Route("_index/…", .member()) { _, _ in throw CouchDBError.missing },
    Route("_design/{design}/_view", .member()) { _, _ in throw MethodNotAllowed(["GET", "POST", "HEAD"]) },
    Route("_design/{design}/_view/{view}", .member("GET", "POST", "HEAD")) { call, values in
      try call.view(values[0], values[1])
    },
    Route("_design/{design}/_view/{view}/queries", .member("POST")) { call, values in
      try call.viewQueries(values[0], values[1])
    },
    Route("_design/{design}/_info", .member("GET")) { call, values in try call.designInformation(values[0]) },
    .notImplemented("_design/{design}/_show/…", .member()),
    .notImplemented("_design/{design}/_list/…", .member()),
    .notImplemented("_design/{design}/_update/…", .member()),
    .notImplemented("_design/{design}/_rewrite/…", .member()),
    .notImplemented("_design/{design}/_search/…", .member()),
    .notImplemented("_design/{design}/_search_info/…", .member()),
    .notImplemented("_design/{design}/_search_disk_size/…", .member()),
    .notImplemented("_design/{design}/_nouveau/…", .member()),
    .notImplemented("_design/{design}/_nouveau_info/…", .member()),
    Route("_bulk_docs", .member("POST")) { call, _ in try call.bulkDocumentsAnswer() },
    Route("_bulk_get", .member("POST")) { call, _ in try call.bulkGetAnswer() },
    Route("_revs_diff", .member("POST")) { call, _ in try call.revisionsDifferenceAnswer() },
    Route("_missing_revs", .member("POST")) { call, _ in try call.missingRevisionsAnswer() },
    Route("_purge", .serverAdmin("POST")) { call, _ in try call.purgeAnswer() },
    Route("_purged_infos", .member("GET")) { call, _ in try call.purgedInfosAnswer() },
    Route("_shards", .member("GET")) { call, _ in try call.shards() },
    Route("_shards/{doc}/…", .member("GET")) { call, _ in try call.shardOfDocument() },
    Route("_sync_shards", .serverAdmin("POST")) { call, _ in try call.syncShards() },
    Route("_partition/{partition}", .member("GET")) { call, values in
      try call.inPartition(values[0]).partitionAnswer()
    },
    Route("_partition/{partition}/_all_docs", .member("GET", "HEAD", "POST")) { call, values in
      try call.inPartition(values[0]).list(.documents(.all))
    },
    Route("_partition/{partition}/_find", .member("POST")) { call, values in
      try call.inPartition(values[0]).find()
    },
    Route("_partition/{partition}/_explain", .member("POST")) { call, values in
      try call.inPartition(values[0]).explain()
    },
    Route("_partition/{partition}/_design/{design}/_view/{view}", .member("GET", "HEAD", "POST")) {
      call, values in try call.inPartition(values[0]).view(values[1], values[2])
    },
    Route("_partition/…", .member()) { call, _ in try call.noPartitionAnswer() },
    .notImplemented("_auto_purge/…", .member()),
    .notImplemented("_search_cleanup/…", .member()),
    .notImplemented("_nouveau_cleanup/…", .member()),
  ])

  /// A document. Its ID and the name of an attachment can have several segments.
  static let document = Route<DatabaseCall>("{doc}", .member("DELETE", "GET", "HEAD", "POST", "PUT", "COPY"))
  {
    call, values in try call.documentAnswer(values[0])
  }
  static let localDocument = Route<DatabaseCall>(
    "_local/{doc}", .member("DELETE", "GET", "HEAD", "POST", "PUT", "COPY")
  ) { call, values in try call.localAnswer(values[0]) }
  static let attachment = Route<DatabaseCall>("{doc}/{attachment}/…", .member("DELETE", "GET", "HEAD", "PUT"))
  {
    call, values in try call.attachmentAnswer(values[0], values[1])
  }

  /// The paths of all lines with their methods, in order: `any`, or `501` for what CouchDB has and this server hasn't. With the rights: those
  /// of the methods that come first, then others with the methods that need them.
  static var all: [(path: String, methods: String, rights: String)] {
    func line<Call>(_ base: String, _ route: Route<Call>, _ more: [String] = []) -> (
      String, String, String
    ) {
      let methods = route.isImplemented ? (more + route.methods).joined(separator: ", ") : "501"
      let rights = route.rights.enumerated().map { index, part in
        (index == 0 ? "" : part.names.joined(separator: ", ") + ": ") + part.right.description
      }
      return (base + route.pattern, methods.isEmpty ? "any" : methods, rights.joined(separator: "; "))
    }
    return server.routes.map { line("/", $0) } + [line("/", wholeDatabase, ["PUT"])]
      + (database.routes + [document, localDocument, attachment]).map { line("/{db}/", $0) }
  }
}
