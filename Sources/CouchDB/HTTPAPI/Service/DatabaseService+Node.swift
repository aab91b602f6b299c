import Fleece
import Glibc
import HTTP
import Views

// `_node/_local/…`: what monitors of CouchDB ask. `_local` and the name of the node stand for this server.

extension DatabaseService {
  /// Throws 404 for another node.
  private static func checkNode(_ name: String) throws {
    guard name.hasSameBytes(as: "_local") || name.hasSameBytes(as: node) else {
      throw CouchDBError(404, "not_found", "no such node: \(name)")
    }
  }

  /// The answer to `_node/{node}/_stats/…`: the counters, or those below a path of names.
  func nodeStatistics(_ node: String, _ path: [String]) throws -> HTTPAnswer {
    try Self.checkNode(node)
    var value = metrics.statistics(databases: try catalog.names().count)
    for name in path {
      guard let part = value.object?[name] else { throw CouchDBError.missing }
      value = part
    }
    return try .json(value)
  }

  /// The answer to `_node/{node}/_prometheus`: that of `_metrics`.
  func nodePrometheus(_ node: String) throws -> HTTPAnswer {
    try Self.checkNode(node)
    return try metricsAnswer()
  }

  /// The answer to `_node/{node}/_system`: what is known of the process. Erlang's numbers are 0.
  func nodeSystem(_ node: String) throws -> HTTPAnswer {
    try Self.checkNode(node)
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    let memory = Self.residentBytes
    return try .json([
      "uptime": JSONValue(Int(max(0, timer.now - began))),
      "memory": ["other": JSONValue(memory), "processes": 0, "binary": 0, "code": 0, "ets": 0, "atom": 0],
      "run_queue": 0, "ets_table_count": 0, "os_proc_count": 0, "stale_proc_count": 0,
      "context_switches": JSONValue(Int(usage.ru_nvcsw + usage.ru_nivcsw)),
      "reductions": 0, "garbage_collection_count": 0, "words_reclaimed": 0, "process_count": 0,
      "process_limit": 0, "message_queues": [:], "internal_replication_jobs": 0, "distribution": [:],
      "io_input": JSONValue(Int(usage.ru_inblock) * 512), "io_output": JSONValue(Int(usage.ru_oublock) * 512),
    ])
  }

  /// The memory of the process that is in the machine's, in bytes; 0 if the system doesn't tell.
  private static var residentBytes: Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var text = [CChar](repeating: 0, count: 128)
    guard fgets(&text, Int32(text.count), file) != nil else { return 0 }
    let numbers = text.prefix { $0 != 0 }.split(separator: CChar(UInt8(ascii: " "))).map { digits in
      digits.reduce(0) { $0 * 10 + Int($1) - 0x30 }
    }
    return numbers.count > 1 ? numbers[1] * Int(sysconf(Int32(_SC_PAGESIZE))) : 0
  }

  /// The answer to `_node/{node}/_config/…`: settings as texts, by section and key. Nothing can be set.
  func nodeConfiguration(_ request: HTTPRequest, _ node: String, _ path: [String]) throws -> HTTPAnswer {
    try Self.checkNode(node)
    guard request.method == "GET" || request.method == "HEAD" else {
      throw CouchDBError(
        403, "forbidden", "the settings are options of the command, and can't be changed here")
    }
    guard path.count <= 2 else { throw CouchDBError.missing }
    guard let section = path.first else { return try .json(settings) }
    // As in CouchDB, a section that nobody has written to is empty.
    let values = settings.object?[section]?.object ?? [:]
    guard path.count == 2 else { return try .json(.object(values)) }
    guard let value = values[path[1]] else { throw CouchDBError(404, "not_found", "unknown_config_value") }
    return try .json(value)
  }

  /// The settings under CouchDB's names, as far as there are such here. There are no secrets among them.
  private var settings: JSONValue {
    func text(_ value: some CustomStringConvertible) -> JSONValue { .string(value.description) }
    return [
      "couchdb": [
        "uuid": .string(uuid), "max_document_size": text(configuration.maximumDocumentBytes),
        "max_attachment_size": text(configuration.maximumAttachmentBytes), "default_security": "admin_only",
        "users_db_security_editable": text(configuration.usersSecurityIsEditable),
      ],
      "chttpd": [
        "max_http_request_size": text(configuration.maximumRequestBytes), "require_valid_user": "false",
        "admin_only_all_dbs": "true", "enable_cors": text(configuration.crossOrigin.isOn),
      ],
      "chttpd_auth": [
        "authentication_db": .string(UserDocument.database), "password_scheme": "pbkdf2",
        "pbkdf2_prf": "sha256", "iterations": text(users.iterations),
        "timeout": text(configuration.logins?.cookieSeconds ?? 600),
      ],
      "cluster": ["q": "1", "n": "1"], "replicator": ["max_jobs": text(configuration.maximumReplications)],
      "vendor": ["name": "Touchstone", "version": .string(configuration.version)],
    ]
  }
}

extension ServiceMetrics {
  /// The counters in CouchDB's form.
  func statistics(databases: Int) -> JSONValue {
    let counts = current
    func counter(_ value: UInt64, _ what: String) -> JSONValue {
      ["value": JSONValue(Int(clamping: value)), "type": "counter", "desc": .string(what)]
    }
    var methods = JSONObject()
    var statuses = JSONObject()
    for (name, count) in Dictionary(grouping: counts.requests, by: \.key.method) {
      methods[name] = counter(count.reduce(0) { $0 + $1.value }, "number of HTTP \(name) requests")
    }
    for (status, count) in Dictionary(grouping: counts.requests, by: \.key.status) {
      statuses[String(status)] = counter(
        count.reduce(0) { $0 + $1.value }, "number of HTTP \(status) responses")
    }
    let mean = counts.answered == 0 ? 0 : counts.seconds / Double(counts.answered) * 1_000
    return [
      "couchdb": [
        "httpd": [
          "requests": counter(counts.answered, "number of HTTP requests"),
          "clients_requesting_changes": counter(
            UInt64(max(0, counts.openFeeds)), "number of clients for continuous _changes"),
        ],
        "httpd_request_methods": .object(methods), "httpd_status_codes": .object(statuses),
        "open_databases": counter(UInt64(databases), "number of databases that are served"),
        "request_time": [
          "value": ["n": JSONValue(Int(clamping: counts.answered)), "arithmetic_mean": .double(mean)],
          "type": "histogram", "desc": "length of a request inside of the server, in milliseconds",
        ],
      ]
    ]
  }
}
